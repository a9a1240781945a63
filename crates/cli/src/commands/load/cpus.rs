//! `--cpus`: reads a list of processors, as taskset(1) has it.

/// Processors of one list at most: more than a machine has.
const CPUS_MAX: usize = 4_096;

/// Processors, in the order in which threads take them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cpus(pub(super) Vec<usize>);

/// Reads numbers and ranges, apart by commas.
pub(super) fn parse(text: &str) -> Result<Cpus, String> {
    let fault =
        || format!("a list of processors is numbers and ranges, such as 0,2-3, not {text:?}");
    let number =
        |text: &str| text.parse::<usize>().ok().filter(|it| *it < CPUS_MAX).ok_or_else(fault);
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        list.extend(first..=last);
        if first > last || list.len() > CPUS_MAX {
            return Err(fault());
        }
    }
    Ok(Cpus(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_numbers_and_ranges() {
        for (text, list) in
            [("1", &[1][..]), ("2,0", &[2, 0]), ("0-3", &[0, 1, 2, 3]), ("0,2-3,0", &[0, 2, 3, 0])]
        {
            assert_eq!(parse(text), Ok(Cpus(list.to_vec())), "{text}");
        }
        for text in ["", ",", "1,", "3-2", "a", "0-", "-1", "4096", "0-4095,0-4095"] {
            assert!(parse(text).unwrap_err().contains("0,2-3"), "{text}");
        }
    }
}

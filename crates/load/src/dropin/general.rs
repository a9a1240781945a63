//! Prints a number as C's `%g` does: six digits that count, no zeros behind them, an exponent when the
//! number is very small or very large. http_load prints all its figures so.
//!
//! Source: C23 7.23.6.1, conversion specifier `g`.

/// Digits that count.
const DIGITS: i32 = 6;

/// Exponents from which on a number is written with one.
const EXPONENT_MIN: i32 = -4;

/// The number in text.
pub(super) fn general(number: f64) -> String {
    if !number.is_finite() {
        return if number.is_nan() { "nan".into() } else { format!("{number}") };
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    // Rounding may add a digit in front, so the exponent is that of the rounded number.
    let scientific = format!("{number:.*e}", (DIGITS - 1) as usize);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (EXPONENT_MIN..DIGITS).contains(&exponent) {
        let decimals = (DIGITS - 1 - exponent).unsigned_abs() as usize;
        return without_zeros(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs())
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_printf_of_the_c_library_prints_them() {
        // printf '%g\n' with the same numbers.
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (500.0, "500"),
            (0.1, "0.1"),
            (123_456.0, "123456"),
            (999_999.5, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (2.345_678_9, "2.34568"),
            (0.000_123_456_7, "0.000123457"),
            (0.000_012_345_67, "1.23457e-05"),
            (99.999_99, "100"),
            (-2.5, "-2.5"),
            (1e100, "1e+100"),
            (60.000_1, "60.0001"),
        ] {
            assert_eq!(general(number), text);
        }
    }
}

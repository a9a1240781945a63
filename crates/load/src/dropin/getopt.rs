//! Splits a command line into options and operands, as getopt and getopt_long do.
//!
//! Short options may stand together and carry their value with or without a space. Long ones may be
//! shortened while they stay distinct. Whether options may follow operands is the program's choice.
//!
//! Source: POSIX.1-2024, Utility Syntax Guidelines; getopt(3) of the GNU C library.

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// It has none.
    None,
    /// The rest of the word, or the next word.
    Required,
    /// Only what is attached to it.
    Optional,
}

/// The options that a program knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec<'a> {
    /// Short options, each followed by `:` if it has a value, by `::` if it may have one.
    pub(super) short: &'a str,
    /// Long options: name, value, and the name that they are reported by.
    pub(super) long: &'a [(&'a str, Value, &'a str)],
    /// Whether options may follow operands.
    pub(super) permutes: bool,
}

/// One part of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// An option, by its short letter or the name of the long one.
    Option(String, Option<String>),
    /// Anything else.
    Operand(String),
}

/// What is wrong with a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// No such option.
    Unknown(String),
    /// The option needs a value.
    NoValue(String),
    /// The long option takes no value.
    Surplus(String),
    /// The long option could be several.
    Ambiguous(String),
}

impl Spec<'_> {
    /// Splits `words`.
    ///
    /// # Errors
    ///
    /// The first word that does not fit.
    pub(super) fn split(&self, words: &[String]) -> Result<Vec<Part>, Fault> {
        let mut parts = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                parts.push(self.long(long, &mut words)?);
            } else if let Some(letters) = word.strip_prefix('-').filter(|it| !it.is_empty()) {
                self.letters(letters, &mut words, &mut parts)?;
            } else {
                parts.push(Part::Operand(word.clone()));
                if !self.permutes {
                    break;
                }
            }
        }
        parts.extend(words.cloned().map(Part::Operand));
        Ok(parts)
    }

    fn long<'w>(
        &self,
        text: &str,
        words: &mut impl Iterator<Item = &'w String>,
    ) -> Result<Part, Fault> {
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let exact = self.long.iter().find(|(known, ..)| *known == name);
        let mut shortened = self.long.iter().filter(|(known, ..)| known.starts_with(name));
        let &(_, takes, key) = match (exact, shortened.next(), shortened.next()) {
            (Some(exact), ..) => exact,
            (None, Some(only), None) => only,
            (None, Some(_), Some(_)) => return Err(Fault::Ambiguous(name.to_owned())),
            (None, None, _) => return Err(Fault::Unknown(format!("--{name}"))),
        };
        let value = match (takes, attached) {
            (Value::None, Some(_)) => return Err(Fault::Surplus(name.to_owned())),
            (Value::Required, None) => {
                Some(words.next().cloned().ok_or_else(|| Fault::NoValue(name.to_owned()))?)
            }
            (_, attached) => attached,
        };
        Ok(Part::Option(key.to_owned(), value))
    }

    fn letters<'w>(
        &self,
        letters: &str,
        words: &mut impl Iterator<Item = &'w String>,
        parts: &mut Vec<Part>,
    ) -> Result<(), Fault> {
        for (at, letter) in letters.char_indices() {
            let key = letter.to_string();
            let rest = &letters[at + letter.len_utf8()..];
            let attached = (!rest.is_empty()).then(|| rest.to_owned());
            let value = match self.takes(letter) {
                None => return Err(Fault::Unknown(key)),
                Some(Value::None) => {
                    parts.push(Part::Option(key, None));
                    continue;
                }
                Some(Value::Optional) => attached,
                Some(Value::Required) => {
                    let value = attached.or_else(|| words.next().cloned());
                    Some(value.ok_or_else(|| Fault::NoValue(key.clone()))?)
                }
            };
            parts.push(Part::Option(key, value));
            break;
        }
        Ok(())
    }

    fn takes(&self, letter: char) -> Option<Value> {
        let at = self.short.find(letter).filter(|_| letter != ':')?;
        let after = &self.short[at + letter.len_utf8()..];
        Some(match (after.starts_with("::"), after.starts_with(':')) {
            (true, _) => Value::Optional,
            (false, true) => Value::Required,
            (false, false) => Value::None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: [(&str, Value, &str); 4] = [
        ("log", Value::Optional, "l"),
        ("concurrent", Value::Required, "c"),
        ("config", Value::None, "C"),
        ("verbose", Value::None, "v"),
    ];

    #[test]
    fn short_options_stand_together_and_carry_values() {
        check("-vc10 x", true, Ok("v c=10 .x"));
        check("-v -c 10 -C", true, Ok("v c=10 C"));
        check("-l x -l/y", true, Ok("l .x l=/y"));
        check("-c -v", true, Ok("c=-v"));
        check("-c", true, Err(Fault::NoValue("c".into())));
        check("-vx", true, Err(Fault::Unknown("x".into())));
        check("-:", true, Err(Fault::Unknown(":".into())));
    }

    #[test]
    fn long_options_may_be_shortened() {
        check("--concurrent=10 --conc 5 --log --log=/y --verb", true, Ok("c=10 c=5 l l=/y v"));
        check("--con", true, Err(Fault::Ambiguous("con".into())));
        check("--other=1", true, Err(Fault::Unknown("--other".into())));
        check("--verbose=1", true, Err(Fault::Surplus("verbose".into())));
        check("--conc", true, Err(Fault::NoValue("conc".into())));
    }

    #[test]
    fn operands_end_the_options_or_do_not() {
        check("x -v y", true, Ok(".x v .y"));
        check("x -v y", false, Ok(".x .-v .y"));
        check("-v -- -v", true, Ok("v .-v"));
        check("- -v", true, Ok(".- v"));
    }

    #[track_caller]
    fn check(line: &str, permutes: bool, expected: Result<&str, Fault>) {
        let spec = Spec { short: "vCl::c:", long: &LONG, permutes };
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let shown = spec.split(&words).map(|parts| {
            let parts: Vec<_> = parts
                .into_iter()
                .map(|part| match part {
                    Part::Operand(text) => format!(".{text}"),
                    Part::Option(name, None) => name,
                    Part::Option(name, Some(value)) => format!("{name}={value}"),
                })
                .collect();
            parts.join(" ")
        });
        assert_eq!(shown, expected.map(str::to_owned), "{line}");
    }
}

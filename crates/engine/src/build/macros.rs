//! `<Macro>`, `Use` and `UndefMacro`: directives written once and used with different words.
//!
//! A macro is text: its parameters are replaced wherever they stand in it, and what comes out is read as if
//! it were a file of its own. So an argument with a blank in it is two words afterwards.
//!
//! Source: httpd 2.4.71 `modules/core/mod_macro.c`.

use std::path::PathBuf;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::decision::Place;

/// Most text that macros may make in one load. Macros that use macros twice grow by powers of two.
const MADE_BYTES_MAX: usize = 64 << 20;

/// The macros of one load.
#[derive(Default)]
pub(super) struct Macros {
    known: Vec<Macro>,
    /// Names of those being used, to find recursion.
    used: Vec<Vec<u8>>,
    /// How much text they have made.
    made: usize,
}

/// A macro as defined.
#[derive(Clone)]
struct Macro {
    /// In lower case.
    name: Vec<u8>,
    parameters: Vec<Vec<u8>>,
    text: Vec<u8>,
    place: Place,
}

impl Builder<'_> {
    /// `<Macro name parameter…>`; `text` is what stands in it.
    pub(super) fn define_macro(&mut self, directive: &Directive<'_>, text: Vec<u8>) {
        let words = directive.words();
        let Some((name, parameters)) = words.split_first() else {
            let finding =
                Finding::error("a macro needs a name").hint("write `<Macro name $first $second>`");
            return self.report(directive, finding);
        };
        for (number, parameter) in parameters.iter().enumerate() {
            let is_second = parameters[..number].iter().any(|first| first.text == parameter.text);
            if parameter.text.is_empty() || is_second {
                let finding = Finding::error(format!(
                    "parameter {} of the macro has no name of its own",
                    show(&parameter.text)
                ));
                return self.report_at(directive, parameter.at, parameter.len, finding);
            }
        }
        let name = name.text.to_ascii_lowercase();
        self.macros.known.retain(|known| known.name != name);
        self.macros.known.push(Macro {
            name,
            parameters: parameters.iter().map(|parameter| parameter.text.to_vec()).collect(),
            text,
            place: directive.place,
        });
    }

    /// `Use name argument…`
    pub(super) fn use_macro(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let words = directive.words();
        let Some((name, arguments)) = words.split_first() else {
            return self.report(directive, Finding::error("`Use` needs the name of a macro"));
        };
        let lower = name.text.to_ascii_lowercase();
        let Some(known) = self.macros.known.iter().find(|known| known.name == lower).cloned()
        else {
            let finding = Finding::error(format!("there is no macro {}", show(&name.text)))
                .hint("a `<Macro>` stands before it is used");
            return self.report_at(directive, name.at, name.len, finding);
        };
        if known.parameters.len() != arguments.len() {
            let finding = Finding::error(format!(
                "macro {} takes {} arguments, not {}",
                show(&name.text),
                known.parameters.len(),
                arguments.len()
            ));
            return self.report(directive, finding.also(known.place, "defined here"));
        }
        if self.macros.used.contains(&lower) {
            let finding = Finding::error(format!("macro {} uses itself", show(&name.text)));
            return self.report(directive, finding.also(known.place, "defined here"));
        }
        let arguments: Vec<_> = arguments.iter().map(|argument| &*argument.text).collect();
        let text = replaced(&known.text, &known.parameters, &arguments);
        self.macros.made += text.len();
        if self.macros.made > MADE_BYTES_MAX {
            let message = format!("macros make more than {MADE_BYTES_MAX} bytes of text");
            return self.report(directive, Finding::error(message));
        }
        let (file, line) = self.pool.describe(directive.place);
        let shown = String::from_utf8_lossy(&lower).into_owned();
        let path = PathBuf::from(format!("macro {shown} used at {}:{line}", file.display()));
        self.macros.used.push(lower);
        self.read_text(&path, text, context);
        self.macros.used.pop();
    }

    /// `UndefMacro name`
    pub(super) fn undefine_macro(&mut self, directive: &Directive<'_>) {
        let Some(words) = self.words(directive, 1, 1, "UndefMacro name") else { return };
        let name = words[0].text.to_ascii_lowercase();
        let before = self.macros.known.len();
        self.macros.known.retain(|known| known.name != name);
        if self.macros.known.len() == before {
            let finding = Finding::error(format!("there is no macro {}", show(&words[0].text)));
            self.report_at(directive, words[0].at, words[0].len, finding);
        }
    }
}

/// The text with each parameter replaced by its argument; where several begin, the longest counts.
fn replaced(text: &[u8], parameters: &[Vec<u8>], arguments: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let here =
            parameters.iter().zip(arguments).filter(|(name, _)| text[at..].starts_with(name));
        match here.max_by_key(|(name, _)| name.len()) {
            Some((name, argument)) => {
                out.extend_from_slice(argument);
                at += name.len();
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_parameter_counts() {
        check("a$x $xy$xyz", &[("$x", "1"), ("$xy", "2")], "a1 22z");
        check("/x http://t/xx", &[("x", "1")], "/1 http://t/11");
        check("$x", &[("$x", "$x$x")], "$x$x");
        check("$x|", &[("$x", "")], "|");
    }

    #[track_caller]
    fn check(text: &str, pairs: &[(&str, &str)], expected: &str) {
        let parameters: Vec<_> = pairs.iter().map(|(name, _)| name.as_bytes().to_vec()).collect();
        let arguments: Vec<_> = pairs.iter().map(|(_, argument)| argument.as_bytes()).collect();
        let out = replaced(text.as_bytes(), &parameters, &arguments);
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}

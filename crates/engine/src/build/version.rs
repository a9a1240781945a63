//! `<IfVersion>`: whether the httpd whose answers we give is the wanted one.
//!
//! The section's `>` may stand apart, as the third word; of what follows it only the number of words counts.
//!
//! Source: httpd 2.4.71 `modules/metadata/mod_version.c`.

use milepost_pcre::{Case, Matcher, Regex};
use milepost_syntax::Words;

use super::report::{Finding, show};
use super::{Builder, Directive};

/// The version that is compared with.
const HTTPD_VERSION: [u32; 3] = [2, 4, 71];

impl Builder<'_> {
    /// `<IfVersion [[!]operator] version>`; `behind` is what follows the bracket.
    pub(super) fn version_holds(&mut self, directive: &Directive<'_>, behind: &[u8]) -> bool {
        self.compare_version(directive, behind).unwrap_or_else(|finding| {
            self.report(directive, finding);
            false
        })
    }

    fn compare_version(&self, directive: &Directive<'_>, behind: &[u8]) -> Result<bool, Finding> {
        let line = [directive.args, b">", behind].concat();
        let words: Vec<_> = Words::new(&line).collect();
        let texts: Vec<&[u8]> = words.iter().map(|word| &*word.text).collect();
        let (operator, version) = match *texts.as_slice() {
            [version, b">"] => (&b"="[..], version),
            [operator, version, b">"] => (operator, version),
            [version] => (&b"="[..], without_bracket(version)?),
            [operator, version] | [operator, version, _] => (operator, without_bracket(version)?),
            _ => {
                return Err(Finding::error("write `<IfVersion [operator] version>`")
                    .hint("a comment needs a line of its own"));
            }
        };
        let (negated, operator) = match operator.strip_prefix(b"!") {
            Some(rest) => (true, rest),
            None => (false, operator),
        };
        let order = || parse(version).map(|wanted| HTTPD_VERSION.cmp(&wanted));
        let holds = match operator {
            b"~" => matches(version)?,
            b"=" | b"==" => match version.strip_prefix(b"/") {
                Some(pattern) => matches(pattern.strip_suffix(b"/").ok_or_else(|| {
                    Finding::error(format!("the pattern {} has no `/` at its end", show(version)))
                })?)?,
                None => order()?.is_eq(),
            },
            b">" => order()?.is_gt(),
            b">=" => order()?.is_ge(),
            b"<" => order()?.is_lt(),
            b"<=" => order()?.is_le(),
            _ => {
                return Err(Finding::error(format!("unknown comparison {}", show(operator)))
                    .hint("use one of = > >= < <= ~"));
            }
        };
        Ok(holds != negated)
    }
}

fn without_bracket(version: &[u8]) -> Result<&[u8], Finding> {
    let missing = || Finding::error("the section needs a `>` behind the version");
    version.strip_suffix(b">").ok_or_else(missing)
}

/// Up to three numbers; what is left out is 0.
fn parse(version: &[u8]) -> Result<[u32; 3], Finding> {
    let is_number = |part: &&[u8]| part.iter().all(u8::is_ascii_digit);
    let mut parts = version.split(|&byte| byte == b'.');
    let mut wanted = [0; 3];
    let mut is_valid = version.first().is_some_and(u8::is_ascii_digit);
    for (number, part) in wanted.iter_mut().zip(parts.by_ref()) {
        is_valid &= is_number(&part);
        let digits = || std::str::from_utf8(part).ok();
        *number = if part.is_empty() { 0 } else { digits().map_or(0, saturating) };
    }
    is_valid &= parts.all(<[u8]>::is_empty);
    if is_valid { Ok(wanted) } else { Err(invalid(version)) }
}

fn saturating(digits: &str) -> u32 {
    digits.parse().unwrap_or(u32::MAX)
}

fn invalid(version: &[u8]) -> Finding {
    Finding::error(format!("{} is not a version", show(version)))
        .hint("write up to three numbers, such as 2.4.60")
}

/// Whether the version matches a regular expression.
fn matches(pattern: &[u8]) -> Result<bool, Finding> {
    let version = HTTPD_VERSION.map(|number| number.to_string()).join(".");
    let regex = Regex::without_jit(pattern, Case::Sensitive).map_err(|error| {
        Finding::error(format!("{} is not a regular expression: {error}", show(pattern)))
    })?;
    Ok(Matcher::new().find(&regex, version.as_bytes()).is_ok_and(|found| found.is_some()))
}

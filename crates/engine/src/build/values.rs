//! Looks at the arguments of directives that have no effect here, where httpd would refuse some.
//!
//! A wrong value in a `.htaccess` is a 500 for all that is below it, whatever the directive is about; so
//! these are read as httpd reads them, to fail where it fails.
//!
//! Source: httpd 2.4.71, the functions named at each.

use milepost_syntax::Word;

use super::report::{Finding, show};
use super::{Builder, Directive};
use crate::number::leading_number;

impl Builder<'_> {
    /// Whether httpd would take the arguments; an error otherwise. `lower` is the directive's name.
    pub(super) fn has_right_values(&mut self, directive: &Directive<'_>, lower: &[u8]) -> bool {
        let words = directive.words();
        let one_of = |names: &[&str]| words.first().and_then(|word| none_of(word, names));
        let wrong = match lower {
            b"indexoptions" => wrong_index_options(&words),
            b"indexorderdefault" => one_of(&["Ascending", "Descending"]).or_else(|| {
                let keys = ["Name", "Date", "Size", "Description"];
                words.get(1).and_then(|word| none_of(word, &keys))
            }),
            b"limitrequestbody" => {
                words.first().filter(|word| !is_number(&word.text)).map(|word| {
                    let message = format!("{} is no number of bytes", show(&word.text));
                    (word.at, word.len, Finding::error(message).hint("write digits alone"))
                })
            }
            b"enablemmap" | b"enablesendfile" => one_of(&["On", "Off"]),
            b"serversignature" => one_of(&["On", "Off", "EMail"]),
            b"servertokens" => {
                one_of(&["OS", "Min", "Minimal", "Major", "Minor", "Prod", "ProductOnly", "Full"])
            }
            b"traceenable" => one_of(&["On", "Off", "Extended"]),
            b"hostnamelookups" => one_of(&["On", "Off", "Double"]),
            b"xbithack" => one_of(&["On", "Off", "Full"]),
            b"forcelanguagepriority" => words
                .iter()
                .find_map(|word| none_of(word, &["None", "Prefer", "Fallback"]))
                .or_else(|| not_alone(&words, &["None"])),
            b"multiviewsmatch" => words
                .iter()
                .find_map(|word| none_of(word, &["Any", "NegotiatedOnly", "Filters", "Handlers"]))
                .or_else(|| not_alone(&words, &["Any", "NegotiatedOnly"])),
            b"deflatecompressionlevel" | b"deflatememlevel" => wrong_range(&words, 1, 9),
            b"deflatewindowsize" => wrong_range(&words, 1, 15),
            b"deflatebuffersize" => wrong_range(&words, 1, i64::MAX),
            b"substitute" => words.first().and_then(wrong_substitution),
            b"loglevel" => words.iter().find_map(|word| self.wrong_level(word)),
            b"addicon" | b"addiconbytype" | b"addiconbyencoding" => words
                .first()
                .filter(|word| word.text.starts_with(b"(") && !word.text.contains(&b','))
                .map(|word| {
                    let finding = Finding::error("a comma is missing after the text for the icon");
                    (word.at, word.len, finding.hint("write `(TXT,/icons/text.gif)`"))
                }),
            b"authbasicprovider" | b"authdigestprovider" | b"authformprovider" => {
                words.iter().find_map(|word| self.wrong_provider(word))
            }
            b"addoutputfilterbytype" => words.first().and_then(|word| self.wrong_filter(word)),
            b"allowmethods" => match words.is_empty() {
                true => Some((0, 0, Finding::error("`AllowMethods` needs a method"))),
                false => words.iter().find_map(wrong_method),
            },
            lower => self.unwanted(lower, &words),
        };
        let is_gone = matches!(lower, b"fancyindexing" | b"ssllog" | b"sslloglevel" | b"port");
        if is_gone {
            let finding = Finding::error(format!("{} is no more", show(directive.name)));
            self.report(directive, finding);
            return false;
        }
        let Some((at, len, finding)) = wrong else { return true };
        self.report_at(directive, at, len, finding);
        false
    }

    /// `warn`, `rewrite:trace3`.
    ///
    /// Source: `server/core.c`, `set_loglevel`; `server/util_debug.c`.
    fn wrong_level(&self, word: &Word<'_>) -> Option<Wrong> {
        const LEVELS: &[&str] = &[
            "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug", "trace1",
            "trace2", "trace3", "trace4", "trace5", "trace6", "trace7", "trace8",
        ];
        let (module, level) = match memchr::memchr(b':', &word.text) {
            Some(colon) => (Some(&word.text[..colon]), &word.text[colon + 1..]),
            None => (None, &*word.text),
        };
        if let Some(wrong) = none_of(&Word { text: level.into(), ..*word }, LEVELS) {
            return Some(wrong);
        }
        let module = module.filter(|module| !self.names.modules.is_called(module))?;
        let message = format!("no module {} is loaded", show(module));
        Some((word.at, word.len, Finding::error(message)))
    }

    /// A provider of passwords whose module is not loaded, or that nobody has heard of.
    ///
    /// Source: `modules/aaa/mod_auth_basic.c`, `add_authn_provider`.
    pub(super) fn wrong_provider(&self, word: &Word<'_>) -> Option<Wrong> {
        const PROVIDERS: &[(&[u8], &str)] = &[
            (b"file", "mod_authn_file.c"),
            (b"dbm", "mod_authn_dbm.c"),
            (b"anon", "mod_authn_anon.c"),
            (b"dbd", "mod_authn_dbd.c"),
            (b"socache", "mod_authn_socache.c"),
            (b"ldap", "mod_authnz_ldap.c"),
        ];
        let modules = &self.names.modules;
        let found = PROVIDERS.iter().find(|(name, _)| *name == &*word.text);
        let is_there = found.is_some_and(|(_, module)| modules.has(module));
        let is_alias = self.provider_aliases.has_authn(&word.text);
        if is_there || is_alias || found.is_none() && !modules.are_named() {
            return None;
        }
        let message = format!("{} is no provider of passwords", show(&word.text));
        Some((word.at, word.len, Finding::error(message)))
    }
}

/// `GET`, `+POST`, `-PUT`, `reset`.
///
/// Source: `modules/aaa/mod_allowmethods.c`, `am_allowmethods`.
fn wrong_method(word: &Word<'_>) -> Option<Wrong> {
    const METHODS: &[&[u8]] = &[
        b"GET",
        b"HEAD",
        b"POST",
        b"PUT",
        b"DELETE",
        b"CONNECT",
        b"OPTIONS",
        b"TRACE",
        b"PATCH",
        b"PROPFIND",
        b"PROPPATCH",
        b"MKCOL",
        b"COPY",
        b"MOVE",
        b"LOCK",
        b"UNLOCK",
        b"VERSION-CONTROL",
        b"CHECKOUT",
        b"UNCHECKOUT",
        b"CHECKIN",
        b"UPDATE",
        b"LABEL",
        b"REPORT",
        b"MKWORKSPACE",
        b"MKACTIVITY",
        b"BASELINE-CONTROL",
        b"MERGE",
    ];
    let name = word.text.strip_prefix(b"+").or(word.text.strip_prefix(b"-")).unwrap_or(&word.text);
    let is_known = METHODS.contains(&name) || word.text.eq_ignore_ascii_case(b"reset");
    let message = || format!("{} is no method", show(&word.text));
    (!is_known).then(|| (word.at, word.len, Finding::error(message())))
}

/// Where the wrong word is, how long it is, and what is wrong with it.
pub(super) type Wrong = (usize, usize, Finding);

/// A word that is none of `names`, in any case.
fn none_of(word: &Word<'_>, names: &[&str]) -> Option<Wrong> {
    if names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(&word.text)) {
        return None;
    }
    let finding = Finding::error(format!("{} is not known here", show(&word.text)));
    Some((word.at, word.len, finding.hint(format!("write one of {}", names.join(", ")))))
}

/// One of `alone` beside other words.
fn not_alone(words: &[Word<'_>], alone: &[&str]) -> Option<Wrong> {
    let is_alone =
        |word: &Word<'_>| alone.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(&word.text));
    let word = words.iter().find(|word| words.len() > 1 && is_alone(word))?;
    Some((word.at, word.len, Finding::error(format!("{} stands alone", show(&word.text)))))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// A number outside `least` to `most`; what is no number counts as 0.
fn wrong_range(words: &[Word<'_>], least: i64, most: i64) -> Option<Wrong> {
    let word = words.first()?;
    let number = leading_number(&word.text);
    (!(least..=most).contains(&number)).then(|| {
        let finding = Finding::error(format!("{} is out of range", show(&word.text)));
        (word.at, word.len, finding.hint(format!("write a number from {least} on, up to {most}")))
    })
}

/// Source: `modules/generators/mod_autoindex.c`, `add_opts`.
fn wrong_index_options(words: &[Word<'_>]) -> Option<Wrong> {
    const PLAIN: &[&str] = &[
        "FancyIndexing",
        "FoldersFirst",
        "HTMLTable",
        "IconsAreLinks",
        "IgnoreCase",
        "IgnoreClient",
        "ScanHTMLTitles",
        "SuppressColumnSorting",
        "SuppressDescription",
        "SuppressHTMLPreamble",
        "SuppressIcon",
        "SuppressLastModified",
        "SuppressSize",
        "SuppressRules",
        "TrackModified",
        "VersionSort",
        "XHTML",
        "ShowForbidden",
        "UseOldDateFormat",
        "AddAltClass",
        "IconHeight",
        "IconWidth",
    ];
    let mut after_none = false;
    words.iter().find_map(|word| {
        let wrong = |message: &str| Some((word.at, word.len, Finding::error(message)));
        let sign = word.text.first().copied().filter(|sign| b"+-".contains(sign));
        let text = &word.text[usize::from(sign.is_some())..];
        let (name, value) = match memchr::memchr(b'=', text) {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let lower = String::from_utf8_lossy(name).to_ascii_lowercase();
        let least = match lower.as_str() {
            "namewidth" => 5,
            "descriptionwidth" => 12,
            _ => 0,
        };
        match (lower.as_str(), value) {
            ("none", None) if sign.is_some() => wrong("`None` takes no sign"),
            ("none", None) => {
                after_none = true;
                None
            }
            ("namewidth" | "descriptionwidth", None) if sign == Some(b'-') => None,
            ("namewidth" | "descriptionwidth", None) => wrong("a width needs a number"),
            ("namewidth" | "descriptionwidth" | "iconwidth" | "iconheight", Some(_))
                if sign == Some(b'-') =>
            {
                wrong("what is taken away has no value")
            }
            ("namewidth" | "descriptionwidth", Some(value)) => {
                let number = leading_number(value);
                if number != 0 && number < least { wrong("the width is too small") } else { None }
            }
            ("iconwidth" | "iconheight" | "charset" | "type", Some(_)) => None,
            _ if after_none && sign.is_none() => wrong("`None` stands alone"),
            _ => none_of(&Word { text: text.into(), ..*word }, PLAIN),
        }
    })
}

/// `s/pattern/text/flags`, with any delimiter.
///
/// Source: `modules/filters/mod_substitute.c`, `set_pattern`.
fn wrong_substitution(word: &Word<'_>) -> Option<Wrong> {
    let is_right = |rest: &[u8]| {
        let (delimiter, rest) = rest.split_first()?;
        let mut parts = rest.splitn(3, |byte| byte == delimiter);
        let (from, _to) = (parts.next()?, parts.next()?);
        // The last delimiter may be missing; what follows it are flags.
        let flags = parts.next().unwrap_or_default().to_ascii_lowercase();
        Some(!from.is_empty() && flags.iter().all(|flag| b"infq".contains(flag)))
    };
    let rest = word.text.strip_prefix(b"s").or(word.text.strip_prefix(b"S"));
    if rest.and_then(is_right) == Some(true) {
        return None;
    }
    let finding = Finding::error(format!("{} is no substitution", show(&word.text)));
    Some((word.at, word.len, finding.hint("write `s/pattern/text/`")))
}

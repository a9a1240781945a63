//! Filters of content: whether there is one of a name, `FilterDeclare` and its relatives, `ExtFilterDefine`.
//!
//! None of them runs here; what httpd would not load is not loaded.
//!
//! Source: httpd 2.4.71 `modules/filters/mod_filter.c`, `filter_declare`, `filter_provider`,
//! `filter_protocol`; `mod_ext_filter.c`, `define_filter`, `parse_cmd`.

use milepost_syntax::Word;

use super::report::{Finding, show};
use super::values::Wrong;
use super::{Builder, Context, Directive};

/// The filters of content that come with httpd, in lower case, and their modules.
const FILTERS: &[(&str, &str)] = &[
    ("deflate", "mod_deflate.c"),
    ("inflate", "mod_deflate.c"),
    ("brotli_compress", "mod_brotli.c"),
    ("includes", "mod_include.c"),
    ("substitute", "mod_substitute.c"),
    ("sed", "mod_sed.c"),
    ("rate_limit", "mod_ratelimit.c"),
    ("buffer", "mod_buffer.c"),
    ("proxy-html", "mod_proxy_html.c"),
    ("xml2enc", "mod_xml2enc.c"),
    ("cache", "mod_cache.c"),
    ("cache_save", "mod_cache.c"),
    ("cache_out", "mod_cache.c"),
    ("cache_invalidate", "mod_cache.c"),
];

/// A filter that stands for others, as its section knows it.
pub(super) struct SmartFilter {
    name: Box<[u8]>,
    providers: Vec<Box<[u8]>>,
}

impl Builder<'_> {
    /// Whether the directive is of this file and its arguments are wrong, which is said.
    pub(super) fn filter(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &mut Context<'_>,
    ) -> bool {
        let words = directive.words();
        let wrong = match (lower, words.as_slice()) {
            (b"extfilterdefine", _) => self.define_filter(directive, context.server),
            (b"filterdeclare", [name, ..]) => {
                context.smart_filter(&name.text);
                None
            }
            (b"filterprovider", [name, provider, ..]) => {
                let wrong = self.wrong_filter(provider);
                if wrong.is_none() {
                    let filter = context.smart_filter(&name.text);
                    filter.providers.push(Box::from(&*provider.text));
                }
                wrong
            }
            (b"filterprotocol", [name, rest @ ..]) => {
                let known = context.dir.filters.iter().find(|filter| *filter.name == *name.text);
                match (known, rest) {
                    (None, _) => Some(missing(name, "filter is declared here")),
                    (Some(filter), [provider, _]) => {
                        let is_there =
                            filter.providers.iter().any(|known| **known == *provider.text);
                        (!is_there).then(|| missing(provider, "provider of the filter"))
                    }
                    (Some(_), _) => None,
                }
            }
            _ => None,
        };
        let Some((at, len, finding)) = wrong else { return false };
        self.report_at(directive, at, len, finding);
        true
    }

    /// A filter for content whose module is not loaded, or that nobody has heard of.
    ///
    /// Source: `modules/filters/mod_filter.c`, `add_filter`, `filter_bytype1`.
    pub(super) fn wrong_filter(&self, word: &Word<'_>) -> Option<Wrong> {
        let modules = &self.names.modules;
        let may_be_other = !self.ext_filters.is_empty() || !modules.are_named();
        let is_there = |name: &[u8]| {
            let found =
                FILTERS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
            found.map_or(may_be_other, |(_, module)| modules.has(module))
        };
        let missing = word.text.split(|byte| *byte == b';').find(|name| !is_there(name))?;
        let message = format!("no module that is loaded has the filter {}", show(missing));
        Some((word.at, word.len, Finding::error(message)))
    }

    /// `ExtFilterDefine name [key=value …] cmd="…"`: words are split at blanks, and a command may have quotes.
    fn define_filter(&mut self, directive: &Directive<'_>, server: usize) -> Option<Wrong> {
        let args = directive.args;
        let mut at = 0;
        let name = next_word(args, &mut at).to_ascii_lowercase();
        if self.ext_filters.iter().any(|known| known.0 == server && known.1 == name) {
            let message = format!("the filter {} is defined already", show(&name));
            return Some((0, name.len(), Finding::error(message)));
        }
        self.ext_filters.push((server, name));
        loop {
            at += args[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let start = at;
            let key = next_key(&args[at..])?;
            if key == b"cmd=" && args.get(at + key.len()) == Some(&b'"') {
                let Some(length) = quoted(&args[at + key.len() + 1..]) else {
                    let finding = Finding::error("the command does not end")
                        .hint("write `cmd=\"/path/to/program argument ...\"`");
                    return Some((start, args.len() - start, finding));
                };
                at += key.len() + length + 2;
                if length == 0 {
                    return Some((start, at - start, Finding::error("the command is missing")));
                }
                continue;
            }
            let word = next_word(args, &mut at);
            let is_right = match key {
                b"mode=" => [&b"mode=input"[..], b"mode=output"]
                    .iter()
                    .any(|mode| word.eq_ignore_ascii_case(mode)),
                b"preservescontentlength" => word.len() == key.len(),
                _ => !key.is_empty(),
            };
            if !is_right {
                let finding = Finding::error(format!("{} is not known here", show(word))).hint(
                    "write `mode=`, `intype=`, `outtype=`, `ftype=`, `enableenv=`, `disableenv=`, \
                     `preservescontentlength` or `cmd=\"…\"`",
                );
                return Some((start, word.len(), finding));
            }
        }
    }
}

impl Context<'_> {
    /// The filter of that name, declared if it is new.
    fn smart_filter(&mut self, name: &[u8]) -> &mut SmartFilter {
        let filters = &mut self.dir.filters;
        let at = filters.iter().position(|filter| &*filter.name == name).unwrap_or_else(|| {
            filters.push(SmartFilter { name: name.into(), providers: Vec::new() });
            filters.len() - 1
        });
        &mut filters[at]
    }
}

fn missing(word: &Word<'_>, what: &str) -> Wrong {
    (word.at, word.len, Finding::error(format!("no {what} that is called {}", show(&word.text))))
}

/// What stands there up to a blank; `at` is behind it then.
fn next_word<'a>(args: &'a [u8], at: &mut usize) -> &'a [u8] {
    let start = *at;
    let length = args[start..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
    *at += length;
    &args[start..*at]
}

/// The key that an argument begins with, empty if it is none; `None` at the end.
fn next_key(args: &[u8]) -> Option<&'static [u8]> {
    const KEYS: [&[u8]; 8] = [
        b"preservescontentlength",
        b"mode=",
        b"ftype=",
        b"enableenv=",
        b"disableenv=",
        b"intype=",
        b"outtype=",
        b"cmd=",
    ];
    let begins =
        |key: &&&[u8]| args.get(..key.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(key));
    (!args.is_empty()).then(|| KEYS.iter().find(begins).copied().unwrap_or_default())
}

/// How many bytes there are before the quote that ends a command; a backslash hides one.
fn quoted(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

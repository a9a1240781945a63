//! `SetHandler`, `AddHandler` and the other directives about extensions; `ForceType`, `AddDefaultCharset`,
//! `DefaultLanguage`; `Action`, `LanguagePriority`, `ForceLanguagePriority`, `MultiviewsMatch`, `TypesConfig`.
//!
//! Source: httpd 2.4.71 `modules/http/mod_mime.c`, `add_extension_info`, `remove_extension_info`,
//! `multiviews_match`; `server/core.c`, `set_sethandler`, `set_add_default_charset`; `modules/mappers/mod_actions.c`,
//! `add_action`; `modules/mappers/mod_negotiation.c`, `set_language_priority`, `set_force_priority`.

use std::sync::Arc;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::program::{ExtensionAttribute, Mime, Priority, Script};

/// Directives about extensions: what is said, and whether it is taken back.
const EXTENSIONS: &[(&[u8], ExtensionAttribute, bool)] = &[
    (b"addtype", ExtensionAttribute::MediaType, false),
    (b"addhandler", ExtensionAttribute::Handler, false),
    (b"addlanguage", ExtensionAttribute::Language, false),
    (b"addencoding", ExtensionAttribute::Encoding, false),
    (b"addcharset", ExtensionAttribute::Charset, false),
    (b"addinputfilter", ExtensionAttribute::Filter, false),
    (b"addoutputfilter", ExtensionAttribute::Filter, false),
    (b"removetype", ExtensionAttribute::MediaType, true),
    (b"removehandler", ExtensionAttribute::Handler, true),
    (b"removelanguage", ExtensionAttribute::Language, true),
    (b"removeencoding", ExtensionAttribute::Encoding, true),
    (b"removecharset", ExtensionAttribute::Charset, true),
    (b"removeinputfilter", ExtensionAttribute::Filter, true),
    (b"removeoutputfilter", ExtensionAttribute::Filter, true),
];

impl Builder<'_> {
    /// Runs a directive whose arguments are right; false if it is none of these.
    pub(super) fn mime(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &mut Context<'_>,
    ) -> bool {
        let words = directive.texts();
        let Some((first, rest)) = words.split_first() else { return false };
        if let Some((_, attribute, is_removed)) =
            EXTENSIONS.iter().find(|(name, ..)| *name == lower)
        {
            let is_handler =
                matches!(attribute, ExtensionAttribute::MediaType | ExtensionAttribute::Handler);
            if is_handler && !*is_removed {
                self.warn_of_programs(directive, &first.to_ascii_lowercase());
            }
            let mime = mime_of(context);
            let extensions = if *is_removed { &words[..] } else { rest };
            for extension in extensions {
                let extension = extension.to_ascii_lowercase();
                let extension = extension.strip_prefix(b".").unwrap_or(&extension);
                // `RemoveType` takes the type of `TypesConfig` away too, so it sets an empty one.
                if *is_removed && *attribute != ExtensionAttribute::MediaType {
                    mime.removed.push((extension.into(), *attribute));
                } else {
                    let value = if *is_removed { Vec::new() } else { first.to_ascii_lowercase() };
                    let known = mime.extensions.entry(extension.into()).or_default();
                    *known.attribute(*attribute) = Some(value.into());
                }
            }
            return true;
        }
        match lower {
            b"sethandler" => {
                let is_none = first.eq_ignore_ascii_case(b"none");
                let handler = if is_none { Vec::new() } else { first.to_ascii_lowercase() };
                if handler.starts_with(b"proxy:") {
                    let finding =
                        Finding::warning("no file is handed to a backend: requests get a 503")
                            .hint("send requests there with `ProxyPass`, over HTTP/1.1");
                    self.report(directive, finding);
                }
                self.warn_of_programs(directive, &handler);
                mime_of(context).handler = Some(handler.into());
            }
            b"forcetype" => {
                let is_none = first.eq_ignore_ascii_case(b"none");
                let forced = if is_none { Vec::new() } else { first.to_ascii_lowercase() };
                self.warn_of_programs(directive, &forced);
                mime_of(context).forced_type = Some(forced.into());
            }
            b"adddefaultcharset" => {
                let charset = match first.to_ascii_lowercase().as_slice() {
                    b"off" => &b""[..],
                    b"on" => b"iso-8859-1",
                    _ => first,
                };
                mime_of(context).default_charset = Some(charset.into());
            }
            b"defaultlanguage" => {
                mime_of(context).default_language = Some((**first).into());
            }
            b"defaulttype" => {
                if !first.eq_ignore_ascii_case(b"none") {
                    let message = "`DefaultType` is no more: a file of unknown type has no type";
                    let hint = "write `ForceType` in a section, or `AddType` for an extension";
                    self.report(directive, Finding::warning(message).hint(hint));
                }
            }
            b"action" => {
                if rest.get(1).is_some_and(|word| !word.eq_ignore_ascii_case(b"virtual")) {
                    let finding = Finding::error(format!("{} is not `virtual`", show(&rest[1])));
                    self.report(directive, finding);
                    return true;
                }
                mime_of(context).actions.push(Script {
                    name: first.to_ascii_lowercase().into(),
                    script: (*rest[0]).into(),
                    is_virtual: rest.len() > 1,
                });
            }
            b"languagepriority" => {
                mime_of(context).languages.extend(words.iter().map(|word| (**word).into()));
            }
            b"forcelanguagepriority" => {
                let says = |name: &[u8]| words.iter().any(|word| word.eq_ignore_ascii_case(name));
                let none = Priority { prefer: false, fallback: false };
                let known = mime_of(context).priority.get_or_insert(none);
                known.prefer |= says(b"prefer");
                known.fallback |= says(b"fallback");
            }
            b"multiviewsmatch" if self.in_location => {
                let finding = Finding::error("`MultiviewsMatch` cannot stand in `<Location>`");
                self.report(directive, finding.hint("put it into a `<Directory>`"));
            }
            b"multiviewsmatch" => {
                let says = |name: &[u8]| words.iter().any(|word| word.eq_ignore_ascii_case(name));
                let any = says(b"any");
                let mime = mime_of(context);
                mime.match_handlers = Some(any || says(b"handlers"));
                mime.match_filters = Some(any || says(b"filters"));
            }
            b"typesconfig" => self.settings.types_file = Some(self.resolve(first)),
            _ => return false,
        }
        true
    }

    /// Says that files with this handler or type are programs, which are not run here.
    fn warn_of_programs(&mut self, directive: &Directive<'_>, handler: &[u8]) {
        if self.names.modules.run(handler) {
            let finding =
                Finding::warning("no programs are run here: requests for such files get a 503")
                    .hint(
                        "send requests to a server that runs them, with `ProxyPass`, over HTTP/1.1",
                    );
            self.report(directive, finding);
        }
    }
}

/// What the section says of handlers and extensions, made if it is new.
fn mime_of<'c>(context: &'c mut Context<'_>) -> &'c mut Mime {
    Arc::make_mut(context.dir.config.mime.get_or_insert_default())
}

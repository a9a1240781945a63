//! What a section says of handlers, and of what the extensions of file names mean.

use std::collections::BTreeMap;

/// What mod_mime, mod_actions, mod_negotiation and `SetHandler` go by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mime {
    /// `SetHandler`; empty for `None`.
    pub(crate) handler: Option<Box<[u8]>>,
    /// `ForceType`; empty for `None`.
    pub(crate) forced_type: Option<Box<[u8]>>,
    /// `AddDefaultCharset`; empty for `Off`.
    pub(crate) default_charset: Option<Box<[u8]>>,
    /// `DefaultLanguage`
    pub(crate) default_language: Option<Box<[u8]>>,
    /// By extension, in lower case and without its dot.
    pub(crate) extensions: BTreeMap<Box<[u8]>, Extension>,
    /// What was said further out and no longer holds: extension and attribute.
    pub(crate) removed: Vec<(Box<[u8]>, Attribute)>,
    /// `Action`
    pub(crate) actions: Vec<Script>,
    /// `LanguagePriority`
    pub(crate) languages: Vec<Box<[u8]>>,
    /// `ForceLanguagePriority`
    pub(crate) priority: Option<Priority>,
    /// `MultiviewsMatch`: whether handlers and filters make an extension known.
    pub(crate) match_handlers: Option<bool>,
    pub(crate) match_filters: Option<bool>,
}

/// When `LanguagePriority` chooses between languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Priority {
    /// When the client wants several as much.
    pub(crate) prefer: bool,
    /// When the client wants none of them.
    pub(crate) fallback: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Priority { prefer: true, fallback: false }
    }
}

/// An `Action`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    /// The handler or the media type that it is for, in lower case.
    pub(crate) name: Box<[u8]>,
    /// Where its requests go.
    pub(crate) script: Box<[u8]>,
    /// `virtual`: the file need not be there.
    pub(crate) is_virtual: bool,
}

/// What an extension says of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extension {
    /// `AddType`; empty for `RemoveType`.
    pub(crate) media_type: Option<Box<[u8]>>,
    /// `AddHandler`
    pub(crate) handler: Option<Box<[u8]>>,
    /// `AddLanguage`
    pub(crate) language: Option<Box<[u8]>>,
    /// `AddEncoding`
    pub(crate) encoding: Option<Box<[u8]>>,
    /// `AddCharset`
    pub(crate) charset: Option<Box<[u8]>>,
    /// `AddInputFilter`, `AddOutputFilter`
    pub(crate) filter: Option<Box<[u8]>>,
}

/// The attributes of an [`Extension`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribute {
    MediaType,
    Handler,
    Language,
    Encoding,
    Charset,
    Filter,
}

impl Extension {
    /// The attribute itself.
    pub(crate) fn attribute(&mut self, attribute: Attribute) -> &mut Option<Box<[u8]>> {
        match attribute {
            Attribute::MediaType => &mut self.media_type,
            Attribute::Handler => &mut self.handler,
            Attribute::Language => &mut self.language,
            Attribute::Encoding => &mut self.encoding,
            Attribute::Charset => &mut self.charset,
            Attribute::Filter => &mut self.filter,
        }
    }
}

impl Mime {
    /// Lets the more specific `over` override.
    pub(crate) fn merge(&mut self, over: &Mime) {
        let override_with = |own: &mut Option<Box<[u8]>>, over: &Option<Box<[u8]>>| {
            if over.is_some() {
                own.clone_from(over);
            }
        };
        override_with(&mut self.handler, &over.handler);
        override_with(&mut self.forced_type, &over.forced_type);
        override_with(&mut self.default_charset, &over.default_charset);
        override_with(&mut self.default_language, &over.default_language);
        for (extension, attribute) in &over.removed {
            if let Some(known) = self.extensions.get_mut(extension) {
                *known.attribute(*attribute) = None;
            }
        }
        for (name, over) in &over.extensions {
            let known = self.extensions.entry(name.clone()).or_default();
            let mut over = over.clone();
            for attribute in [
                Attribute::MediaType,
                Attribute::Handler,
                Attribute::Language,
                Attribute::Encoding,
                Attribute::Charset,
                Attribute::Filter,
            ] {
                if let Some(value) = over.attribute(attribute).take() {
                    *known.attribute(attribute) = Some(value);
                }
            }
        }
        for action in &over.actions {
            self.actions.retain(|known| known.name != action.name);
            self.actions.push(action.clone());
        }
        if !over.languages.is_empty() {
            self.languages.clone_from(&over.languages);
        }
        self.priority = over.priority.or(self.priority);
        self.match_handlers = over.match_handlers.or(self.match_handlers);
        self.match_filters = over.match_filters.or(self.match_filters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_can_be_said_anew() {
        let with = |handler: &[u8]| {
            let mut mime = Mime::default();
            let extension = Extension { handler: Some(handler.into()), ..Extension::default() };
            mime.extensions.insert((*b"php").into(), extension);
            mime
        };
        let mut base = with(b"outer");
        let mut over = with(b"inner");
        over.removed.push(((*b"php").into(), Attribute::Handler));
        base.merge(&over);
        assert_eq!(base.extensions[&b"php"[..]].handler.as_deref(), Some(&b"inner"[..]));
        let removed = Mime { removed: over.removed, ..Mime::default() };
        base.merge(&removed);
        assert_eq!(base.extensions[&b"php"[..]].handler, None);
    }
}

//! When answers expire: what mod_expires goes by.

/// `ExpiresActive`, `ExpiresDefault`, `ExpiresByType` of a section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Expires {
    /// `ExpiresActive`
    pub(crate) active: Option<bool>,
    /// `ExpiresDefault`
    pub(crate) default: Option<Expiry>,
    /// `ExpiresByType`: media types, or `text/*`, in lower case.
    pub(crate) by_type: Vec<(Box<[u8]>, Expiry)>,
}

/// A time from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expiry {
    pub(crate) from: ExpiryBase,
    pub(crate) seconds: i64,
}

/// The moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpiryBase {
    /// `access`: the request.
    Access,
    /// `modification`: the last change of the file.
    Modification,
}

impl Expires {
    /// Lets the more specific `over` override.
    pub(crate) fn merge(&mut self, over: &Expires) {
        self.active = over.active.or(self.active);
        self.default = over.default.or(self.default);
        for (media_type, expiry) in &over.by_type {
            self.set(media_type, *expiry);
        }
    }

    /// Says what holds for a media type, in lower case.
    pub(crate) fn set(&mut self, media_type: &[u8], expiry: Expiry) {
        self.by_type.retain(|(known, _)| **known != *media_type);
        self.by_type.push((media_type.into(), expiry));
    }

    /// What holds for an answer of this media type, if anything does.
    pub(crate) fn find(&self, media_type: Option<&[u8]>) -> Option<Expiry> {
        if self.active != Some(true) {
            return None;
        }
        let named = media_type.filter(|_| !self.by_type.is_empty()).and_then(|media_type| {
            let end = media_type.iter().position(|&byte| byte == b';' || byte == b' ');
            let name = media_type[..end.unwrap_or(media_type.len())].to_ascii_lowercase();
            let find = |wanted: &[u8]| {
                let found = self.by_type.iter().find(|(known, _)| **known == *wanted);
                found.map(|(_, expiry)| *expiry)
            };
            find(&name).or_else(|| {
                let slash = memchr::memchr(b'/', &name)?;
                find(&[&name[..=slash], b"*"].concat())
            })
        });
        named.or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_counts_before_its_kind_and_that_before_the_default() {
        let after = |seconds| Expiry { from: ExpiryBase::Access, seconds };
        let mut expires = Expires {
            active: Some(true),
            default: Some(after(1)),
            by_type: vec![((*b"text/*").into(), after(2)), ((*b"text/css").into(), after(3))],
        };
        for (media_type, expected) in [
            (Some("text/css; charset=utf-8"), 3),
            (Some("Text/CSS"), 3),
            (Some("text/html"), 2),
            (Some("image/png"), 1),
            (None, 1),
        ] {
            let found = expires.find(media_type.map(str::as_bytes));
            assert_eq!(found, Some(after(expected)), "{media_type:?}");
        }
        expires.merge(&Expires { active: Some(false), ..Expires::default() });
        assert_eq!(expires.find(None), None);
    }
}

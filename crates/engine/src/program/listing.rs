//! What a section says of lists of directories.
//!
//! Source: httpd 2.4.71 `modules/generators/mod_autoindex.c`, `autoindex_config_struct`,
//! `merge_autoindex_configs`, `find_item`, `find_desc`, `ignore_entry`.

use std::ops::{BitOr, BitOrAssign};

use milepost_pcre::Case;

use crate::wildcard;

/// What mod_autoindex goes by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) options: IndexOptions,
    pub(crate) name_width: Option<Width>,
    pub(crate) description_width: Option<Width>,
    /// Width and height of icons, in pixels; `None`: not said in the page.
    pub(crate) icon_size: [Option<u32>; 2],
    /// `Charset=`, `Type=`
    pub(crate) charset: Option<Box<[u8]>>,
    pub(crate) media_type: Option<Box<[u8]>>,
    /// `IndexOrderDefault`: column, and whether downwards.
    pub(crate) order: Option<(Column, bool)>,
    /// `DefaultIcon`, `IndexStyleSheet`, `IndexHeadInsert`
    pub(crate) default_icon: Option<Box<[u8]>>,
    pub(crate) style_sheet: Option<Box<[u8]>>,
    pub(crate) head_insert: Option<Box<[u8]>>,
    /// `AddIcon`, `AddAlt` and their relatives.
    pub(crate) icons: Vec<Attached>,
    pub(crate) texts: Vec<Attached>,
    /// `HeaderName`, `ReadmeName`
    pub(crate) headers: Vec<Attached>,
    pub(crate) readmes: Vec<Attached>,
    /// `AddDescription`
    pub(crate) descriptions: Vec<Description>,
    /// `IndexIgnore`, and whether `IndexIgnoreReset` drops what was said further out.
    pub(crate) ignored: Vec<Attached>,
    pub(crate) ignores_anew: bool,
}

/// How wide a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// In bytes.
    Fixed(usize),
    /// As wide as what stands in it.
    Needed,
}

/// What a list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Name,
    Modified,
    Size,
    Description,
}

impl Column {
    pub(crate) const ALL: [Column; 4] =
        [Column::Name, Column::Modified, Column::Size, Column::Description];

    /// Its letter in queries.
    pub(crate) fn letter(self) -> u8 {
        match self {
            Column::Name => b'N',
            Column::Modified => b'M',
            Column::Size => b'S',
            Column::Description => b'D',
        }
    }
}

/// Something that is for some of the entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attached {
    /// What the path of an entry begins with; may hold wildcards.
    pub(crate) below: Box<[u8]>,
    pub(crate) to: AttachedTo,
    pub(crate) value: Box<[u8]>,
}

/// Which entries those are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttachedTo {
    /// Whose path is like this; `^^DIRECTORY^^` and `^^BLANKICON^^` are names, too.
    Path(Box<[u8]>),
    MediaType(Box<[u8]>),
    Encoding(Box<[u8]>),
    /// All of them.
    All,
}

/// An `AddDescription`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) pattern: Box<[u8]>,
    /// The pattern has wildcards; otherwise it stands somewhere in the name.
    pub(crate) has_wildcards: bool,
    /// It is for the whole path.
    pub(crate) is_path: bool,
    pub(crate) text: Box<[u8]>,
}

/// An entry, as far as icons and texts depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed<'e> {
    pub(crate) path: &'e [u8],
    /// `None`: only paths count.
    pub(crate) media_type: Option<&'e [u8]>,
    pub(crate) encoding: Option<&'e [u8]>,
}

impl<'e> Listed<'e> {
    /// An entry, or a name like `^^DIRECTORY^^`, by its path alone.
    pub(crate) fn at(path: &'e [u8]) -> Listed<'e> {
        Listed { path, media_type: None, encoding: None }
    }
}

/// The first of `list` that is for an entry.
pub(crate) fn find<'l>(list: &'l [Attached], entry: Listed<'_>) -> Option<&'l [u8]> {
    let is_name = entry.path.first() == Some(&b'^');
    let like = |pattern: &[u8], text: &[u8]| wildcard::matches_name(pattern, text);
    let is_for = |item: &&Attached| {
        (is_name || has_path(&item.below, entry.path))
            && match &item.to {
                AttachedTo::All => true,
                AttachedTo::Path(path) => has_path(path, entry.path),
                AttachedTo::MediaType(pattern) => {
                    entry.encoding.is_none() && entry.media_type.is_some_and(|it| like(pattern, it))
                }
                AttachedTo::Encoding(pattern) => entry.encoding.is_some_and(|it| like(pattern, it)),
            }
    };
    list.iter().find(is_for).map(|item| &*item.value)
}

/// Whether a path is like a pattern of `*` and `?`.
fn has_path(pattern: &[u8], path: &[u8]) -> bool {
    // Brackets mean nothing here, and a backslash neither.
    let mut plain = Vec::with_capacity(pattern.len());
    for &byte in pattern {
        if matches!(byte, b'[' | b'\\') {
            plain.push(b'\\');
        }
        plain.push(byte);
    }
    wildcard::matches_text(&plain, path, Case::Sensitive)
}

impl Listing {
    /// What `AddDescription` says of the file at `path`.
    pub(crate) fn description(&self, path: &[u8]) -> Option<&[u8]> {
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
        let is_for = |it: &&Description| {
            let text = if it.is_path { path } else { name };
            if it.has_wildcards {
                wildcard::matches_text(&it.pattern, text, Case::Sensitive)
            } else {
                memchr::memmem::find(text, &it.pattern).is_some()
            }
        };
        self.descriptions.iter().find(is_for).map(|it| &*it.text)
    }

    /// Whether the file at `path` is not listed.
    pub(crate) fn ignores(&self, path: &[u8]) -> bool {
        let last = |path: &[u8]| memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
        let name = &path[last(path)..];
        self.ignored.iter().any(|item| {
            let is_like = |pattern: &[u8]| has_path(&pattern[last(pattern)..], name);
            has_path(&item.below, path) && is_like(&item.value)
        })
    }

    /// Lets the more specific `over` override.
    pub(crate) fn merge(&mut self, over: &Listing) {
        self.options.merge(over.options);
        self.name_width = over.name_width.or(self.name_width);
        self.description_width = over.description_width.or(self.description_width);
        for (own, over) in self.icon_size.iter_mut().zip(over.icon_size) {
            *own = over.or(*own);
        }
        self.order = over.order.or(self.order);
        let texts = [
            (&mut self.charset, &over.charset),
            (&mut self.media_type, &over.media_type),
            (&mut self.default_icon, &over.default_icon),
            (&mut self.style_sheet, &over.style_sheet),
            (&mut self.head_insert, &over.head_insert),
        ];
        for (own, over) in texts {
            if over.is_some() {
                own.clone_from(over);
            }
        }
        if over.ignores_anew {
            self.ignored.clear();
        }
        let lists = [
            (&mut self.icons, &over.icons),
            (&mut self.texts, &over.texts),
            (&mut self.headers, &over.headers),
            (&mut self.readmes, &over.readmes),
            (&mut self.ignored, &over.ignored),
        ];
        for (own, over) in lists {
            own.splice(0..0, over.iter().cloned());
        }
        self.descriptions.splice(0..0, over.descriptions.iter().cloned());
    }
}

/// `IndexOptions`: what is set, and what signs add and take away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IndexOptions {
    set: ListFlags,
    added: ListFlags,
    removed: ListFlags,
}

impl IndexOptions {
    /// Reads one option with its sign.
    pub(crate) fn say(&mut self, sign: Option<u8>, flag: ListFlags) {
        match sign {
            None => *self = IndexOptions { set: self.set | flag, ..IndexOptions::default() },
            Some(b'+') => {
                self.added |= flag;
                self.removed = self.removed.without(flag);
            }
            Some(_) => {
                self.removed |= flag;
                self.added = self.added.without(flag);
            }
        }
    }

    /// `None`
    pub(crate) fn say_none(&mut self) {
        *self = IndexOptions { set: ListFlags::NONE, ..IndexOptions::default() };
    }

    /// What holds.
    pub(crate) fn flags(self) -> ListFlags {
        (self.set.without(ListFlags::NONE) | self.added).without(self.removed)
    }

    fn merge(&mut self, over: IndexOptions) {
        if over.set != ListFlags::default() {
            // What is said without a sign leaves nothing of what was said further out, nor of what has a
            // sign beside it.
            *self = IndexOptions { set: over.set, ..IndexOptions::default() };
        } else {
            self.added = (self.added | over.added).without(over.removed);
            self.removed |= over.removed;
            self.set = self.set.without(ListFlags::NONE);
            self.set = IndexOptions { set: self.set, ..*self }.flags();
        }
    }
}

/// Options of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListFlags(u32);

impl ListFlags {
    const NONE: ListFlags = ListFlags(1);
    pub(crate) const ICONS_ARE_LINKS: ListFlags = ListFlags(1 << 1);
    pub(crate) const SCAN_TITLES: ListFlags = ListFlags(1 << 2);
    pub(crate) const NO_ICON: ListFlags = ListFlags(1 << 3);
    pub(crate) const NO_MODIFIED: ListFlags = ListFlags(1 << 4);
    pub(crate) const NO_SIZE: ListFlags = ListFlags(1 << 5);
    pub(crate) const NO_DESCRIPTION: ListFlags = ListFlags(1 << 6);
    pub(crate) const NO_PREAMBLE: ListFlags = ListFlags(1 << 7);
    pub(crate) const NO_SORTING: ListFlags = ListFlags(1 << 8);
    pub(crate) const NO_RULES: ListFlags = ListFlags(1 << 9);
    pub(crate) const FOLDERS_FIRST: ListFlags = ListFlags(1 << 10);
    pub(crate) const VERSION_SORT: ListFlags = ListFlags(1 << 11);
    pub(crate) const FANCY: ListFlags = ListFlags(1 << 12);
    pub(crate) const TABLE: ListFlags = ListFlags(1 << 13);
    pub(crate) const IGNORE_CLIENT: ListFlags = ListFlags(1 << 14);
    pub(crate) const IGNORE_CASE: ListFlags = ListFlags(1 << 15);
    pub(crate) const XHTML: ListFlags = ListFlags(1 << 16);
    pub(crate) const SHOW_FORBIDDEN: ListFlags = ListFlags(1 << 17);
    pub(crate) const OLD_DATE: ListFlags = ListFlags(1 << 18);
    pub(crate) const TRACK_MODIFIED: ListFlags = ListFlags(1 << 19);

    /// An option by its name in lower case.
    pub(crate) fn named(lower: &[u8]) -> Option<ListFlags> {
        Some(match lower {
            b"fancyindexing" => ListFlags::FANCY,
            b"foldersfirst" => ListFlags::FOLDERS_FIRST,
            b"htmltable" => ListFlags::TABLE,
            b"iconsarelinks" => ListFlags::ICONS_ARE_LINKS,
            b"ignorecase" => ListFlags::IGNORE_CASE,
            b"ignoreclient" => ListFlags::IGNORE_CLIENT,
            b"scanhtmltitles" => ListFlags::SCAN_TITLES,
            b"suppresscolumnsorting" => ListFlags::NO_SORTING,
            b"suppressdescription" => ListFlags::NO_DESCRIPTION,
            b"suppresshtmlpreamble" => ListFlags::NO_PREAMBLE,
            b"suppressicon" => ListFlags::NO_ICON,
            b"suppresslastmodified" => ListFlags::NO_MODIFIED,
            b"suppresssize" => ListFlags::NO_SIZE,
            b"suppressrules" => ListFlags::NO_RULES,
            b"trackmodified" => ListFlags::TRACK_MODIFIED,
            b"versionsort" => ListFlags::VERSION_SORT,
            b"xhtml" => ListFlags::XHTML,
            b"showforbidden" => ListFlags::SHOW_FORBIDDEN,
            b"useolddateformat" => ListFlags::OLD_DATE,
            _ => return None,
        })
    }

    /// Whether any of `flags` is on.
    pub(crate) fn has(self, flags: ListFlags) -> bool {
        self.0 & flags.0 != 0
    }

    pub(crate) fn without(self, flags: ListFlags) -> ListFlags {
        ListFlags(self.0 & !flags.0)
    }
}

impl BitOr for ListFlags {
    type Output = ListFlags;

    fn bitor(self, other: ListFlags) -> ListFlags {
        ListFlags(self.0 | other.0)
    }
}

impl BitOrAssign for ListFlags {
    fn bitor_assign(&mut self, other: ListFlags) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &str) -> IndexOptions {
        let mut options = IndexOptions::default();
        for word in words.split_ascii_whitespace() {
            let sign = word.bytes().next().filter(|sign| b"+-".contains(sign));
            let name = word.trim_start_matches(['+', '-']).to_ascii_lowercase();
            match ListFlags::named(name.as_bytes()) {
                Some(flag) => options.say(sign, flag),
                None => options.say_none(),
            }
        }
        options
    }

    #[test]
    fn signs_change_what_is_said_further_out() {
        for (base, over, expected) in [
            ("FancyIndexing", "+XHTML", "FancyIndexing XHTML"),
            ("FancyIndexing +XHTML", "-FancyIndexing", "XHTML"),
            ("FancyIndexing XHTML", "HTMLTable", "HTMLTable"),
            ("FancyIndexing", "None", ""),
            ("None", "+XHTML", "XHTML"),
            ("", "FancyIndexing +XHTML", "FancyIndexing"),
            ("+XHTML", "+FancyIndexing -XHTML", "FancyIndexing"),
        ] {
            let mut merged = options(base);
            merged.merge(options(over));
            assert_eq!(merged.flags(), options(expected).flags(), "{base}, {over}");
        }
    }
}

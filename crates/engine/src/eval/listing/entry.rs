//! An entry of a list, and which of two comes first.
//!
//! Source: httpd 2.4.71 `modules/generators/mod_autoindex.c`, `dsortf`; apr 1.7
//! `strings/apr_strnatcmp.c`.

use std::cmp::Ordering;

use super::Wanted;
use crate::program::{Column, ListFlags, Listed, Listing, find_attached};

/// One line of a list.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// With a slash at the end of a directory; the whole path of the parent.
    pub(super) name: Vec<u8>,
    pub(super) is_parent: bool,
    pub(super) is_directory: bool,
    pub(super) size: Option<u64>,
    /// Seconds since the epoch, and what local time is ahead of UTC by then.
    pub(super) modified: Option<(i64, i32)>,
    pub(super) modified_ns: i128,
    pub(super) icon: Option<Vec<u8>>,
    pub(super) text: Option<Vec<u8>>,
    pub(super) description: Option<Vec<u8>>,
}

impl Entry {
    /// Finds icon and text of a directory, by its path or as directories have them.
    pub(super) fn attach_as_directory(&mut self, listing: &Listing, file: &[u8], text: &[u8]) {
        let find = |list| {
            let own = find_attached(list, Listed::at(file));
            own.or_else(|| find_attached(list, Listed::at(b"^^DIRECTORY^^"))).map(<[u8]>::to_vec)
        };
        self.icon = find(&listing.icons);
        self.text = Some(find(&listing.texts).unwrap_or_else(|| text.to_vec()));
    }

    /// Which of two comes first. The parent does, and directories if they are to.
    pub(super) fn compare(&self, other: &Entry, wanted: &Wanted) -> Ordering {
        let folder =
            |entry: &Entry| entry.is_directory && wanted.flags.has(ListFlags::FOLDERS_FIRST);
        let place = |entry: &Entry| match (entry.is_parent, folder(entry)) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        let (left, right) = if wanted.downwards { (other, self) } else { (self, other) };
        let by_column = || match wanted.column {
            Column::Name => Ordering::Equal,
            Column::Modified => left.modified_ns.cmp(&right.modified_ns),
            Column::Size => left.size.cmp(&right.size),
            Column::Description => {
                let text = |entry: &'_ Entry| entry.description.clone().unwrap_or_default();
                let (left, right) = (text(left), text(right));
                if wanted.flags.has(ListFlags::VERSION_SORT) {
                    natural(&left, &right, false)
                } else {
                    left.cmp(&right)
                }
            }
        };
        let by_name = || left.compare_names(right, wanted.flags);
        place(self).cmp(&place(other)).then_with(by_column).then_with(by_name)
    }

    fn compare_names(&self, other: &Entry, flags: ListFlags) -> Ordering {
        let folds = flags.has(ListFlags::IGNORE_CASE);
        if flags.has(ListFlags::VERSION_SORT) {
            return natural(&self.name, &other.name, folds);
        }
        if folds {
            return self.name.to_ascii_lowercase().cmp(&other.name.to_ascii_lowercase());
        }
        self.name.cmp(&other.name)
    }
}

/// Compares text in which numbers count as such. Blanks do not count.
fn natural(left: &[u8], right: &[u8], folds: bool) -> Ordering {
    let (mut left, mut right) = (left, right);
    loop {
        left = left.trim_ascii_start();
        right = right.trim_ascii_start();
        let (Some(&a), Some(&b)) = (left.first(), right.first()) else {
            return left.len().min(1).cmp(&right.len().min(1));
        };
        if a.is_ascii_digit() && b.is_ascii_digit() {
            let of_numbers = if a == b'0' || b == b'0' {
                compare_fractions(left, right)
            } else {
                compare_numbers(left, right)
            };
            if of_numbers != Ordering::Equal {
                return of_numbers;
            }
        }
        let fold = |byte: u8| if folds { byte.to_ascii_uppercase() } else { byte };
        match fold(a).cmp(&fold(b)) {
            Ordering::Equal => (left, right) = (&left[1..], &right[1..]),
            different => return different,
        }
    }
}

fn digits(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

/// The longer of two numbers is the larger one.
fn compare_numbers(left: &[u8], right: &[u8]) -> Ordering {
    let (left, right) = (digits(left), digits(right));
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// Digits after a leading zero are compared one by one.
fn compare_fractions(left: &[u8], right: &[u8]) -> Ordering {
    digits(left).cmp(digits(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        for (left, right) in
            [("pic9", "pic10"), ("a1.2", "a1.10"), ("x01", "x1"), ("a b", "ac"), ("a", "a1")]
        {
            assert_eq!(natural(left.as_bytes(), right.as_bytes(), false), Ordering::Less, "{left}");
            assert_eq!(natural(right.as_bytes(), left.as_bytes(), false), Ordering::Greater);
        }
        assert_eq!(natural(b"Pic 2", b"pic2", true), Ordering::Equal);
    }
}

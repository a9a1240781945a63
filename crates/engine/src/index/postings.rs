//! Lists of rule numbers, each in rising order.
//!
//! A million rules under a million keys are a million lists of one: such a list is the rule's number itself,
//! and only longer ones have links in an array. Lists are made from their ends, the last rule first, so that
//! nobody needs to know where one ends.

/// Tells a link's number from a rule's. Rules are fewer than lines in 4 GiB of text, so the bit is free.
const IS_LINK: u32 = 1 << 31;

/// A list in a [`Postings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List(u32);

impl List {
    pub(super) const EMPTY: List = List(u32::MAX);
}

impl Default for List {
    fn default() -> Self {
        List::EMPTY
    }
}

/// The links of all lists of an index.
#[derive(Debug, Default)]
pub(super) struct Postings {
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    rule: u32,
    rest: List,
}

impl Postings {
    /// Puts `rule`, which is not larger than the first of `list`, before it; a repetition is dropped.
    pub(super) fn push_front(&mut self, list: &mut List, rule: u32) {
        if let Some((first, _)) = self.split(*list) {
            debug_assert!(rule <= first, "rules are filed from the last to the first");
            if first == rule {
                return;
            }
            let link = self.links.len() as u32;
            self.links.push(Link { rule, rest: *list });
            *list = List(link | IS_LINK);
        } else {
            *list = List(rule);
        }
    }

    pub(super) fn iter(&self, mut list: List) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let (first, rest) = self.split(list)?;
            list = rest;
            Some(first)
        })
    }

    /// The first rule of a list and the list of the others.
    #[inline]
    fn split(&self, list: List) -> Option<(u32, List)> {
        if list == List::EMPTY {
            None
        } else if list.0 & IS_LINK == 0 {
            Some((list.0, List::EMPTY))
        } else {
            let Link { rule, rest } = self.links[(list.0 & !IS_LINK) as usize];
            Some((rule, rest))
        }
    }
}

/// Merges the lists that a string has called up.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    lists: Vec<List>,
}

impl Cursor {
    pub(super) fn clear(&mut self) {
        self.lists.clear();
    }

    #[inline]
    pub(super) fn add(&mut self, list: List) {
        if list != List::EMPTY {
            self.lists.push(list);
        }
    }

    /// The smallest rule from `from` on. `from` must not fall between two calls, unless the lists are
    /// called up anew.
    pub(super) fn next(&mut self, from: u32, postings: &Postings) -> Option<u32> {
        let mut smallest = None;
        let mut at = 0;
        while let Some(list) = self.lists.get_mut(at) {
            match postings.split(*list) {
                Some((rule, rest)) if rule < from => *list = rest,
                Some((rule, _)) => {
                    smallest = Some(smallest.map_or(rule, |smallest: u32| smallest.min(rule)));
                    at += 1;
                }
                None => {
                    self.lists.swap_remove(at);
                }
            }
        }
        smallest
    }
}

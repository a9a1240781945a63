//! Lists of rule numbers, each in rising order, kept as links in one array.
//!
//! A million rules under a million keys are a million lists of one: a list must cost two numbers.

const NONE: u32 = u32::MAX;

/// A list in a [`Postings`].
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> Self {
        List { head: NONE, tail: NONE }
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
    next: u32,
}

impl Postings {
    /// Appends `rule`, which is not smaller than the last of `list`; a repetition is dropped.
    pub(super) fn push(&mut self, list: &mut List, rule: u32) {
        let new = self.links.len() as u32;
        if list.tail == NONE {
            list.head = new;
        } else {
            let tail = &mut self.links[list.tail as usize];
            debug_assert!(tail.rule <= rule, "rules are filed in order");
            if tail.rule == rule {
                return;
            }
            tail.next = new;
        }
        list.tail = new;
        self.links.push(Link { rule, next: NONE });
    }

    pub(super) fn reserve(&mut self, rules: usize) {
        self.links.reserve_exact(rules);
    }

    pub(super) fn iter(&self, list: List) -> impl Iterator<Item = u32> {
        let mut at = list.head;
        std::iter::from_fn(move || {
            let link = self.links.get(at as usize)?;
            at = link.next;
            Some(link.rule)
        })
    }
}

/// Merges the lists that a string has called up.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    heads: Vec<u32>,
}

impl Cursor {
    pub(super) fn clear(&mut self) {
        self.heads.clear();
    }

    pub(super) fn add(&mut self, list: List) {
        if list.head != NONE {
            self.heads.push(list.head);
        }
    }

    /// The smallest rule from `from` on. `from` must not fall between two calls, unless the lists are
    /// called up anew.
    pub(super) fn next(&mut self, from: u32, postings: &Postings) -> Option<u32> {
        let mut smallest = NONE;
        let mut at = 0;
        while at < self.heads.len() {
            let mut link = postings.links[self.heads[at] as usize];
            while link.rule < from && link.next != NONE {
                self.heads[at] = link.next;
                link = postings.links[link.next as usize];
            }
            if link.rule < from {
                self.heads.swap_remove(at);
                continue;
            }
            smallest = smallest.min(link.rule);
            at += 1;
        }
        (smallest != NONE).then_some(smallest)
    }
}

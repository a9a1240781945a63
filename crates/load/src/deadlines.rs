//! Timeouts of all connections without a timer each.
//!
//! Every request may take the same time, so deadlines come in the order in which they were set: a
//! list with the earliest in front, linked through an array. Setting, clearing and looking are a few
//! memory accesses, and the memory is constant.

/// Marks the end of the list, and an index that is not in it.
const NONE: u32 = u32::MAX;

/// A queue of indices with deadlines that never decrease.
#[derive(Debug)]
pub(crate) struct Deadlines {
    links: Vec<Link>,
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
    at: u64,
    set: bool,
}

impl Deadlines {
    /// Room for the indices below `count`.
    pub(crate) fn new(count: usize) -> Self {
        let mut deadlines = Self { links: Vec::new(), first: NONE, last: NONE };
        deadlines.grow(count);
        deadlines
    }

    /// Makes room for the indices below `count`.
    pub(crate) fn grow(&mut self, count: usize) {
        let link = Link { before: NONE, after: NONE, at: 0, set: false };
        self.links.resize(count.max(self.links.len()), link);
    }

    /// Gives `index` the deadline `at`, in place of the one that it had. `at` must not be earlier
    /// than any deadline set before.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, at: u64) {
        self.clear(index);
        let before = self.last;
        self.links[index] = Link { before, after: NONE, at, set: true };
        match before {
            NONE => self.first = index as u32,
            before => self.links[before as usize].after = index as u32,
        }
        self.last = index as u32;
    }

    /// Takes the deadline of `index` away, if it has one.
    #[inline]
    pub(crate) fn clear(&mut self, index: usize) {
        let Link { before, after, set, .. } = self.links[index];
        if !set {
            return;
        }
        self.links[index].set = false;
        match before {
            NONE => self.first = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.links[after as usize].before = before,
        }
    }

    /// The index with the earliest deadline, and when that is.
    #[inline]
    pub(crate) fn first(&self) -> Option<(usize, u64)> {
        (self.first != NONE).then(|| (self.first as usize, self.links[self.first as usize].at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_plain_list(steps in proptest::collection::vec((0_usize..6, any::<bool>()), 0..60)) {
            let mut deadlines = Deadlines::new(6);
            let mut plain: Vec<(usize, u64)> = Vec::new();
            for (at, (index, set)) in (0..).zip(steps) {
                plain.retain(|&(other, _)| other != index);
                if set {
                    deadlines.set(index, at);
                    plain.push((index, at));
                } else {
                    deadlines.clear(index);
                }
                prop_assert_eq!(deadlines.first(), plain.first().copied());
            }
            while let Some((index, at)) = deadlines.first() {
                prop_assert_eq!(Some((index, at)), plain.first().copied());
                plain.remove(0);
                deadlines.clear(index);
            }
            prop_assert!(plain.is_empty());
        }
    }
}

//! Names with values, in the order in which they were set: variables, request fields, response fields.
//!
//! Names are the same in any case, and may stand there more than once; the first one counts. A table is
//! cleared and filled again for each request and then allocates nothing.
//!
//! Source: APR 1.7 `tables/apr_tables.c`.

/// A table of names and values.
#[derive(Debug, Default)]
pub(crate) struct Table {
    text: Vec<u8>,
    entries: Vec<Entry>,
}

/// Where a name and its value stand in the text.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: Span,
    /// `None`: the name was taken out, and whoever else would set it must not.
    value: Option<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

impl Table {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
    }

    /// Whether nothing was set or taken out.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first value of `name`.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All values of `name`, in order.
    pub(crate) fn values<'t>(&'t self, name: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        self.iter()
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Whether `name` was set or taken out.
    pub(crate) fn decides(&self, name: &[u8]) -> bool {
        self.entries.iter().any(|entry| self.is(entry, name))
    }

    /// All names with their values, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let text = |span: Span| &self.text[span.start..span.end];
        self.entries.iter().filter_map(move |entry| Some((text(entry.name), text(entry.value?))))
    }

    /// Gives `name` one value, in the place of the first that it had.
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) {
        self.set_parts(&[name], &[value]);
    }

    /// As [`Table::set`], for a name and a value that are still in pieces.
    pub(crate) fn set_parts(&mut self, name: &[&[u8]], value: &[&[u8]]) {
        let value = Some(self.push(value));
        let name = self.push(name);
        let position = {
            let (start, end) = (name.start, name.end);
            let name = &self.text[start..end];
            self.entries.iter().position(|entry| self.is(entry, name))
        };
        match position {
            None => self.entries.push(Entry { name, value }),
            Some(at) => {
                self.entries[at].value = value;
                self.drop_after(at);
            }
        }
    }

    /// Adds a value beside those that `name` has.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        let (name, value) = (self.push(&[name]), self.push(&[value]));
        self.entries.push(Entry { name, value: Some(value) });
    }

    /// Joins a value to the first that `name` has, with a comma; sets it if there is none.
    pub(crate) fn merge(&mut self, name: &[u8], value: &[u8]) {
        let first =
            self.entries.iter().position(|entry| entry.value.is_some() && self.is(entry, name));
        match first.and_then(|at| Some((at, self.entries[at].value?))) {
            None => self.add(name, value),
            Some((at, old)) => {
                let start = self.text.len();
                self.text.extend_from_within(old.start..old.end);
                self.text.extend_from_slice(b", ");
                self.text.extend_from_slice(value);
                self.entries[at].value = Some(Span { start, end: self.text.len() });
            }
        }
    }

    /// Removes `name`.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|entry| !self.is(entry, name));
        self.entries = entries;
    }

    /// Removes `name` and remembers that it is to be absent.
    pub(crate) fn take_out(&mut self, name: &[u8]) {
        self.remove(name);
        let name = self.push(&[name]);
        self.entries.push(Entry { name, value: None });
    }

    /// Changes each value of `name` in its place. `change` appends the new value to the text, or leaves
    /// it at `false` to keep the old one.
    pub(crate) fn change(
        &mut self,
        name: &[u8],
        mut change: impl FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) {
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            let Some(value) = entry.value.filter(|_| self.is(&entry, name)) else { continue };
            let mut changed = Vec::new();
            if change(&self.text[value.start..value.end], &mut changed) {
                self.entries[at].value = Some(self.push(&[&changed]));
            }
        }
    }

    /// Makes this table a copy of `other`.
    pub(crate) fn copy_from(&mut self, other: &Table) {
        self.text.clone_from(&other.text);
        self.entries.clone_from(&other.entries);
    }

    /// Puts all entries of `over` before those that are here.
    pub(crate) fn overlay(&mut self, over: &Table) {
        let shift = self.text.len();
        self.text.extend_from_slice(&over.text);
        let shifted = |span: Span| Span { start: span.start + shift, end: span.end + shift };
        let entries = over
            .entries
            .iter()
            .map(|entry| Entry { name: shifted(entry.name), value: entry.value.map(shifted) });
        self.entries.splice(0..0, entries);
    }

    /// Puts all entries of `base` after those that are here.
    pub(crate) fn overlay_below(&mut self, base: &Table) {
        let at = self.entries.len();
        self.overlay(base);
        let below = self.entries.len() - at;
        self.entries.rotate_left(below);
    }

    fn is(&self, entry: &Entry, name: &[u8]) -> bool {
        self.text[entry.name.start..entry.name.end].eq_ignore_ascii_case(name)
    }

    /// Removes the entries after `at` that have its name.
    fn drop_after(&mut self, at: usize) {
        let name = self.entries[at].name;
        let mut number = 0;
        let text = &self.text;
        let name = &text[name.start..name.end];
        self.entries.retain(|entry| {
            let same = text[entry.name.start..entry.name.end].eq_ignore_ascii_case(name);
            number += 1;
            number <= at + 1 || !same
        });
    }

    fn push(&mut self, parts: &[&[u8]]) -> Span {
        let start = self.text.len();
        parts.iter().for_each(|part| self.text.extend_from_slice(part));
        Span { start, end: self.text.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_in_any_case_and_the_first_counts() {
        let mut table = Table::default();
        table.add(b"A", b"1");
        table.add(b"B", b"2");
        table.add(b"a", b"3");
        assert_eq!(table.get(b"a"), Some(&b"1"[..]));
        check(&table, "A=1 B=2 a=3");
        table.set(b"a", b"4");
        check(&table, "A=4 B=2");
        table.merge(b"b", b"5");
        table.merge(b"C", b"6");
        check(&table, "A=4 B=2, 5 C=6");
        table.remove(b"A");
        check(&table, "B=2, 5 C=6");
        assert!(!table.decides(b"A"));
    }

    #[test]
    fn what_is_taken_out_is_remembered_until_it_is_set() {
        let mut table = Table::default();
        table.set(b"ETag", b"x");
        table.take_out(b"etag");
        check(&table, "");
        assert!(table.decides(b"ETag"));
        table.set(b"ETag", b"y");
        check(&table, "etag=y");
    }

    #[test]
    fn an_overlay_comes_first() {
        let (mut base, mut over) = (Table::default(), Table::default());
        base.set(b"A", b"1");
        over.set(b"A", b"2");
        over.set(b"B", b"3");
        base.overlay(&over);
        check(&base, "A=2 B=3 A=1");
        over.overlay_below(&base);
        check(&over, "A=2 B=3 A=2 B=3 A=1");
        base.change(b"a", |old, new| {
            new.extend_from_slice(old);
            new.push(b'!');
            old == b"1"
        });
        check(&base, "A=2 B=3 A=1!");
    }

    #[track_caller]
    fn check(table: &Table, expected: &str) {
        let entries = table.iter().map(|(name, value)| [name, b"=", value].concat());
        assert_eq!(String::from_utf8(entries.collect::<Vec<_>>().join(&b' ')).unwrap(), expected);
    }
}

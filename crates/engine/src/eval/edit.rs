//! Changes fields as `Header` and `RequestHeader` say.
//!
//! A response has two tables of fields. What goes into the one for success is lost when the response turns
//! into an error or a redirect, and `Header` changes it only when it does not; `Header always` changes the
//! other one. So no `Header` can change the `Location` of a redirect: it stands where none of them looks.
//!
//! Source: httpd 2.4.71 `modules/metadata/mod_headers.c`, `do_headers_fixup`, `process_regexp`.

use super::identity::write_text;
use super::table::Table;
use super::{Hop, Run, alias};
use crate::expr::Capture;
use crate::pattern::Pattern;
use crate::pool::Pool;
use crate::program::{Action, Edit, EditCondition, EditList, Part, Piece, Replacement, Value};

/// The fields that are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// `RequestHeader`
    Request,
    /// `Header`
    Success,
    /// `Header always`
    Always,
}

/// When fields are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before anything else: `early`.
    Early,
    /// At the fixups for a request, at the end for a response.
    Late,
}

/// A replacement came out too long.
#[derive(Debug)]
pub(super) struct TooLong;

impl Run<'_> {
    /// Runs the changes of all lists in order.
    #[inline]
    pub(super) fn run_edits(
        &mut self,
        hop: &mut Hop,
        lists: &[Part<EditList>],
        target: Target,
        stage: Stage,
    ) -> Result<(), TooLong> {
        if lists.is_empty() { Ok(()) } else { self.run_all_edits(hop, lists, target, stage) }
    }

    fn run_all_edits(
        &mut self,
        hop: &mut Hop,
        lists: &[Part<EditList>],
        target: Target,
        stage: Stage,
    ) -> Result<(), TooLong> {
        for list in lists {
            let pool = list.pool(&self.program.pool);
            for edit in &list.value.edits {
                if self.edit_applies(hop, &edit.condition, pool, stage) {
                    let mut table = std::mem::take(self.table(hop, target));
                    let result = self.run_edit(hop, edit, pool, target, &mut table);
                    *self.table(hop, target) = table;
                    result?;
                }
            }
        }
        Ok(())
    }

    fn table<'t>(&'t mut self, hop: &'t mut Hop, target: Target) -> &'t mut Table {
        match target {
            Target::Request => &mut self.work.request,
            Target::Success => &mut hop.fields,
            Target::Always => &mut self.work.always,
        }
    }

    fn edit_applies(
        &mut self,
        hop: &mut Hop,
        condition: &EditCondition,
        pool: &Pool,
        stage: Stage,
    ) -> bool {
        match condition {
            EditCondition::Early => stage == Stage::Early,
            _ if stage == Stage::Early => false,
            EditCondition::Always => true,
            EditCondition::Env { name, set } => self.env(hop, pool.get(*name)).is_some() == *set,
            EditCondition::Expression(condition) => {
                let mut capture = Capture::default();
                let holds = self.holds(condition, hop, &mut capture);
                self.add_vary(hop);
                holds
            }
        }
    }

    fn run_edit(
        &mut self,
        hop: &mut Hop,
        edit: &Edit,
        pool: &Pool,
        target: Target,
        table: &mut Table,
    ) -> Result<(), TooLong> {
        let name = pool.get(edit.name);
        if target == Target::Request {
            self.move_request_field(name, table);
        }
        let to = (target, &mut *table);
        match &edit.action {
            Action::Unset if target == Target::Always => table.remove(name),
            Action::Unset => table.take_out(name),
            Action::Echo(pattern) => self.echo(hop, pattern, pool, target, table),
            Action::Replace { pattern, by, all } => {
                return self.replace(hop, table, name, (pattern, pool), by, *all);
            }
            Action::Set(value) => self.with_value(hop, value, pool, to, |_, table, value| {
                table.set(name, value);
            }),
            Action::SetIfEmpty(value) => {
                self.with_value(hop, value, pool, to, |_, table, value| {
                    if table.get(name).is_none() {
                        table.set(name, value);
                    }
                })
            }
            Action::Add(value) => self.with_value(hop, value, pool, to, |_, table, value| {
                table.add(name, value);
            }),
            Action::Append(value) => self.with_value(hop, value, pool, to, |_, table, value| {
                table.merge(name, value);
            }),
            Action::Merge(value) => self.with_value(hop, value, pool, to, |_, table, value| {
                if !table.get(name).is_some_and(|old| has_element(old, value)) {
                    table.merge(name, value);
                }
            }),
            Action::Note(value) => {
                self.with_value(hop, value, pool, to, |hop, table, note| match table.get(name) {
                    Some(field) => hop.notes.set(note, field),
                    None => hop.notes.remove(note),
                })
            }
        }
        Ok(())
    }

    /// Makes the text of a value and hands it on. An expression sees the fields as they are.
    fn with_value(
        &mut self,
        hop: &mut Hop,
        value: &Value,
        pool: &Pool,
        (target, table): (Target, &mut Table),
        take: impl FnOnce(&mut Hop, &mut Table, &[u8]),
    ) {
        let mut text = self.take_buffer();
        match value {
            Value::Pieces(pieces) => {
                pieces.iter().for_each(|piece| self.write_piece(hop, *piece, pool, &mut text));
            }
            // A text that cannot be made is empty.
            Value::Expression(template) => {
                std::mem::swap(self.table(hop, target), table);
                if self.write_template(template, hop, &mut text).is_err() {
                    text.clear();
                }
                std::mem::swap(self.table(hop, target), table);
            }
        }
        take(hop, table, &text);
        self.put_buffer(text);
    }

    fn write_piece(&self, hop: &Hop, piece: Piece, pool: &Pool, out: &mut Vec<u8>) {
        match piece {
            Piece::Text(piece) => out.extend_from_slice(pool.get(piece)),
            Piece::Env(name) => {
                let start = out.len();
                let value = self.env(hop, pool.get(name));
                out.extend_from_slice(value.as_deref().unwrap_or(b"(null)"));
                // A variable cannot end the field line.
                for byte in &mut out[start..] {
                    if matches!(byte, b'\r' | b'\n') {
                        *byte = b' ';
                    }
                }
            }
            Piece::Time => {
                let (seconds, _) = self.outside.now();
                write_text(out, format_args!("t={}", seconds.saturating_mul(1_000_000)));
            }
            Piece::Tls(name) => {
                let name = pool.get(name);
                let start = out.len();
                if name == b"HTTPS" && self.request.tls.is_some() {
                    out.extend_from_slice(b"on");
                } else if !self.write_tls_variable(name, out) {
                    out.extend_from_slice(b"(null)");
                }
                // A certificate cannot end the field line either.
                for byte in &mut out[start..] {
                    if matches!(byte, b'\r' | b'\n') {
                        *byte = b' ';
                    }
                }
            }
        }
    }

    /// Copies request fields into the response.
    fn echo(
        &mut self,
        hop: &mut Hop,
        pattern: &Pattern,
        pool: &Pool,
        target: Target,
        table: &mut Table,
    ) {
        // Whoever says so, they are fields of a success.
        let into = if target == Target::Success { table } else { &mut hop.fields };
        self.for_each_request_field(|run, name, value| {
            let found = pattern.find(pool, name, &mut run.work.matcher);
            if found.is_ok_and(|found| found.is_some()) {
                into.add(name, value);
            }
        });
    }

    /// `edit` and `edit*`.
    fn replace(
        &mut self,
        hop: &Hop,
        table: &mut Table,
        name: &[u8],
        (pattern, pool): (&Pattern, &Pool),
        by: &Replacement,
        all: bool,
    ) -> Result<(), TooLong> {
        let mut result = Ok(());
        table.change(name, |old, new| {
            let mut rest = old;
            // Each search begins anew, so that `^` matches after every replacement.
            while let Ok(Some(groups)) = pattern.find(pool, rest, &mut self.work.matcher) {
                let Some(found) = groups.get(0) else { break };
                new.extend_from_slice(&rest[..found.start]);
                let written = match by {
                    Replacement::Text(by) => alias::substitute(pool.get(*by), rest, &groups, new),
                    Replacement::Expression(by) => {
                        let mut capture = Capture { subject: rest.to_vec(), groups, failed: false };
                        self.write_template_with(by, hop, &mut capture, new).is_ok()
                    }
                };
                if !written {
                    result = Err(TooLong);
                    return false;
                }
                rest = &rest[found.end..];
                // An empty match would be found for ever; httpd runs out of stack there.
                if !all || found.is_empty() {
                    break;
                }
            }
            new.extend_from_slice(rest);
            true
        });
        result
    }
}

/// Whether a list has this element; commas in quotes part no elements.
fn has_element(list: &[u8], wanted: &[u8]) -> bool {
    let mut quoted = false;
    let elements = list.split(|&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    });
    elements.map(<[u8]>::trim_ascii_start).any(|element| element == wanted)
}

#[cfg(test)]
mod tests {
    use super::has_element;

    #[test]
    fn quotes_keep_an_element_together() {
        let list = br#"a, b,"c, d" , e"#;
        for (element, expected) in
            [("a", true), ("b", true), (r#""c, d" "#, true), ("c", false), ("e", true), ("", false)]
        {
            assert_eq!(has_element(list, element.as_bytes()), expected, "{element}");
        }
    }
}

//! Faults in the form of a file: which of them count, and where httpd sees them.
//!
//! The text in a condition that does not hold is only searched for its end, and errors there are about the
//! condition's own line. What is in one that holds may stay open until the end of the file.
//!
//! Source: httpd 2.4.71 `server/config.c`, `ap_build_config`, `ap_build_cont_config`,
//! `ap_soak_end_container`.

use std::ops::Range;

use milepost_syntax::{Fault, FaultKind, Kind, Node, Tree};

use super::reader::Walk;
use super::report::{Finding, show};
use super::{Builder, Directive};
use crate::decision::Place;

/// Sections that leave out what is in them, or are as if they were not there, in lower case.
pub(super) const CONDITIONS: [&[u8]; 6] =
    [b"ifmodule", b"ifdefine", b"iffile", b"ifversion", b"ifdirective", b"ifsection"];

/// A condition that was met in a file that has faults.
pub(super) struct Condition {
    /// Where its text stands in the file; to the end of everything if nothing ends it.
    range: Range<usize>,
    place: Place,
    holds: bool,
}

impl Condition {
    fn is_open(&self) -> bool {
        self.range.end == usize::MAX
    }
}

impl Walk<'_> {
    /// Notes a condition and what is in it, for the faults there.
    pub(super) fn note(&self, place: Place, inner: &Range<usize>, holds: bool) {
        if self.faults.is_empty() {
            return;
        }
        let start = self.tree.source_offset(place.offset as usize);
        let end = self.nodes.get(inner.end).filter(|node| node.kind == Kind::Close);
        let end = end.map_or(usize::MAX, |end| self.tree.source_offset(end.name.at()) + 1);
        self.met.borrow_mut().push(Condition { range: start..end, place, holds });
    }

    fn is_condition(&self, fault: &Fault) -> bool {
        let name = self.tree.bytes(fault.text);
        CONDITIONS.iter().any(|known| name.eq_ignore_ascii_case(known))
    }
}

impl Builder<'_> {
    /// Looks for what keeps httpd from finding the end of a condition that does not hold.
    pub(super) fn check_left_out(
        &mut self,
        walk: &Walk<'_>,
        directive: &Directive<'_>,
        inner: Range<usize>,
    ) {
        let inner = walk.nodes.get(inner).unwrap_or_default();
        let Some(node) = inner.iter().find(|node| has_text_behind(walk.tree, node)) else { return };
        let name = String::from_utf8_lossy(walk.tree.bytes(node.name));
        let message = format!("`<{name}>` in what is left out is not ended by `</{name}>`");
        let place = Place { file: walk.file, offset: node.name.at() as u32 };
        let finding = Finding::error(message)
            .hint(format!("write nothing behind `<{name}>`"))
            .also(place, "the section that is meant");
        self.report(directive, finding);
    }

    /// Reports the faults of a file that has been walked.
    pub(super) fn report_faults(&mut self, walk: &Walk<'_>) {
        let met = walk.met.take();
        for fault in walk.faults {
            let at = walk.tree.source_offset(fault.text.at());
            let around = |condition: &&Condition| condition.range.contains(&at);
            if let Some(left_out) = met.iter().filter(around).find(|condition| !condition.holds) {
                self.report_left_out(walk, fault, left_out);
                continue;
            }
            let goes_on = || met.iter().filter(around).any(|condition| condition.is_open());
            if fault.kind != FaultKind::Unclosed || !walk.is_condition(fault) && !goes_on() {
                self.report_fault(walk, fault);
            }
        }
    }

    /// Reports a fault in a condition that does not hold.
    fn report_left_out(&mut self, walk: &Walk<'_>, fault: &Fault, condition: &Condition) {
        let Condition { place, .. } = *condition;
        let is_its_own = fault.text.at() == place.offset as usize;
        let finding = match &fault.kind {
            FaultKind::Unclosed if is_its_own => unclosed(walk.tree, fault),
            FaultKind::Unclosed | FaultKind::TooLong => return,
            // The start of a section that nobody enters.
            FaultKind::NoBracket if walk.tree.bytes(fault.text).starts_with(b"<") => return,
            FaultKind::NoBracket | FaultKind::NoName | FaultKind::UnexpectedEnd { .. } => {
                let name = show(walk.tree.bytes(fault.text));
                let inner = Place { file: walk.file, offset: fault.text.at() as u32 };
                Finding::error("the end of this section is not found")
                    .also(inner, format!("{name} is in the way"))
            }
        };
        self.report_place(place, 1, finding);
    }

    fn report_fault(&mut self, walk: &Walk<'_>, fault: &Fault) {
        let tree = walk.tree;
        let place = Place { file: walk.file, offset: fault.text.at() as u32 };
        let name = show(tree.bytes(fault.text));
        let finding = match fault.kind {
            FaultKind::UnexpectedEnd { open: None } => {
                Finding::error(format!("{name} ends a section that was never begun"))
            }
            FaultKind::UnexpectedEnd { open: Some(open) } => {
                let open_name = String::from_utf8_lossy(tree.bytes(open)).into_owned();
                Finding::error(format!("expected `</{open_name}>` but saw the end of {name}"))
                    .also(Place { offset: open.at() as u32, ..place }, "the section begun last")
            }
            FaultKind::Unclosed => unclosed(tree, fault),
            FaultKind::NoName => Finding::error("a section needs a name after `<`"),
            FaultKind::NoBracket => Finding::error("a section start or end needs a `>`"),
            FaultKind::TooLong => Finding::error(format!(
                "the file is longer than {} bytes",
                milepost_syntax::SOURCE_BYTES_MAX
            )),
        };
        self.report_place(place, fault.text.len(), finding);
    }
}

fn unclosed(tree: &Tree, fault: &Fault) -> Finding {
    let name = String::from_utf8_lossy(tree.bytes(fault.text)).into_owned();
    Finding::error(format!("section `{name}` is not closed"))
        .hint(format!("end it with `</{name}>`"))
}

/// Whether a section starts with `<Name> text`. What searches for its end takes `Name>` for its name.
fn has_text_behind(tree: &Tree, node: &Node) -> bool {
    let behind = tree.buffer().get(node.name.at() + node.name.len());
    matches!(node.kind, Kind::Open { .. }) && !node.args.is_empty() && behind == Some(&b'>')
}

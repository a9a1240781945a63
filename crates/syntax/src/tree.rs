//! A file as a flat list of directives and section ends, in the order of the text.
//!
//! Flat, because a rule file is a million directives and a few sections: a node is 24 bytes, holds no
//! text of its own, and a section knows the number of its end.

use crate::lexer::{Lexer, is_blank};

/// Longest text that a [`Text`] can point into.
pub const SOURCE_BYTES_MAX: usize = u32::MAX as usize / 2;

/// A piece of a [`Tree`]'s text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Text {
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl Text {
    /// The piece of this text from byte `start` on, `len` bytes long.
    ///
    /// # Panics
    /// When it is not inside this text.
    pub fn slice(self, start: usize, len: usize) -> Text {
        assert!(start + len <= self.len as usize, "a slice inside its text");
        Text { at: self.at + start as u32, len: len as u32 }
    }

    /// Its length in bytes.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether it has no byte.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Its position: an offset into [`Tree::buffer`].
    pub fn at(self) -> usize {
        self.at as usize
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directive with its arguments.
    Directive,
    /// The start of a section; its arguments end before the closing `>`.
    Open {
        /// Number of the node that ends it, or of the node after the last one.
        end: u32,
    },
    /// The end of a section.
    Close,
}

/// One directive, section start or section end.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Its name, without `<`, `</` and `>`.
    pub name: Text,
    /// Everything after the name, blanks trimmed.
    pub args: Text,
}

/// A parsed file.
#[derive(Debug, Default)]
pub struct Tree {
    /// The source, then the text of lines that were joined.
    buffer: Vec<u8>,
    source_len: usize,
    pieces: Vec<(u32, u32)>,
    nodes: Vec<Node>,
}

/// Something wrong with the form of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// The text to mark.
    pub text: Text,
}

/// The ways in which a file can be malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// `</A>` where `</B>` or no end at all was due.
    UnexpectedEnd {
        /// The section that is open, if one is.
        open: Option<Text>,
    },
    /// The file ends inside a section.
    Unclosed,
    /// `<` with no name.
    NoName,
    /// A section start or end without `>`.
    NoBracket,
    /// More than [`SOURCE_BYTES_MAX`] bytes.
    TooLong,
}

impl Tree {
    /// Parses `source`. What is malformed is in the faults; the tree has the rest.
    pub fn parse(source: Vec<u8>) -> (Tree, Vec<Fault>) {
        if source.len() > SOURCE_BYTES_MAX {
            let fault = Fault { kind: FaultKind::TooLong, text: Text::default() };
            return (Tree::default(), vec![fault]);
        }
        let mut faults = Vec::new();
        let mut nodes: Vec<Node> = Vec::with_capacity(source.len() / 64);
        let mut open: Vec<u32> = Vec::new();
        let mut lexer = Lexer::new(&source);
        while let Some(line) = lexer.next() {
            let Some(node) = split(&lexer, line, &mut faults) else { continue };
            match node.kind {
                Kind::Directive => {}
                Kind::Open { .. } => open.push(nodes.len() as u32),
                Kind::Close => {
                    let name = |text: Text| lexer.bytes(text).to_ascii_lowercase();
                    let closes = |&at: &u32| name(nodes[at as usize].name) == name(node.name);
                    if !open.last().is_some_and(closes) {
                        let open = open.last().map(|&at| nodes[at as usize].name);
                        let kind = FaultKind::UnexpectedEnd { open };
                        faults.push(Fault { kind, text: node.name });
                        continue;
                    }
                    let start = open.pop().expect("checked above");
                    nodes[start as usize].kind = Kind::Open { end: nodes.len() as u32 };
                }
            }
            nodes.push(node);
        }
        for &start in &open {
            let end = nodes.len() as u32;
            let node = &mut nodes[start as usize];
            node.kind = Kind::Open { end };
            faults.push(Fault { kind: FaultKind::Unclosed, text: node.name });
        }
        nodes.shrink_to_fit();
        let Lexer { joined, pieces, .. } = lexer;
        let source_len = source.len();
        let mut buffer = source;
        buffer.extend_from_slice(&joined);
        (Tree { buffer, source_len, pieces, nodes }, faults)
    }

    /// Keeps text that holds no directives, such as a map, so that its places can be told.
    pub fn of_data(text: Vec<u8>) -> Tree {
        Tree { source_len: text.len(), buffer: text, ..Tree::default() }
    }

    /// All nodes, in the order of the text.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The bytes of one of this tree's texts.
    pub fn bytes(&self, text: Text) -> &[u8] {
        &self.buffer[text.at as usize..(text.at + text.len) as usize]
    }

    /// What stands in the line of a section start behind its `>`.
    pub fn behind(&self, node: &Node) -> &[u8] {
        let end = if node.args.is_empty() { node.name } else { node.args };
        let rest = &self.buffer[(end.at + end.len) as usize..];
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        line.strip_prefix(b">").unwrap_or_default()
    }

    /// The text that all [`Text`]s of this tree point into.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// The text as it was read.
    pub fn source(&self) -> &[u8] {
        &self.buffer[..self.source_len]
    }

    /// Takes the nodes out and leaves the text, for whoever walks the nodes while keeping the text.
    pub fn take_nodes(&mut self) -> Vec<Node> {
        std::mem::take(&mut self.nodes)
    }

    /// Returns where the byte at offset `at` of the buffer stands in the source.
    pub fn source_offset(&self, at: usize) -> usize {
        if at < self.source_len || self.pieces.is_empty() {
            return at.min(self.source_len);
        }
        let piece = self.pieces.partition_point(|&(joined, _)| joined as usize <= at);
        let (joined, source) = self.pieces[piece.saturating_sub(1)];
        source as usize + (at - joined as usize)
    }

    /// Returns line and column, both from 1, of the byte at offset `at` of the buffer, and the
    /// physical line that it stands in. Costs a pass over the source before it.
    pub fn position(&self, at: usize) -> (u32, u32, &[u8]) {
        let source = &self.buffer[..self.source_len];
        let at = self.source_offset(at).min(source.len());
        let line = 1 + memchr::memchr_iter(b'\n', &source[..at]).count() as u32;
        let start = memchr::memrchr(b'\n', &source[..at]).map_or(0, |newline| newline + 1);
        let end = memchr::memchr(b'\n', &source[at..]).map_or(source.len(), |newline| at + newline);
        let text = source[start..end].strip_suffix(b"\r").unwrap_or(&source[start..end]);
        (line, (at - start) as u32 + 1, text)
    }
}

/// Splits a line into name and arguments.
fn split(lexer: &Lexer<'_>, line: Text, faults: &mut Vec<Fault>) -> Option<Node> {
    let bytes = lexer.bytes(line);
    let name_end = bytes.iter().position(|&byte| is_blank(byte)).unwrap_or(bytes.len());
    let blanks = bytes[name_end..].iter().take_while(|&&byte| is_blank(byte)).count();
    let mut name = line.slice(0, name_end);
    let mut args = line.slice(name_end + blanks, bytes.len() - name_end - blanks);
    let mut fault = |kind, text| faults.push(Fault { kind, text });
    let kind = match bytes {
        [b'<', b'/', ..] => {
            name = line.slice(2, name_end - 2);
            match lexer.bytes(name) {
                [inner @ .., b'>'] => name = name.slice(0, inner.len()),
                _ => fault(FaultKind::NoBracket, name),
            }
            Kind::Close
        }
        [b'<', ..] => {
            name = line.slice(1, name_end - 1);
            if let [inner @ .., b'>'] = lexer.bytes(name) {
                name = name.slice(0, inner.len());
            } else if let Some(bracket) = memchr::memrchr(b'>', lexer.bytes(args)) {
                args = args.slice(0, bracket);
            } else {
                fault(FaultKind::NoBracket, line);
            }
            Kind::Open { end: 0 }
        }
        _ => Kind::Directive,
    };
    if name.is_empty() {
        fault(FaultKind::NoName, line);
        return None;
    }
    Some(Node { kind, name, args })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_and_sections() {
        check("A b c\n<S x y>\n  B\n</S>\n", &["A [b c]", "<S [x y]", "  B []", "</S"]);
        check("<S>\nA\n</s>", &["<S []", "  A []", "</s"]);
    }

    #[test]
    fn blanks_comments_and_line_ends() {
        check("\n # c\n\tA  b \r\n#x\\\nB c\nC", &["A [b]", "C []"]);
    }

    #[test]
    fn continuations_join_without_a_blank() {
        check("A b\\\nc \\\n  d\nB", &["A [bc   d]", "B []"]);
        let (tree, _) = Tree::parse(b"A b\\\n  c\n".to_vec());
        let args = tree.nodes()[0].args;
        assert_eq!(tree.position(args.at() + 3), (2, 3, &b"  c"[..]));
    }

    #[test]
    fn faults_do_not_stop_the_parser() {
        faults("</S>\nA\n", &[FaultKind::UnexpectedEnd { open: None }], 1);
        faults("<S\nA\n</S>\n", &[FaultKind::NoBracket], 3);
        faults("<S>\nA\n", &[FaultKind::Unclosed], 2);
        faults("< x>\nA\n", &[FaultKind::NoName], 1);
    }

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let (tree, faults) = Tree::parse(source.as_bytes().to_vec());
        assert_eq!(faults, []);
        let text = |text| String::from_utf8_lossy(tree.bytes(text)).into_owned();
        let mut depth = 0;
        let mut lines = Vec::new();
        for node in tree.nodes() {
            depth -= usize::from(node.kind == Kind::Close);
            let (name, args) = (text(node.name), text(node.args));
            let indent = "  ".repeat(depth);
            lines.push(match node.kind {
                Kind::Directive => format!("{indent}{name} [{args}]"),
                Kind::Open { .. } => format!("{indent}<{name} [{args}]"),
                Kind::Close => format!("{indent}</{name}"),
            });
            depth += usize::from(matches!(node.kind, Kind::Open { .. }));
        }
        assert_eq!(lines, expected);
    }

    #[track_caller]
    fn faults(source: &str, expected: &[FaultKind], nodes: usize) {
        let (tree, faults) = Tree::parse(source.as_bytes().to_vec());
        assert_eq!(faults.into_iter().map(|fault| fault.kind).collect::<Vec<_>>(), expected);
        assert_eq!(tree.nodes().len(), nodes);
    }
}

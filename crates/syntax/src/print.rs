//! Prints a tree as text again: one directive a line, sections indented, nothing reworded.

use crate::tree::{Kind, Tree};

/// Blanks for each level of nesting.
const INDENT: usize = 4;

/// Returns the text of `tree`. Parsing it gives the same tree, comments and layout aside.
pub fn print(tree: &Tree) -> Vec<u8> {
    let mut out = Vec::with_capacity(tree.buffer().len());
    let mut depth = 0_usize;
    for node in tree.nodes() {
        if node.kind == Kind::Close {
            depth = depth.saturating_sub(1);
        }
        out.extend(std::iter::repeat_n(b' ', depth * INDENT));
        let (name, args) = (tree.bytes(node.name), tree.bytes(node.args));
        match node.kind {
            Kind::Directive => out.extend_from_slice(name),
            Kind::Open { .. } => out.extend([b"<", name].concat()),
            Kind::Close => out.extend([b"</", name, b">"].concat()),
        }
        if !args.is_empty() {
            out.push(b' ');
            out.extend_from_slice(args);
        }
        if let Kind::Open { .. } = node.kind {
            out.push(b'>');
            depth += 1;
        }
        if out.last() == Some(&b'\\') {
            // A backslash at the line end would join the next line: join an empty one instead.
            out.extend_from_slice(b"\\\n");
        }
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::Node;

    proptest! {
        /// parse(print(tree)) = tree, for whatever the parser made of any text.
        #[test]
        fn printing_loses_nothing(source in "([ \t]*(</?)?[A-Ca-c\"'\\\\ ]{0,6}[ >#]?[a-c\"' \\\\]{0,6}>?\r?\n){0,8}") {
            let (tree, _) = Tree::parse(source.into_bytes());
            let (again, _) = Tree::parse(print(&tree));
            prop_assert_eq!(shape(&tree), shape(&again));
        }
    }

    fn shape(tree: &Tree) -> Vec<(Kind, Vec<u8>, Vec<u8>)> {
        let text = |text| tree.bytes(text).to_vec();
        tree.nodes()
            .iter()
            .map(|&Node { kind, name, args }| (kind, text(name), text(args)))
            .collect()
    }
}

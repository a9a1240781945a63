//! A radix trie that finds all of its keys that a string begins with.
//!
//! Edges are kept in one hash table by node and first byte, so that a node is small and a million
//! prefixes with a common start are walked in as many steps as they differ in.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::postings::{Cursor, List};
use crate::pool::{Pool, Str};

#[derive(Debug, Default)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    edges: HashMap<(u32, u8), u32, RandomState>,
}

/// A node and the edge that leads to it.
#[derive(Clone, Copy, Debug)]
struct Node {
    label: Str,
    rules: List,
}

const ROOT: u32 = 0;

impl Trie {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The list of `key`, made if it is new.
    pub(super) fn list(&mut self, pool: &Pool, key: Str) -> &mut List {
        if self.nodes.is_empty() {
            self.nodes.push(Node { label: key.slice(0, 0), rules: List::default() });
        }
        let bytes = pool.get(key);
        let (mut node, mut at) = (ROOT, 0);
        while at < bytes.len() {
            let Some(&child) = self.edges.get(&(node, bytes[at])) else {
                let label = key.slice(at, bytes.len() - at);
                let leaf = self.push(Node { label, rules: List::default() });
                self.edges.insert((node, bytes[at]), leaf);
                return &mut self.nodes[leaf as usize].rules;
            };
            let label = self.nodes[child as usize].label;
            let common = common_prefix(pool.get(label), &bytes[at..]);
            if common < label.len() {
                // The new middle node takes over the edge from above.
                let upper = Node { label: label.slice(0, common), rules: List::default() };
                let middle = self.push(upper);
                self.edges.insert((node, bytes[at]), middle);
                self.nodes[child as usize].label = label.slice(common, label.len() - common);
                self.edges.insert((middle, pool.get(label)[common]), child);
                node = middle;
            } else {
                node = child;
            }
            at += common;
        }
        &mut self.nodes[node as usize].rules
    }

    /// Calls up the rules of every key that `subject` begins with.
    pub(super) fn find(&self, pool: &Pool, subject: &[u8], cursor: &mut Cursor) {
        let Some(root) = self.nodes.first() else { return };
        cursor.add(root.rules);
        let (mut node, mut rest) = (ROOT, subject);
        while let Some(&first) = rest.first() {
            let Some(&child) = self.edges.get(&(node, first)) else { return };
            let Node { label, rules } = self.nodes[child as usize];
            let Some(after) = rest.strip_prefix(pool.get(label)) else { return };
            cursor.add(rules);
            (node, rest) = (child, after);
        }
    }

    fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

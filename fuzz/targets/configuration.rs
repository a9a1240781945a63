//! Any text as a configuration: it is read, printed, compiled and looked over without a panic, and printing
//! loses nothing.
#![no_main]

#[allow(dead_code, reason = "the tests of the engine use all of it")]
#[path = "../../crates/engine/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use milepost_engine::Lookup;
use milepost_syntax::{Kind, Node, Tree, print};

use support::{Table, load};

fuzz_target!(|text: &[u8]| {
    let (tree, _) = Tree::parse(text.to_vec());
    let (again, _) = Tree::parse(print(&tree));
    assert_eq!(shape(&tree), shape(&again));

    let Ok(text) = str::from_utf8(text) else { return };
    let files = Table::with(&[("/map.txt", "key value\n"), ("/srv/more.conf", text)]);
    let loaded = load(text, &files, Lookup::Index);
    if let Some(site) = loaded.site {
        site.lint();
    }
});

fn shape(tree: &Tree) -> Vec<(Kind, Vec<u8>, Vec<u8>)> {
    let text = |text| tree.bytes(text).to_vec();
    let nodes = tree.nodes().iter();
    nodes.map(|&Node { kind, name, args }| (kind, text(name), text(args))).collect()
}

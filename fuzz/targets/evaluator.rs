//! Any small configuration and request: the index and the scan decide alike, without a panic.
//!
//! The input is a configuration, a host and a request-target, each but the last ended by a zero byte.
#![no_main]

#[allow(dead_code, reason = "the tests of the engine use all of it")]
#[path = "../../crates/engine/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use milepost_engine::{Lookup, Scratch};

use support::{Table, ask, load};

fuzz_target!(|input: &[u8]| {
    let Ok(input) = str::from_utf8(input) else { return };
    let mut parts = input.splitn(3, '\0');
    let (Some(text), Some(host), Some(target)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let files = Table::with(&[
        ("/map.txt", "key value\na b\n"),
        ("/www/a/b/x", "f"),
        ("/www/index.html", "i"),
    ]);
    let (index, scan) = (load(text, &files, Lookup::Index), load(text, &files, Lookup::Scan));
    assert_eq!(index.diagnostics, scan.diagnostics);
    let (Some(index), Some(scan)) = (index.site, scan.site) else { return };
    let mut scratch = Scratch::default();
    // The second time nothing is new to the scratch.
    for _ in 0..2 {
        let by_index = ask(&index, &files, host, target, &mut scratch);
        let by_scan = ask(&scan, &files, host, target, &mut Scratch::default());
        assert_eq!(by_index, by_scan);
    }
});

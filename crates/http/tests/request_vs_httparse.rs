//! Holds the request parser against `httparse`: what ours accepts, the other reads in the same way.
//!
//! The other direction does not hold, since ours is stricter. Heads are made from plausible parts
//! and then damaged, so that both sides of every check are reached.

use milepost_http::request::{HeadLimits, HeadRoom, parse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn head() -> impl Strategy<Value = Vec<u8>> {
    let method = select(vec!["GET", "POST", "get", "M-SEARCH", ""]);
    let target =
        select(vec!["/", "/a/b?c=d", "http://h/x", "*", "h:80", "/%zz", "/\"<>|", "/\u{e4}"]);
    let version = select(vec!["HTTP/1.1", "HTTP/1.0"]);
    let name =
        select(vec!["Host", "X-A", "Accept", "Content-Length", "Connection", "x!#$%&'*+-.^_`|~"]);
    let value = select(vec!["h", "0", "close", "a b\tc", "", "\u{e4}", "keep-alive, x", "h:80"]);
    let space = select(vec!["", " ", "\t ", "  "]);
    let fields = vec((name, space.clone(), value, space), 0..6);
    (method, target, version, fields).prop_map(|(method, target, version, fields)| {
        let mut head = format!("{method} {target} {version}\r\nHost: a\r\n");
        for (name, before, value, after) in fields {
            head.push_str(&format!("{name}:{before}{value}{after}\r\n"));
        }
        head.push_str("\r\nrest");
        head.into_bytes()
    })
}

/// Puts, takes away or changes a byte; the bytes are those that the grammar treats specially.
fn damage(mut head: Vec<u8>, damages: Vec<(usize, u8, u8)>) -> Vec<u8> {
    for (at, kind, byte) in damages {
        let at = at % head.len();
        match kind {
            0 => head.insert(at, byte),
            1 => {
                head.remove(at);
            }
            _ => head[at] = byte,
        }
    }
    head
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_ours_accepts_the_other_reads_alike(
        head in head(),
        damages in vec((any::<usize>(), 0u8..3, select(b"\r\n \t:,\0\x7f\x80aH0;".to_vec())), 0..4),
    ) {
        let bytes = damage(head, damages);
        let mut room = HeadRoom::default();
        if let Ok(Some(ours)) = parse(&bytes, &HeadLimits::default(), &mut room) {
            // The other insists on UTF-8 in the target, Apache does not.
            prop_assume!(std::str::from_utf8(ours.target).is_ok());
            let mut fields = [httparse::EMPTY_HEADER; 64];
            let mut other = httparse::Request::new(&mut fields);
            let status = other.parse(&bytes);
            prop_assert_eq!(status, Ok(httparse::Status::Complete(ours.bytes.len())));
            prop_assert_eq!(other.method.map(str::as_bytes), Some(ours.method));
            prop_assert_eq!(other.path.map(str::as_bytes), Some(ours.target));
            let theirs: Vec<_> =
                other.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
            prop_assert_eq!(theirs, ours.fields.iter().collect::<Vec<_>>());
        }
    }
}

/// Nothing accepted means nothing compared: the heads above must mostly be accepted when whole.
#[test]
fn undamaged_heads_are_accepted() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let accepted = (0..500).filter(|_| {
        let bytes = head().new_tree(&mut runner).expect("the strategy rejects nothing").current();
        matches!(parse(&bytes, &HeadLimits::default(), &mut HeadRoom::default()), Ok(Some(_)))
    });
    assert!(accepted.count() > 100);
}

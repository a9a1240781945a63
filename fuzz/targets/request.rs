//! Any bytes as the head of a request: what is accepted has one meaning, however it arrives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milepost_http::request::{HeadLimits, HeadRoom, parse};

fuzz_target!(|bytes: &[u8]| {
    let limits = HeadLimits::default();
    let (mut room, mut part_room) = (HeadRoom::default(), HeadRoom::default());
    let Ok(Some(head)) = parse(bytes, &limits, &mut room) else { return };
    assert!(head.bytes.len() <= bytes.len());
    for end in 0..head.bytes.len() {
        let part = parse(&bytes[..end], &limits, &mut part_room);
        assert!(matches!(part, Ok(None)), "{end} of {} bytes", head.bytes.len());
    }
    // What has been read once is the same when it comes again.
    let mut known = HeadRoom::default();
    for _ in 0..2 {
        let again = parse(bytes, &limits, &mut known).expect("it was accepted before");
        assert_eq!(format!("{again:?}"), format!("{:?}", Some(head)));
    }
    // Another parser reads the same from it, if it takes it at all.
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut other = httparse::Request::new(&mut fields);
    if let Ok(httparse::Status::Complete(length)) = other.parse(bytes) {
        assert_eq!(length, head.bytes.len());
        assert_eq!(other.method.map(str::as_bytes), Some(head.method));
        assert_eq!(other.path.map(str::as_bytes), Some(head.target));
        let names =
            |field: &httparse::Header<'_>| (field.name.as_bytes().to_vec(), field.value.to_vec());
        let theirs: Vec<_> = other.headers.iter().map(names).collect();
        let ours: Vec<_> =
            head.fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        assert_eq!(ours, theirs);
    }
});

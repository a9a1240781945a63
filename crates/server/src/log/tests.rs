//! Lines that wait: in order, bounded, and counted when they are lost.

use std::fs;

use milepost_engine::LogTarget;

use super::sink::{Bell, Destination, Sink};
use super::*;
use crate::limits::LOG_WAITING_BYTES_MAX;

fn sink(target: LogTarget) -> Arc<Sink> {
    Arc::new(Sink::new(target, Arc::default()))
}

#[test]
fn a_full_buffer_drops_lines_and_counts_them() {
    let sink = sink(LogTarget::File("/dev/null".into()));
    let line = vec![b'x'; LOG_WAITING_BYTES_MAX / 4];
    for _ in 0..7 {
        sink.push(&line);
    }
    let (lines, dropped) = sink.take(Vec::new());
    assert_eq!((lines.len(), dropped), (LOG_WAITING_BYTES_MAX, 3));
    sink.push(b"a\n");
    assert_eq!(sink.take(Vec::new()), (b"a\n".to_vec(), 0));
}

#[test]
fn what_is_pushed_before_the_end_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let target = LogTarget::File(path.clone());
    let destination = Destination::open(&target).unwrap();
    let bell = Arc::new(Bell::default());
    let sink = Arc::new(Sink::new(target, Arc::clone(&bell)));
    let writing = {
        let (bell, sink) = (Arc::clone(&bell), Arc::clone(&sink));
        thread::spawn(move || write(&bell, vec![(sink, destination)]))
    };
    let mut expected = String::new();
    for number in 0..1000 {
        let line = format!("{number}\n");
        sink.push(line.as_bytes());
        expected.push_str(&line);
    }
    bell.close();
    writing.join().unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), expected);
}

#[test]
fn a_program_that_has_ended_is_started_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    // It ends after one line.
    let target = LogTarget::Program(format!("head -n 1 >> {}", path.display()));
    let mut destination = Destination::open(&target).unwrap();
    let lines = || fs::read_to_string(&path).unwrap_or_default().lines().count();
    for count in 1..=3 {
        // Whether a write finds the program gone is a matter of time, so it is given some.
        let mut tries = 0;
        while lines() < count {
            destination.write(&target, b"a\n").unwrap();
            thread::sleep(std::time::Duration::from_millis(20));
            tries += 1;
            assert!(tries < 200, "{} lines", lines());
        }
    }
}

#[test]
fn a_log_that_cannot_be_opened_is_named() {
    let error = Destination::open(&LogTarget::File("/nonexistent/log".into())).unwrap_err();
    let error = LogError { name: "/nonexistent/log".to_owned(), error };
    let text = error.to_string();
    assert!(text.starts_with("cannot write the log /nonexistent/log: No such file"), "{text}");
}

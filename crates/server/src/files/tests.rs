//! Files as a client sees them: validators, preconditions, ranges, and never an old content.

use std::fs::FileTimes;
use std::path::PathBuf;
use std::time::Duration;

use milepost_http::request::{HeadLimits, HeadRoom, parse};
use tempfile::TempDir;

use super::*;

#[test]
fn a_file_comes_with_its_validators() {
    let directory = Directory::new();
    let path = directory.write("a.txt", "success\n", 100);
    let answer = get(&mut Files::default(), &path, "GET", "");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.content, "success\n");
    let (last_modified, etag) = (answer.field("Last-Modified"), answer.field("ETag"));
    assert!(last_modified.is_some_and(|date| date.ends_with(" GMT")), "{answer:?}");
    // Length and microseconds, both hexadecimal, as in Apache.
    assert!(etag.is_some_and(|tag| tag.starts_with("\"8-") && tag.ends_with('"')), "{answer:?}");
    assert_eq!(answer.field("Accept-Ranges").as_deref(), Some("bytes"));
}

#[test]
fn methods_are_those_that_apache_gives_a_file_to() {
    let directory = Directory::new();
    let path = directory.write("a.txt", "x", 100);
    let mut files = Files::default();
    for (method, status) in [
        ("GET", 200),
        ("HEAD", 200),
        ("POST", 200),
        ("OPTIONS", 200),
        ("PUT", 405),
        ("TRACE", 405),
        ("BASELINE-CONTROL", 405),
        ("get", 501),
        ("FOO", 501),
    ] {
        let answer = get(&mut files, &path, method, "");
        assert_eq!(answer.status, status, "{method}");
        let allow = answer.field("Allow");
        assert_eq!(allow.is_some(), status != 200 || method == "OPTIONS", "{method}");
    }
}

#[test]
fn what_cannot_be_opened_has_a_status() {
    let directory = Directory::new();
    let mut files = Files::default();
    let mut status = |path: PathBuf| get(&mut files, &path, "GET", "").status;
    let file = directory.write("a.txt", "x", 100);
    assert_eq!(status(directory.path().join("none")), 404);
    assert_eq!(status(file.join("below")), 404);
    assert_eq!(status(directory.path().to_owned()), 404);
    assert_eq!(status(PathBuf::from("/dev/null")), 404);
}

#[test]
fn preconditions_decide_as_the_rfc_says() {
    let directory = Directory::new();
    let path = directory.write("a.txt", "success\n", 1000);
    let mut files = Files::default();
    let plain = get(&mut files, &path, "GET", "");
    let etag = plain.field("ETag").unwrap();
    let date = plain.field("Last-Modified").unwrap();
    let earlier = "Sun, 06 Nov 1994 08:49:37 GMT";
    let mut check = |method: &str, fields: String, expected: u16| {
        let answer = get(&mut files, &path, method, &fields);
        assert_eq!(answer.status, expected, "{method} {fields}");
        if expected == 304 {
            assert_eq!(answer.content, "");
            assert_eq!(answer.field("ETag").as_deref(), Some(&*etag));
            assert_eq!(answer.field("Content-Type"), None);
        }
    };
    check("GET", format!("If-None-Match: {etag}\r\n"), 304);
    check("HEAD", format!("If-None-Match: {etag}\r\n"), 304);
    check("GET", format!("If-None-Match: W/{etag}\r\n"), 304);
    check("GET", format!("If-None-Match: \"x\", {etag}\r\n"), 304);
    check("GET", format!("If-None-Match: \"x\"\r\nIf-None-Match: {etag}\r\n"), 304);
    check("GET", "If-None-Match: *\r\n".to_owned(), 304);
    check("POST", "If-None-Match: *\r\n".to_owned(), 412);
    check("GET", "If-None-Match: \"x\"\r\n".to_owned(), 200);
    check("GET", format!("If-Modified-Since: {date}\r\n"), 304);
    check("GET", format!("If-Modified-Since: {earlier}\r\n"), 200);
    check("GET", "If-Modified-Since: yesterday\r\n".to_owned(), 200);
    check("POST", format!("If-Modified-Since: {date}\r\n"), 200);
    // The entity tag decides, the date is not looked at.
    check("GET", format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {date}\r\n"), 200);
    check("GET", format!("If-Match: {etag}\r\n"), 200);
    check("GET", "If-Match: *\r\n".to_owned(), 200);
    check("GET", "If-Match: \"x\"\r\n".to_owned(), 412);
    check("GET", format!("If-Match: W/{etag}\r\n"), 412);
    check("GET", format!("If-Unmodified-Since: {date}\r\n"), 200);
    check("GET", format!("If-Unmodified-Since: {earlier}\r\n"), 412);
}

#[test]
fn a_range_is_a_part_of_the_same_version() {
    let directory = Directory::new();
    let path = directory.write("a.txt", "0123456789", 1000);
    let mut files = Files::default();
    let etag = get(&mut files, &path, "GET", "").field("ETag").unwrap();

    let part = get(&mut files, &path, "GET", "Range: bytes=2-4\r\n");
    assert_eq!((part.status, &*part.content), (206, "234"));
    assert_eq!(part.field("Content-Range").as_deref(), Some("bytes 2-4/10"));
    let outside = get(&mut files, &path, "GET", "Range: bytes=10-\r\n");
    assert_eq!(outside.status, 416);
    assert_eq!(outside.field("Content-Range").as_deref(), Some("bytes */10"));
    assert_eq!(get(&mut files, &path, "HEAD", "Range: bytes=2-4\r\n").status, 206);

    let same = format!("Range: bytes=2-4\r\nIf-Range: {etag}\r\n");
    assert_eq!(get(&mut files, &path, "GET", &same).status, 206);
    let other = "Range: bytes=2-4\r\nIf-Range: \"x\"\r\n";
    assert_eq!(get(&mut files, &path, "GET", other).status, 200);
    let weak = format!("Range: bytes=2-4\r\nIf-Range: W/{etag}\r\n");
    assert_eq!(get(&mut files, &path, "GET", &weak).status, 200);
}

#[test]
fn a_large_file_is_sent_from_the_disk() {
    let directory = Directory::new();
    let text = "0123456789".repeat(20_000);
    let path = directory.write("a.bin", &text, 1000);
    let mut files = Files::default();
    assert_eq!(get(&mut files, &path, "GET", "").content, text);
    assert_eq!(get(&mut files, &path, "GET", "Range: bytes=150000-150004\r\n").content, "01234");
}

#[test]
fn the_largest_small_file_is_cached_and_the_next_is_not() {
    let directory = Directory::new();
    let length = FILE_CACHED_BYTES_MAX as usize;
    for (length, cached) in [(length, true), (length + 1, false)] {
        let path = directory.write("a.bin", &"x".repeat(length), 1000);
        directory.wait_until_settled(&path);
        let mut files = Files::default();
        assert_eq!(get(&mut files, &path, "GET", "").content.len(), length);
        let metadata = fs::metadata(&path).unwrap();
        let found = files.cache.find(path.as_os_str().as_bytes(), &metadata);
        assert_eq!(found.is_some(), cached);
    }
}

#[test]
fn a_cached_file_is_never_given_out_after_a_change() {
    let directory = Directory::new();
    let path = directory.write("a.txt", "old", 1000);
    directory.wait_until_settled(&path);
    let mut files = Files::default();
    assert_eq!(get(&mut files, &path, "GET", "").content, "old");
    let metadata = fs::metadata(&path).unwrap();
    assert!(files.cache.find(path.as_os_str().as_bytes(), &metadata).is_some());

    // Same length and, by force, same modification time.
    directory.write("a.txt", "new", 1000);
    assert_eq!(get(&mut files, &path, "GET", "").content, "new");
    directory.write("b.txt", "moved", 1000);
    fs::rename(directory.path().join("b.txt"), &path).unwrap();
    assert_eq!(get(&mut files, &path, "GET", "").content, "moved");
    fs::remove_file(&path).unwrap();
    assert_eq!(get(&mut files, &path, "GET", "").status, 404);
}

#[test]
fn a_file_that_has_just_changed_is_not_kept_and_its_tag_is_weak() {
    let directory = Directory::new();
    let path = directory.write("a.txt", "old", 0);
    let mut files = Files::default();
    let answer = get(&mut files, &path, "GET", "");
    assert!(answer.field("ETag").unwrap().starts_with("W/"), "{answer:?}");
    let metadata = fs::metadata(&path).unwrap();
    assert!(files.cache.find(path.as_os_str().as_bytes(), &metadata).is_none());
}

/// A directory of one test, gone with it.
struct Directory {
    directory: TempDir,
}

impl Directory {
    fn new() -> Directory {
        Directory { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file and sets its modification time to so many seconds ago.
    fn write(&self, name: &str, text: &str, age: u64) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        let modified = SystemTime::now() - Duration::from_secs(age);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(modified)).unwrap();
        path
    }

    /// Waits until the file is old enough to be kept. Nobody can set the time of its last change.
    fn wait_until_settled(&self, path: &Path) {
        let changed = version::changed(&fs::metadata(path).unwrap());
        let age = Duration::from_millis(2_010);
        while changed.elapsed().is_ok_and(|elapsed| elapsed < age) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    fields: String,
    content: String,
}

impl Answer {
    fn field(&self, name: &str) -> Option<String> {
        let mut lines = self.fields.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(other, _)| *other == name).map(|(_, value)| value.to_owned())
    }
}

fn get(files: &mut Files, path: &Path, method: &str, fields: &str) -> Answer {
    let head = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let mut room = HeadRoom::default();
    let head = parse(head.as_bytes(), &HeadLimits::default(), &mut room).unwrap().unwrap();
    let mut reply = Reply::default();
    let wanted = Wanted {
        path: path.as_os_str().as_bytes(),
        serving: Serving::default(),
        media_type: Some(b"text/plain"),
    };
    files.answer(&head, wanted, None, &mut reply);
    let mut content = Vec::new();
    if let Some(FileContent { file, pieces }) = reply.take_content(&mut content) {
        use std::os::unix::fs::FileExt;
        for piece in pieces {
            match piece {
                Piece::Text(text) => content.extend_from_slice(&text),
                Piece::Part(part) => {
                    let start = content.len();
                    content.resize(start + (part.end - part.start) as usize, 0);
                    file.read_exact_at(&mut content[start..], part.start).unwrap();
                }
            }
        }
    }
    Answer {
        status: reply.status(),
        fields: String::from_utf8(reply.fields().to_vec()).unwrap(),
        content: String::from_utf8(content).unwrap(),
    }
}

//! What the tests of files share: the tree, the fields that are compared.

use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use milepost_testkit::beside::{Beside, fields};

/// What both must say alike of a file.
const COMPARED: [&str; 19] = [
    "Content-Location",
    "Content-MD5",
    "Content-Security-Policy",
    "Content-Disposition",
    "Set-Cookie",
    "Content-Type",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Range",
    "Accept-Ranges",
    "Last-Modified",
    "ETag",
    "Vary",
    "Cache-Control",
    "Location",
    "Allow",
    "X-Set",
    "Expires",
];

/// When all files of the tests were modified: 2024-05-01 12:00:00.25 UTC.
pub(crate) const MODIFIED: Duration = Duration::from_micros(1_714_564_800_250_000);

/// Modules that redirects do not need.
const MODULES: [&str; 4] = ["expires", "autoindex", "negotiation", "reqtimeout"];

/// Starts both servers with `files` below `htdocs`, each with its content.
#[track_caller]
pub(crate) fn start(configuration: &str, files: &[(&str, &str)]) -> Beside {
    Beside::start(&MODULES, configuration, |root| {
        for (name, content) in files {
            write(&root.join("htdocs").join(name), content);
        }
    })
}

/// Writes a file, and says that it is old.
pub(crate) fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(UNIX_EPOCH + MODIFIED)).unwrap();
}

/// A time, as a field has it.
pub(crate) fn date(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

/// Asks both for each target, and compares status, fields and, for files, content.
#[track_caller]
pub(crate) fn check(configuration: &str, files: &[(&str, &str)], requests: &[&str]) {
    let requests: Vec<String> = requests.iter().map(|request| get(request)).collect();
    start(configuration, files).compare(&requests, shown);
}

/// A request from its target and fields, or a whole one.
pub(crate) fn get(request: &str) -> String {
    if !request.starts_with('/') {
        return request.to_owned();
    }
    let (target, fields) = request.split_once('\n').unwrap_or((request, ""));
    format!("GET {target} HTTP/1.1\n{fields}")
}

/// What is compared: pages that a server makes itself are in words of its own.
pub(crate) fn shown(head: &str, content: &str) -> String {
    let status = head.get(9..12).unwrap_or("no status");
    let is_page = content.starts_with("<!DOCTYPE") || matches!(status, "412" | "416");
    if is_page {
        // httpd says the length of the file in a 412 to HEAD, and leaves `Content-Range` out of a 416.
        let is_own = |name: &str| matches!(name, "Content-Length" | "Content-Range");
        let names: Vec<_> = COMPARED.iter().copied().filter(|name| !is_own(name)).collect();
        let charset = |text: String| text.replace("; charset=iso-8859-1", "; charset=utf-8");
        return charset(format!("{status}{}", fields(head, &names)));
    }
    format!("{status}{} | {content:?}", fields(head, &COMPARED))
}

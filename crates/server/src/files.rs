//! Answers with a file: its content, a part of it, or the word that the client has it already.
//!
//! A small file is kept in memory, and given out only after a `stat` has shown that it is still the
//! same: one system call instead of four, and never an old answer. A large one is opened and sent
//! piece by piece.
//!
//! Source: RFC 9110 sections 8.8, 13 and 14; httpd 2.4.71 `server/core.c`, `default_handler`,
//! `modules/http/http_etag.c`.

mod cache;
mod media_type;
mod precondition;
mod range;
#[cfg(test)]
mod tests;
mod version;

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::time::SystemTime;

use milepost_http::request::RequestHead;
use rustix::fs::{Mode, OFlags};

use crate::reply::Reply;
use cache::{Cache, FILE_CACHED_BYTES_MAX};
use precondition::Precondition;
use range::Part;
use version::Version;

/// The methods that a file answers to.
pub(crate) const ALLOWED: &[u8] = b"HEAD,GET,POST,OPTIONS";

/// The other methods that Apache knows by name; what is none of them is not implemented.
const KNOWN: &[&[u8]] = &[
    b"BASELINE-CONTROL",
    b"CHECKIN",
    b"CHECKOUT",
    b"CONNECT",
    b"COPY",
    b"DELETE",
    b"LABEL",
    b"LOCK",
    b"MERGE",
    b"MKACTIVITY",
    b"MKCOL",
    b"MKWORKSPACE",
    b"MOVE",
    b"PATCH",
    b"PROPFIND",
    b"PROPPATCH",
    b"PUT",
    b"REPORT",
    b"TRACE",
    b"UNCHECKOUT",
    b"UNLOCK",
    b"UPDATE",
    b"VERSION-CONTROL",
];

/// The files of one worker.
#[derive(Default)]
pub(crate) struct Files {
    cache: Cache,
}

/// A file that can be sent: what it is, and where its bytes are.
struct Found {
    version: Rc<Version>,
    content: Source,
}

/// Where the bytes of a file are.
enum Source {
    Memory(Rc<[u8]>),
    Open(File),
}

impl Files {
    /// Makes `reply` the answer of the file at `path`.
    ///
    /// `seen` is what a look at the path has just shown, if there was one.
    pub(crate) fn answer(
        &mut self,
        request: &RequestHead<'_>,
        path: &[u8],
        seen: Option<Metadata>,
        reply: &mut Reply,
    ) {
        match request.method {
            // Apache gives a file to a POST as well.
            b"GET" | b"HEAD" | b"POST" => {}
            b"OPTIONS" => return reply.add_field("Allow", ALLOWED),
            method => {
                reply.add_field("Allow", ALLOWED);
                return reply.error(if KNOWN.contains(&method) { 405 } else { 501 });
            }
        }
        match self.find(path, seen) {
            Ok(found) => answer_found(request, found, reply),
            Err(error) => reply.error(status_of(&error)),
        }
    }

    /// Makes `reply` the document of an error: the whole file, whatever the request asks for.
    pub(crate) fn answer_whole(
        &mut self,
        status: u16,
        path: &[u8],
        seen: Option<Metadata>,
        reply: &mut Reply,
    ) {
        match self.find(path, seen) {
            Ok(Found { version, content }) => {
                reply.set_status(status);
                reply.add_lines(&version.fields);
                send(content, 0..version.length, reply);
            }
            Err(_) => reply.error(status),
        }
    }

    /// Finds the file in memory or opens it.
    fn find(&mut self, path: &[u8], seen: Option<Metadata>) -> io::Result<Found> {
        let name = Path::new(OsStr::from_bytes(path));
        let metadata = seen.map_or_else(|| fs::metadata(name), Ok)?;
        if let Some((version, bytes)) = self.cache.find(path, &metadata) {
            return Ok(Found { version, content: Source::Memory(bytes) });
        }
        // Opening a pipe would wait for its other end, if one has been put there just now.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut file = File::from(rustix::fs::open(name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let now = SystemTime::now();
        let version = Rc::new(Version::new(path, &metadata, now));
        if metadata.len() > FILE_CACHED_BYTES_MAX {
            return Ok(Found { version, content: Source::Open(file) });
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        (&mut file).take(FILE_CACHED_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != metadata.len() {
            // It is being written. What we have is neither the old file nor the new one.
            return Ok(Found { version, content: Source::Open(file) });
        }
        let bytes: Rc<[u8]> = bytes.into();
        self.cache.keep(path, &metadata, now, &version, &bytes);
        Ok(Found { version, content: Source::Memory(bytes) })
    }
}

/// Makes the reply, now that there is a file.
fn answer_found(request: &RequestHead<'_>, found: Found, reply: &mut Reply) {
    let Found { version, content } = found;
    match precondition::evaluate(request, &version) {
        Precondition::Passed => {}
        Precondition::NotModified => {
            reply.set_status(304);
            reply.add_field("ETag", &version.etag);
            return;
        }
        Precondition::Failed => return reply.error(412),
    }
    let part = match range::select(request, &version) {
        Part::Whole => 0..version.length,
        Part::Range(part) => {
            reply.set_status(206);
            let last = part.end - 1;
            let range = format!("bytes {}-{last}/{}", part.start, version.length);
            reply.add_field("Content-Range", range.as_bytes());
            part
        }
        Part::Unsatisfiable => {
            reply.add_field("Content-Range", format!("bytes */{}", version.length).as_bytes());
            return reply.error(416);
        }
    };
    reply.add_lines(&version.fields);
    send(content, part, reply);
}

/// Makes a part of a file the content of the reply.
fn send(content: Source, part: std::ops::Range<u64>, reply: &mut Reply) {
    match content {
        // The bytes in memory are as many as the version says, so the part lies within them.
        Source::Memory(bytes) => reply.set_shared(bytes, part.start as usize, part.end as usize),
        Source::Open(file) => reply.set_file(file, part.start, part.end - part.start),
    }
}

/// The status for a file that cannot be opened.
fn status_of(error: &io::Error) -> u16 {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => 404,
        io::ErrorKind::PermissionDenied => 403,
        // No descriptor is left, or the disk fails: it may work the next time.
        _ => 503,
    }
}

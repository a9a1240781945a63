//! Answers with a file: its content, a part of it, or the word that the client has it already.
//!
//! A small file is kept in memory, and given out only after a `stat` has shown that it is still the
//! same: one system call instead of four, and never an old answer. A large one is opened and sent
//! piece by piece.
//!
//! Source: RFC 9110 sections 8.8, 13 and 14; httpd 2.4.71 `server/core.c`, `default_handler`.

mod cache;
mod digest;
mod multipart;
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

use milepost_engine::{RangeLimit, Serving};
use milepost_http::method::is_known;
use milepost_http::request::RequestHead;
use rustix::fs::{Mode, OFlags};

use crate::reply::{FileContent, Piece, Reply};
use cache::{Cache, FILE_CACHED_BYTES_MAX};
use precondition::Precondition;
use range::Selected;
use version::Version;

pub(crate) use version::etag_of;

/// The methods that a file answers to.
pub(crate) const ALLOWED: &[u8] = b"HEAD,GET,POST,OPTIONS";

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

/// How a file is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) serving: Serving,
    /// The media type, for the parts of a multipart content.
    pub(crate) media_type: Option<&'a [u8]>,
}

impl Files {
    /// Makes `reply` the answer of a file.
    ///
    /// `seen` is what a look at its path has just shown, if there was one.
    pub(crate) fn answer(
        &mut self,
        request: &RequestHead<'_>,
        wanted: Wanted<'_>,
        seen: Option<Metadata>,
        reply: &mut Reply,
    ) {
        match request.method {
            // Apache gives a file to a POST as well.
            b"GET" | b"HEAD" | b"POST" => {}
            b"OPTIONS" => return reply.add_field("Allow", ALLOWED),
            method => {
                reply.add_field("Allow", ALLOWED);
                return reply.error(if is_known(method) { 405 } else { 501 });
            }
        }
        match self.find(wanted, seen) {
            Ok(found) => answer_found(request, found, wanted, reply),
            Err(error) => reply.error(status_of(&error)),
        }
    }

    /// Makes `reply` the document of an error: the whole file, whatever the request asks for.
    pub(crate) fn answer_whole(
        &mut self,
        status: u16,
        wanted: Wanted<'_>,
        seen: Option<Metadata>,
        reply: &mut Reply,
    ) {
        match self.find(wanted, seen) {
            Ok(Found { version, content }) => {
                reply.set_status(status);
                reply.add_lines(&version.fields);
                add_accept_ranges(wanted.serving, reply);
                send(content, 0..version.length, reply);
            }
            Err(_) => reply.error(status),
        }
    }

    /// Finds the file in memory or opens it.
    fn find(&mut self, wanted: Wanted<'_>, seen: Option<Metadata>) -> io::Result<Found> {
        let Wanted { path, serving, .. } = wanted;
        let name = Path::new(OsStr::from_bytes(path));
        let metadata = seen.map_or_else(|| fs::metadata(name), Ok)?;
        if let Some((version, bytes)) = self.cache.find(path, &metadata)
            && version.parts == serving.etag
        {
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
        let digests = serving.etag.is_some_and(|parts| parts.digest);
        let version = |digest: Option<String>| {
            Rc::new(Version::new(&metadata, now, serving.etag, digest.as_deref()))
        };
        let open = |file: File| {
            let digest = if digests { Some(digest::of_file(&file)?) } else { None };
            Ok(Found { version: version(digest), content: Source::Open(file) })
        };
        if metadata.len() > FILE_CACHED_BYTES_MAX {
            return open(file);
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        (&mut file).take(FILE_CACHED_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != metadata.len() {
            // It is being written. What we have is neither the old file nor the new one.
            return open(file);
        }
        let bytes: Rc<[u8]> = bytes.into();
        let version = version(digests.then(|| digest::of_bytes(&bytes)));
        self.cache.keep(path, &metadata, now, &version, &bytes);
        Ok(Found { version, content: Source::Memory(bytes) })
    }
}

/// Makes the reply, now that there is a file.
fn answer_found(request: &RequestHead<'_>, found: Found, wanted: Wanted<'_>, reply: &mut Reply) {
    let Found { version, content } = found;
    let serving = wanted.serving;
    match precondition::evaluate(request, &version) {
        Precondition::Passed => {}
        Precondition::NotModified => {
            reply.set_status(304);
            reply.add_lines(&version.fields);
            return add_accept_ranges(serving, reply);
        }
        // As the file would be sent, without its content and without an `ErrorDocument`.
        Precondition::Failed => {
            reply.set_status(412);
            reply.add_lines(&version.fields);
            return add_accept_ranges(serving, reply);
        }
    }
    let ranges = match range::select(request, &version, &serving) {
        Selected::Whole => None,
        Selected::Ranges(ranges) => Some(ranges),
        Selected::Unsatisfiable => {
            reply.add_field("Content-Range", format!("bytes */{}", version.length).as_bytes());
            return reply.error(416);
        }
    };
    reply.add_lines(&version.fields);
    add_accept_ranges(serving, reply);
    let Some(ranges) = ranges else { return send(content, 0..version.length, reply) };
    reply.set_status(206);
    if let [range] = &ranges[..] {
        let last = range.end - 1;
        let place = format!("bytes {}-{last}/{}", range.start, version.length);
        reply.add_field("Content-Range", place.as_bytes());
        send(content, range.clone(), reply);
    } else {
        multipart::send(content, &ranges, version.length, wanted.media_type, reply);
    }
}

fn add_accept_ranges(serving: Serving, reply: &mut Reply) {
    let none = serving.ranges_max == RangeLimit::None;
    reply.add_field("Accept-Ranges", if none { b"none" } else { b"bytes" });
}

/// Makes a part of a file the content of the reply.
fn send(content: Source, part: std::ops::Range<u64>, reply: &mut Reply) {
    match content {
        // The bytes in memory are as many as the version says, so the part lies within them.
        Source::Memory(bytes) => reply.set_shared(bytes, part.start as usize, part.end as usize),
        Source::Open(file) => {
            reply.set_file(FileContent { file, pieces: [Piece::Part(part)].into() });
        }
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

//! One version of a file: its length, its validators, and the fields that tell of them.
//!
//! Source: RFC 9110 section 8.8; httpd 2.4.71 `server/util_etag.c`, `ap_make_etag_ex`.

use std::fmt::Write as _;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;
use milepost_engine::EtagParts;

/// How long a version must have lasted before its entity tag is a strong one. A second change within
/// the resolution of the modification time would not show.
const SETTLED: Duration = Duration::from_secs(1);

/// What is said of a file besides its bytes.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) length: u64,
    /// What the entity tag is made of.
    pub(super) parts: Option<EtagParts>,
    /// The entity tag, with quotes; empty if there is none.
    pub(super) etag: Box<[u8]>,
    /// When it was modified, in whole seconds; never in the future.
    pub(super) modified: SystemTime,
    /// `Last-Modified` and `ETag`.
    pub(super) fields: Box<[u8]>,
}

impl Version {
    /// Reads it off what the file system says; `digest` is that of its content, in base 64.
    pub(super) fn new(
        metadata: &Metadata,
        now: SystemTime,
        parts: Option<EtagParts>,
        digest: Option<&str>,
    ) -> Version {
        let changed = modified(metadata);
        let is_settled = is_settled(changed, now);
        let etag = parts.map(|parts| etag(metadata, parts, digest, is_settled)).unwrap_or_default();
        let modified = whole_seconds(changed.min(now));
        let mut fields = format!("Last-Modified: {}\r\n", HttpDate::from(modified));
        if !etag.is_empty() {
            let _ = write!(fields, "ETag: {etag}\r\n");
        }
        Version {
            length: metadata.len(),
            parts,
            etag: etag.into_bytes().into(),
            modified,
            fields: fields.into_bytes().into(),
        }
    }
}

/// The entity tag of a file or directory as it is now, without a digest.
pub(crate) fn etag_of(metadata: &Metadata, parts: EtagParts) -> String {
    let is_settled = is_settled(modified(metadata), SystemTime::now());
    etag(metadata, parts, None, is_settled)
}

fn is_settled(changed: SystemTime, now: SystemTime) -> bool {
    now.duration_since(changed).is_ok_and(|age| age >= SETTLED)
}

/// Puts an entity tag together. A digest needs nothing beside it, and is never weak.
fn etag(metadata: &Metadata, parts: EtagParts, digest: Option<&str>, is_settled: bool) -> String {
    if let Some(digest) = digest {
        return format!("\"{digest}\"");
    }
    let micros = metadata.mtime().wrapping_mul(1_000_000) + metadata.mtime_nsec() / 1_000;
    let mut tag = if is_settled { "\"".to_owned() } else { "W/\"".to_owned() };
    let start = tag.len();
    let numbers = [
        (parts.inode, metadata.ino()),
        (parts.size, metadata.len()),
        (parts.modified, micros.cast_unsigned()),
    ];
    for (_, number) in numbers.into_iter().filter(|(is_part, _)| *is_part) {
        if tag.len() > start {
            tag.push('-');
        }
        let _ = write!(tag, "{number:x}");
    }
    tag.push('"');
    tag
}

/// When the file was modified; what lies before 1970 counts as 1970.
pub(super) fn modified(metadata: &Metadata) -> SystemTime {
    since_epoch(metadata.mtime(), metadata.mtime_nsec())
}

/// When name, rights or content of the file changed.
pub(super) fn changed(metadata: &Metadata) -> SystemTime {
    since_epoch(metadata.ctime(), metadata.ctime_nsec())
}

fn since_epoch(seconds: i64, nanos: i64) -> SystemTime {
    // A date needs four digits for its year.
    const YEAR_9999: u64 = 253_402_300_799;
    let seconds = u64::try_from(seconds).unwrap_or(0).min(YEAR_9999);
    UNIX_EPOCH + Duration::new(seconds, u32::try_from(nanos).unwrap_or(0))
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

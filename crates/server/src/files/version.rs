//! One version of a file: its length, its validators, and the fields that tell of them.
//!
//! Source: RFC 9110 section 8.8; httpd 2.4.71 `modules/http/http_etag.c`, `ap_make_etag_ex`
//! (`FileETag MTime Size`).

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

use super::media_type;

/// How long a version must have lasted before its entity tag is a strong one. A second change within
/// the resolution of the modification time would not show.
const SETTLED: Duration = Duration::from_secs(1);

/// What is said of a file besides its bytes.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) length: u64,
    /// The entity tag, with quotes.
    pub(super) etag: Box<[u8]>,
    /// When it was modified, in whole seconds; never in the future.
    pub(super) modified: SystemTime,
    /// `Last-Modified`, `ETag`, `Accept-Ranges` and, if we know it, `Content-Type`.
    pub(super) fields: Box<[u8]>,
}

impl Version {
    /// Reads it off what the file system says.
    pub(super) fn new(path: &[u8], metadata: &Metadata, now: SystemTime) -> Version {
        let length = metadata.len();
        let changed = modified(metadata);
        let weak = now.duration_since(changed).map_or(true, |age| age < SETTLED);
        let micros = metadata.mtime().wrapping_mul(1_000_000) + metadata.mtime_nsec() / 1_000;
        let etag = format!("{}\"{length:x}-{micros:x}\"", if weak { "W/" } else { "" });
        let modified = whole_seconds(changed.min(now));
        let mut fields = format!(
            "Last-Modified: {}\r\nETag: {etag}\r\nAccept-Ranges: bytes\r\n",
            HttpDate::from(modified)
        );
        if let Some(media_type) = media_type::of(path) {
            fields.push_str("Content-Type: ");
            fields.push_str(media_type);
            fields.push_str("\r\n");
        }
        Version {
            length,
            etag: etag.into_bytes().into(),
            modified,
            fields: fields.into_bytes().into(),
        }
    }
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

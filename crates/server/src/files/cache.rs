//! Small files in memory, each with the stamp that it was read under.
//!
//! An entry is used only while a `stat` of the path gives the same stamp. That leaves one gap: a file
//! that is changed twice within one tick of the file system's clock has the same times for both
//! versions. So a file is kept only when its last change was long enough before it was read.
//!
//! Source: the same gap in git, `Documentation/technical/racy-git.adoc`.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use super::version::{self, Version};

/// The largest file that is kept: above it, copying costs more than opening.
pub(super) const FILE_CACHED_BYTES_MAX: u64 = 64 * 1024;

/// The most that one worker keeps. When it is full everything goes, and what is in use comes back with
/// the next requests.
const CACHE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The most files that one worker keeps, as very small ones cost more than their bytes.
const CACHE_FILES_MAX: usize = 16 * 1024;

/// How old the last change must be: FAT, the coarsest file system in use, counts in steps of 2 s.
const SETTLED: Duration = Duration::from_secs(2);

/// Small files by path.
#[derive(Default)]
pub(super) struct Cache {
    files: HashMap<Box<[u8]>, Entry, foldhash::fast::RandomState>,
    bytes: usize,
}

struct Entry {
    stamp: Stamp,
    version: Rc<Version>,
    bytes: Rc<[u8]>,
}

/// What must be the same for the content to be the same.
#[derive(PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// A file that may not be read any more must not be given out from memory.
    mode: u32,
}

impl Stamp {
    fn new(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            mode: metadata.mode(),
        }
    }
}

impl Cache {
    /// Returns the file at `path`, if it is what `metadata`, just taken, tells of.
    pub(super) fn find(&self, path: &[u8], metadata: &Metadata) -> Option<(Rc<Version>, Rc<[u8]>)> {
        let entry = self.files.get(path)?;
        (entry.stamp == Stamp::new(metadata))
            .then(|| (Rc::clone(&entry.version), Rc::clone(&entry.bytes)))
    }

    /// Keeps a file that was read at `now`, unless it is too young.
    pub(super) fn keep(
        &mut self,
        path: &[u8],
        metadata: &Metadata,
        now: SystemTime,
        version: &Rc<Version>,
        bytes: &Rc<[u8]>,
    ) {
        let last = version::modified(metadata).max(version::changed(metadata));
        if now.duration_since(last).map_or(true, |age| age < SETTLED) {
            return;
        }
        if self.bytes + bytes.len() > CACHE_BYTES_MAX || self.files.len() >= CACHE_FILES_MAX {
            self.files.clear();
            self.bytes = 0;
        }
        self.bytes += bytes.len();
        let entry = Entry {
            stamp: Stamp::new(metadata),
            version: Rc::clone(version),
            bytes: Rc::clone(bytes),
        };
        if let Some(old) = self.files.insert(path.into(), entry) {
            self.bytes -= old.bytes.len();
        }
    }
}

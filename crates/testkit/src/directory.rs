//! A directory for one test run, readable by the user that httpd becomes, removed when dropped.
//!
//! It lies in memory where the system has such a place: a batch of cases is thousands of small
//! files, and writing those to a disk took thirty times as long as asking httpd about them.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Names tried before giving up; more than one is needed only when process ids were reused.
const ATTEMPTS_MAX: u32 = 100;

/// Where Linux keeps files in memory.
const IN_MEMORY: &str = "/dev/shm";

/// A directory in memory, or below the system's one for temporary files.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Makes a new directory that everyone may read.
    ///
    /// # Errors
    /// As the file system reports them.
    pub fn new() -> io::Result<Directory> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let in_memory = Path::new(IN_MEMORY);
        let writable = rustix::fs::access(in_memory, rustix::fs::Access::WRITE_OK).is_ok();
        let parent = if writable { in_memory.to_owned() } else { std::env::temp_dir() };
        let parent = parent.canonicalize()?;
        for _ in 0..ATTEMPTS_MAX {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("milepost-test-{}-{number}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o755).create(&path) {
                Ok(()) => return Ok(Directory { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns its absolute path, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning of temporary files.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

//! A directory for one test run, readable by the user that httpd becomes, removed when dropped.
//!
//! It lies in memory where the system has such a place: a batch of cases is thousands of small
//! files, and writing those to a disk took thirty times as long as asking httpd about them.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Directories that one process may hold at a time.
const DIRECTORIES_MAX: u32 = 1000;

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
    /// Its name is the first free one: whoever makes one directory after another gets the same path
    /// again, so that answers that hold it in some disguise (escaped, in upper case) still compare.
    ///
    /// # Errors
    /// As the file system reports them.
    pub fn new() -> io::Result<Directory> {
        let in_memory = Path::new(IN_MEMORY);
        let writable = rustix::fs::access(in_memory, rustix::fs::Access::WRITE_OK).is_ok();
        let parent = if writable { in_memory.to_owned() } else { std::env::temp_dir() };
        let parent = parent.canonicalize()?;
        for number in 0..DIRECTORIES_MAX {
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

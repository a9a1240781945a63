//! Content of a request that is kept until it is complete: in memory, and beyond a bound in a file that
//! has no name.
//!
//! A backend is asked only when all of its request is there. So however slowly a client sends, no
//! connection to a backend waits for it, and a backend that gives up idle connections has none to give up.
//! And what is kept can be sent a second time.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use crate::limits::{PROXY_HELD_MEMORY_BYTES_MAX, PROXY_PIECE_BYTES};

/// The content.
#[derive(Debug, Default)]
pub(crate) struct Held {
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
}

impl Held {
    /// Appends `bytes`.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        if self.file.is_none() {
            if self.memory.len() + bytes.len() <= PROXY_HELD_MEMORY_BYTES_MAX {
                self.memory.extend_from_slice(bytes);
                return Ok(());
            }
            let mut file = unnamed_file()?;
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes),
            None => Ok(()),
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Appends a piece from `offset` on to `into`, and returns its length; 0 at the end.
    pub(crate) fn read(&self, offset: u64, into: &mut Vec<u8>) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let piece = left.min(PROXY_PIECE_BYTES);
        if piece == 0 {
            return Ok(0);
        }
        let start = into.len();
        match &self.file {
            None => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                into.extend_from_slice(self.memory.get(from..from + piece).unwrap_or_default());
            }
            Some(file) => {
                into.resize(start + piece, 0);
                let read = file.read_exact_at(&mut into[start..], offset);
                if read.is_err() {
                    into.truncate(start);
                }
                read?;
            }
        }
        Ok(into.len() - start)
    }
}

/// A file in the directory for temporary files (`TMPDIR`) that is gone when it is closed.
fn unnamed_file() -> io::Result<File> {
    let directory = std::env::temp_dir();
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let flag = i32::try_from(rustix::fs::OFlags::TMPFILE.bits()).unwrap_or_default();
    match options.clone().custom_flags(flag).open(&directory) {
        Ok(file) => Ok(file),
        // Not every file system has files without names: this one has a name for a moment.
        Err(_) => {
            let number = {
                let mut bytes = [0; 8];
                let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
                u64::from_ne_bytes(bytes)
            };
            let path = directory.join(format!("milepost-{}-{number:016x}", std::process::id()));
            let file = options.create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        for length in [0, 1, PROXY_HELD_MEMORY_BYTES_MAX, PROXY_HELD_MEMORY_BYTES_MAX + 1, 1 << 20]
        {
            let sent: Vec<u8> = (0..length).map(|number| (number % 251) as u8).collect();
            let mut held = Held::default();
            for piece in sent.chunks(7001) {
                held.append(piece).unwrap();
            }
            assert_eq!(held.file.is_some(), length > PROXY_HELD_MEMORY_BYTES_MAX);
            let mut back = Vec::new();
            while held.read(back.len() as u64, &mut back).unwrap() > 0 {}
            assert_eq!(back, sent);
        }
    }
}

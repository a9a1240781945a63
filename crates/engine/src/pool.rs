//! The text of a compiled site: configuration files as read, and what was derived from them.
//!
//! A rule points into the file that it came from, so a million rules cost little more than their text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use milepost_syntax::{Text, Tree};

use crate::decision::Place;

/// A piece of text in a [`Pool`]. Only the pool that made it can read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Str {
    /// 0 for derived text, else the number of the file plus one.
    chunk: u32,
    at: u32,
    len: u32,
}

impl Str {
    pub(crate) fn len(self) -> usize {
        self.len as usize
    }

    /// Where a text from a file stands; `None` for derived text.
    pub(crate) fn place(self) -> Option<Place> {
        Some(Place { file: self.chunk.checked_sub(1)?, offset: self.at })
    }

    pub(crate) fn slice(self, start: usize, len: usize) -> Str {
        debug_assert!(start + len <= self.len as usize);
        Str { at: self.at + start as u32, len: len as u32, ..self }
    }
}

/// Owns all text of a site. Texts are never removed.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    derived: Vec<u8>,
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    text: Arc<Tree>,
}

impl Pool {
    /// Adds a file and returns its number.
    pub(crate) fn add_file(&mut self, path: PathBuf, text: Arc<Tree>) -> u32 {
        self.files.push(File { path, text });
        self.files.len() as u32 - 1
    }

    /// Copies derived text in.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Str {
        let at =
            u32::try_from(self.derived.len()).expect("derived text is smaller than its sources");
        self.derived.extend_from_slice(bytes);
        Str { chunk: 0, at, len: bytes.len() as u32 }
    }

    /// Points at a text of file `file`.
    pub(crate) fn in_file(&self, file: u32, text: Text) -> Str {
        Str { chunk: file + 1, at: text.at() as u32, len: text.len() as u32 }
    }

    pub(crate) fn get(&self, text: Str) -> &[u8] {
        let (at, end) = (text.at as usize, (text.at + text.len) as usize);
        match text.chunk.checked_sub(1) {
            None => &self.derived[at..end],
            Some(file) => &self.files[file as usize].text.buffer()[at..end],
        }
    }

    pub(crate) fn path(&self, file: u32) -> &Path {
        &self.files[file as usize].path
    }

    pub(crate) fn tree(&self, file: u32) -> &Tree {
        &self.files[file as usize].text
    }

    /// The number of files.
    pub(crate) fn files(&self) -> u32 {
        self.files.len() as u32
    }

    /// Returns file and line (from 1) of a place. Costs a pass over the file.
    pub(crate) fn describe(&self, place: Place) -> (PathBuf, u32) {
        let (line, _, _) = self.tree(place.file).position(place.offset as usize);
        (self.path(place.file).to_owned(), line)
    }
}

//! Looks keys up in maps: `${map:key}`.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `lookup_map` and what it calls.

use std::collections::HashMap;

use milepost_http::path;

use super::Run;
use crate::diagnostic::{Diagnostic, Severity};
use crate::map::{FileMap, Form, ReadError, Table, Version};
use crate::outside::Outside;
use crate::program::{InternalMap, Map, QueryMap};

/// How many answers of a `fastdbd:` map a thread remembers. Apache has no limit; what would be past it
/// is asked each time.
const ANSWERS_MAX: usize = 1 << 20;

/// What a thread knows of the maps, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Counts requests, from 1.
    request: u64,
    files: Vec<KnownFile>,
    /// Answers of `fastdbd:` maps; `None` for keys without a value.
    answers: HashMap<usize, Answers>,
}

#[derive(Debug, Default)]
struct KnownFile {
    /// The request that looked at the file last.
    looked: u64,
    version: Option<Version>,
}

#[derive(Debug, Default)]
struct Answers(HashMap<Box<[u8]>, Option<Box<[u8]>>>);

impl Known {
    /// A request starts: files may have changed.
    pub(super) fn start(&mut self) {
        self.request += 1;
    }

    /// The contents of a file, looked at once a request.
    fn table(&mut self, map: &FileMap, outside: &dyn Outside) -> Option<&Table> {
        if self.files.len() <= map.number {
            self.files.resize_with(map.number + 1, KnownFile::default);
        }
        let known = &mut self.files[map.number];
        if known.looked != self.request {
            known.looked = self.request;
            if let Err(error) = map.refresh(&mut known.version, outside) {
                report(map, &error, outside);
            }
        }
        known.version.as_ref().map(Version::table)
    }
}

impl Run<'_> {
    /// Appends the value of `key` in the map `name`; false if the default stands for it.
    pub(super) fn look_up(&mut self, name: &[u8], key: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(map) = self.server.maps.get(name) else { return false };
        match &**map {
            Map::File(map) => self.file_value(map, key, out),
            Map::Internal(function) => {
                match function {
                    InternalMap::ToUpper => out.extend(key.iter().map(u8::to_ascii_uppercase)),
                    InternalMap::ToLower => out.extend(key.iter().map(u8::to_ascii_lowercase)),
                    InternalMap::Escape => path::escape(key, out),
                    InternalMap::Unescape => unescape_leniently(key, out),
                }
                true
            }
            // A line is what a program is asked, so a key cannot hold its end.
            Map::Program(number) => {
                !key.contains(&b'\n') && self.outside.ask_program(*number, key, out)
            }
            Map::Query(map) => self.query_value(map, key, out),
        }
    }

    fn file_value(&mut self, map: &FileMap, key: &[u8], out: &mut Vec<u8>) -> bool {
        let table = self.work.maps.table(map, self.outside);
        let Some(mut value) = table.and_then(|table| table.get(key)) else { return false };
        if map.form == Form::Random {
            let count = value.iter().filter(|&&byte| byte == b'|').count() + 1;
            if count > 1 {
                let chosen = self.outside.random() as usize % count;
                value = value.split(|&byte| byte == b'|').nth(chosen).unwrap_or_default();
            }
        }
        out.extend_from_slice(value);
        !value.is_empty()
    }

    fn query_value(&mut self, map: &QueryMap, key: &[u8], out: &mut Vec<u8>) -> bool {
        let database = &self.program.databases[self.server.database];
        if !map.cached {
            let value = self.outside.query(database, &map.sql, key);
            out.extend_from_slice(value.as_deref().unwrap_or_default());
            return value.is_some();
        }
        let Answers(answers) = self.work.maps.answers.entry(map.number).or_default();
        if let Some(value) = answers.get(key) {
            out.extend_from_slice(value.as_deref().unwrap_or_default());
            return value.as_deref().is_some_and(|value| !value.is_empty());
        }
        let value = self.outside.query(database, &map.sql, key).map(Vec::into_boxed_slice);
        out.extend_from_slice(value.as_deref().unwrap_or_default());
        let found = value.is_some();
        if answers.len() < ANSWERS_MAX {
            answers.insert(key.into(), value);
        }
        found
    }
}

/// Tells that a file has changed and cannot be read.
fn report(map: &FileMap, error: &ReadError, outside: &dyn Outside) {
    outside.report(&[Diagnostic {
        severity: Severity::Warning,
        file: map.path().to_owned(),
        line: 0,
        column: 0,
        length: 0,
        text: String::new(),
        message: error.to_string(),
        hint: None,
        also: None,
    }]);
}

/// `ap_unescape_url` as `int:unescape` uses it: what cannot be decoded stays, and a zero byte ends it.
fn unescape_leniently(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        match path::hex_pair(&rest[at + 1..]) {
            Some(0) => return,
            Some(byte) => {
                out.push(byte);
                rest = &rest[at + 3..];
            }
            _ => {
                out.push(b'%');
                rest = &rest[at + 1..];
            }
        }
    }
    out.extend_from_slice(rest);
}

//! Finds what stands at the mapped path, and merges the sections that are for it.
//!
//! Source: httpd 2.4.71 `server/request.c`, `ap_directory_walk`, `ap_file_walk`, `ap_location_walk`.

use std::sync::Arc;

use super::{Config, Hop, MERGED_MAX, Run};
use crate::build::bytes_to_path;
use crate::outside::FileKind;
use crate::program::{DirConfig, Section, SectionMatcher};
use crate::wildcard;

/// Kinds of sections in the key of a merged configuration: the upper bits of a section's number.
const DIRECTORY: u32 = 0;
const FILES: u32 = 1 << 30;
const LOCATION: u32 = 2 << 30;
const NUMBER: u32 = FILES - 1;

impl<'r> Run<'r> {
    /// The configuration for a URL-path, before its file is known.
    pub(super) fn location_config(&mut self, hop: &Hop) -> Config<'r> {
        if self.server.locations.is_empty() {
            return Config::Base(&self.server.base);
        }
        self.work.sections.clear();
        self.add_locations(hop);
        self.merged()
    }

    /// The configuration for the file at `hop.filename`: finds the file, splits the path info off.
    ///
    /// Errors are statuses.
    pub(super) fn map_to_storage(&mut self, hop: &mut Hop) -> Result<Config<'r>, u16> {
        self.find_file(hop);
        self.work.sections.clear();
        self.add_directories(hop);
        if self.links_on_the_way(hop) {
            return Err(403);
        }
        self.add_files(hop);
        self.add_locations(hop);
        Ok(self.merged())
    }

    /// Looks at the path, and at what is above it until something is there.
    fn find_file(&self, hop: &mut Hop) {
        hop.path_info.clear();
        let kind = self.outside.kind(bytes_to_path(&hop.filename));
        if kind != FileKind::Missing || hop.filename.first() != Some(&b'/') {
            hop.kind = Some(kind);
            return;
        }
        let mut end = hop.filename.len();
        loop {
            let Some(slash) =
                memchr::memrchr(b'/', &hop.filename[..end]).filter(|&slash| slash > 0)
            else {
                break;
            };
            match self.outside.kind(bytes_to_path(&hop.filename[..slash])) {
                FileKind::Missing => end = slash,
                FileKind::Directory => break,
                kind => {
                    hop.path_info.extend_from_slice(&hop.filename[slash..]);
                    hop.filename.truncate(slash);
                    hop.kind = Some(kind);
                    return;
                }
            }
        }
        // `end` is where the first missing segment ends; what follows is path info.
        hop.path_info.extend_from_slice(&hop.filename[end..]);
        hop.filename.truncate(end);
        hop.kind = Some(FileKind::Missing);
    }

    fn add_directories(&mut self, hop: &Hop) {
        let directory = directory_of(hop);
        for (section, number) in self.server.directories.iter().zip(0..) {
            if self.covers_directory(section, directory, hop.kind == Some(FileKind::Directory)) {
                self.work.sections.push(DIRECTORY | number);
            }
        }
    }

    fn covers_directory(&mut self, section: &Section, directory: &[u8], open: bool) -> bool {
        let pool = &self.program.pool;
        let starts = |prefix: &[u8]| {
            directory.starts_with(prefix) || open && prefix.strip_suffix(b"/") == Some(directory)
        };
        match &section.matcher {
            SectionMatcher::Path(path) => starts(pool.get(*path)),
            SectionMatcher::Wildcard(pattern) => {
                let pattern = pool.get(*pattern);
                let depth = pattern.iter().filter(|&&byte| byte == b'/').count();
                let end = memchr::memchr_iter(b'/', directory).nth(depth - 1);
                end.is_some_and(|end| wildcard::matches(pattern, &directory[..=end]))
            }
            SectionMatcher::Regex(pattern) => {
                let mut find = |text: &[u8]| {
                    pattern
                        .find(pool, text, &mut self.work.matcher)
                        .is_ok_and(|found| found.is_some())
                };
                let bare = directory.strip_suffix(b"/").unwrap_or(directory);
                find(directory) || find(bare)
            }
        }
    }

    /// Whether a symbolic link stands on the way where `Options` does not allow it.
    fn links_on_the_way(&mut self, hop: &Hop) -> bool {
        let follows = |config: &DirConfig| config.options.follows_all_links();
        let everywhere = follows(&self.server.base)
            && self
                .server
                .directories
                .iter()
                .all(|section| section.config.options.follow_links != Some(false));
        if everywhere || hop.filename.first() != Some(&b'/') {
            return false;
        }
        let path = &hop.filename;
        let mut options = self.server.base.options;
        let ends = memchr::memchr_iter(b'/', path).skip(1).chain([path.len()]);
        let mut start = 0;
        for end in ends {
            // The directory that holds this segment decides whether it may be a link.
            let holder = &path[..=start];
            let mut config = DirConfig { options, ..DirConfig::default() };
            let server = self.server;
            for section in &server.directories {
                let here = matches!(&section.matcher, SectionMatcher::Path(path) if self.program.pool.get(*path) == holder);
                if here {
                    config.merge(&section.config);
                }
            }
            options = config.options;
            if !options.follows_all_links()
                && end > start + 1
                && self.outside.kind_of_link(bytes_to_path(&path[..end])) == FileKind::Link
            {
                return true;
            }
            start = end;
        }
        false
    }

    fn add_files(&mut self, hop: &Hop) {
        let has_files = !self.server.base.files.is_empty()
            || self.server.directories.iter().any(|section| !section.config.files.is_empty());
        if !has_files || hop.kind == Some(FileKind::Directory) {
            return;
        }
        let config = self.merged();
        let start = memchr::memrchr(b'/', &hop.filename).map_or(0, |slash| slash + 1);
        let name = &hop.filename[start..];
        let pool = &self.program.pool;
        for (section, number) in config.get().files.iter().zip(0..) {
            let covers = match &section.matcher {
                SectionMatcher::Path(path) => pool.get(*path) == name,
                SectionMatcher::Wildcard(pattern) => wildcard::matches(pool.get(*pattern), name),
                SectionMatcher::Regex(pattern) => pattern
                    .find(pool, name, &mut self.work.matcher)
                    .is_ok_and(|found| found.is_some()),
            };
            if covers {
                self.work.sections.push(FILES | number);
            }
        }
    }

    fn add_locations(&mut self, hop: &Hop) {
        let pool = &self.program.pool;
        for (section, number) in self.server.locations.iter().zip(0..) {
            let covers = match &section.matcher {
                SectionMatcher::Path(path) => covers_location(pool.get(*path), &hop.uri),
                SectionMatcher::Wildcard(pattern) => {
                    wildcard::matches(pool.get(*pattern), &hop.uri)
                }
                SectionMatcher::Regex(pattern) => pattern
                    .find(pool, &hop.uri, &mut self.work.matcher)
                    .is_ok_and(|found| found.is_some()),
            };
            if covers {
                self.work.sections.push(LOCATION | number);
            }
        }
    }

    /// The merged configuration of the collected sections, remembered by their numbers.
    fn merged(&mut self) -> Config<'r> {
        let server: &'r _ = self.server;
        if self.work.sections.is_empty() {
            return Config::Base(&server.base);
        }
        // The key ends with the server's number, which no section has.
        self.work.sections.push(u32::MAX - self.server_number);
        let known = self.work.merged.get(&self.work.sections[..]).cloned();
        self.work.sections.pop();
        if let Some(config) = known {
            return Config::Merged(config);
        }
        let mut config = server.base.clone();
        for &section in &self.work.sections {
            let number = (section & NUMBER) as usize;
            let over = match section & !NUMBER {
                DIRECTORY => Arc::clone(&server.directories[number]),
                FILES => Arc::clone(&config.files[number]),
                _ => Arc::clone(&server.locations[number]),
            };
            config.merge(&over.config);
        }
        let config = Arc::new(config);
        if self.work.merged.len() < MERGED_MAX {
            let mut key = self.work.sections.clone();
            key.push(u32::MAX - self.server_number);
            self.work.merged.insert(key.into(), Arc::clone(&config));
        }
        Config::Merged(config)
    }
}

/// The directory of the file, with its slash; of a directory, the directory itself.
fn directory_of(hop: &Hop) -> &[u8] {
    let path = &hop.filename;
    if hop.kind == Some(FileKind::Directory) {
        return path;
    }
    let end = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    &path[..end]
}

/// `<Location /p>`: whole segments, unless it ends in a slash. Runs of slashes count as one.
fn covers_location(location: &[u8], uri: &[u8]) -> bool {
    if location == b"/" {
        return true;
    }
    super::alias::covers(location, uri) > 0
}

//! Finds what stands at the mapped path, and merges the sections that are for it.
//!
//! Source: httpd 2.4.71 `server/request.c`, `ap_directory_walk`, `ap_file_walk`, `ap_location_walk`.

use std::borrow::Cow;
use std::sync::Arc;

use milepost_pcre::{Captures, Case};

use super::canonical::{append_path, is_merged};
use super::table::Table;
use super::{Config, Hop, MERGED_MAX, Run, if_walk};
use crate::build::bytes_to_path;
use crate::outside::FileKind;
use crate::program::{DirConfig, Options, Override, Part, Section, SectionMatcher};
use crate::wildcard;

/// Kinds of sections in the key of a merged configuration: the upper bits of a section's number.
const DIRECTORY: u32 = 0;
const FILES: u32 = 1 << 29;
const LOCATION: u32 = 2 << 29;
const HTACCESS: u32 = 3 << 29;
pub(super) const IF: u32 = 4 << 29;
const PROXY: u32 = 6 << 29;
/// What follows are `<If>` sections inside those before it.
pub(super) const LEVEL: u32 = 5 << 29;
const NUMBER: u32 = FILES - 1;

/// Longest name of a file, `NAME_MAX`. What is longer is not missing: it cannot be looked at.
const NAME_BYTES_MAX: usize = 255;

/// What a walk down the directories has come to.
struct Walk {
    options: Options,
    /// What a `.htaccess` may say; `None`: it is not looked for.
    allowed: Option<Arc<Override>>,
    /// The number of the next directory section, and how deep the walk is.
    next: usize,
    depth: usize,
}

/// The sections with a regular expression that a walk found, and the directory that they are for.
///
/// Whoever comes to a file of that directory next, in a subrequest or after an internal redirect, gets the
/// same ones: the patterns are not tried on the new file name.
#[derive(Debug, Clone)]
pub(super) struct Walked {
    directory: Vec<u8>,
    sections: Vec<u32>,
}

impl<'r> Run<'r> {
    /// The configuration for a URL-path, before its file is known.
    pub(super) fn location_config(&mut self, hop: &mut Hop) -> Config<'r> {
        let server: &'r _ = self.server;
        if server.locations.is_empty() && server.base.ifs.is_empty() {
            return Config::Base(&server.base);
        }
        self.work.sections.clear();
        self.add_locations(hop);
        let config = self.merged();
        self.add_ifs(config, hop)
    }

    /// The configuration for the file at `hop.filename`: finds the file, splits the path info off.
    ///
    /// Errors are statuses.
    pub(super) fn map_to_storage(&mut self, hop: &mut Hop) -> Result<Config<'r>, u16> {
        self.merge_path(hop);
        self.find_file(hop)?;
        self.work.sections.clear();
        self.work.htaccess.start();
        self.add_directories(hop)?;
        self.add_files(hop);
        self.add_locations(hop);
        let config = self.merged();
        Ok(self.add_ifs(config, hop))
    }

    /// The configuration for a request to the URL at `hop.filename`: `<Proxy>` takes the place of
    /// `<Directory>`.
    ///
    /// Source: httpd 2.4.71 `modules/proxy/mod_proxy.c`, `proxy_walk`.
    pub(super) fn proxy_config(&mut self, hop: &mut Hop) -> Config<'r> {
        hop.path_info.clear();
        hop.kind = Some(FileKind::Missing);
        self.work.sections.clear();
        let pool = &self.program.pool;
        let url = &hop.filename[super::proxy::MARK.len()..];
        for (section, number) in self.server.proxy_sections.iter().zip(0..) {
            let covers = match &section.value.matcher {
                SectionMatcher::Path(path) => url.starts_with(pool.get(*path)),
                SectionMatcher::Wildcard(pattern) => {
                    wildcard::matches_text(pool.get(*pattern), url, Case::Sensitive)
                }
                SectionMatcher::Regex(pattern) => {
                    let found = pattern.find(pool, url, &mut self.work.matcher).unwrap_or(None);
                    if let Some(captures) = &found {
                        set_groups(&section.value, url, captures, &mut hop.env);
                    }
                    found.is_some()
                }
            };
            if covers {
                self.work.sections.push(PROXY | number);
            }
        }
        self.add_locations(hop);
        let config = self.merged();
        self.add_ifs(config, hop)
    }

    /// Makes the path of the file canonical: rules and aliases can put slashes one after the other.
    fn merge_path(&mut self, hop: &mut Hop) {
        if hop.filename.first() != Some(&b'/') || is_merged(&hop.filename) {
            return;
        }
        let mut merged = self.take_buffer();
        if append_path(&hop.filename, &mut merged) {
            std::mem::swap(&mut merged, &mut hop.filename);
        }
        self.put_buffer(merged);
    }

    /// Looks at the path, and at what is above it until something is there.
    fn find_file(&self, hop: &mut Hop) -> Result<(), u16> {
        hop.path_info.clear();
        let kind = self.outside.kind(bytes_to_path(&hop.filename));
        if kind != FileKind::Missing || hop.filename.first() != Some(&b'/') {
            hop.kind = Some(kind);
            return Ok(());
        }
        let mut end = hop.filename.len();
        loop {
            let above = memchr::memrchr(b'/', &hop.filename[..end]).filter(|&slash| slash > 0);
            let Some(slash) = above else { break };
            match self.outside.kind(bytes_to_path(&hop.filename[..slash])) {
                FileKind::Missing => end = slash,
                FileKind::Directory => break,
                kind => {
                    hop.path_info.extend_from_slice(&hop.filename[slash..]);
                    hop.filename.truncate(slash);
                    hop.kind = Some(kind);
                    return Ok(());
                }
            }
        }
        // `end` is where the first missing segment ends; what follows is path info.
        hop.path_info.extend_from_slice(&hop.filename[end..]);
        hop.filename.truncate(end);
        hop.kind = Some(FileKind::Missing);
        let name = end - memchr::memrchr(b'/', &hop.filename).map_or(0, |slash| slash + 1);
        if name > NAME_BYTES_MAX {
            return Err(403);
        }
        // A link that leads nowhere is there, and may not be followed.
        match self.outside.kind_of_link(bytes_to_path(&hop.filename)) {
            FileKind::Link => Err(403),
            _ => Ok(()),
        }
    }

    /// Walks from the root to the file's directory: sections of each directory, then its `.htaccess`;
    /// last the sections with a regular expression.
    fn add_directories(&mut self, hop: &mut Hop) -> Result<(), u16> {
        if self.server.directories.is_empty() || hop.filename.first() != Some(&b'/') {
            return Ok(());
        }
        let mut path = self.take_buffer();
        path.extend_from_slice(&hop.filename);
        let is_directory = hop.kind == Some(FileKind::Directory);
        if is_directory && path.last() != Some(&b'/') {
            path.push(b'/');
        }
        let result = self.walk_directories(&path, hop);
        self.put_buffer(path);
        result
    }

    fn walk_directories(&mut self, path: &[u8], hop: &mut Hop) -> Result<(), u16> {
        let base = &self.server.base;
        let mut walk = Walk { options: base.options, allowed: None, next: 0, depth: 0 };
        let mut end = 0;
        loop {
            // The path up to a slash is a directory; what follows is the next segment.
            walk.depth += 1;
            self.add_level(&path[..=end], &mut walk)?;
            let segment = end + 1;
            let next = memchr::memchr(b'/', &path[segment..]).map(|slash| segment + slash);
            let segment_end = next.unwrap_or(path.len());
            if !walk.options.follows_all_links() && segment_end > segment {
                self.check_link(&path[..segment_end], walk.options)?;
            }
            match next {
                Some(next) => end = next,
                None => break,
            }
        }
        if self.server.directories[walk.next..].iter().any(is_regex) {
            self.add_regexes(walk.next, hop);
        }
        Ok(())
    }

    /// Sections with a regular expression, which are number `from` and later.
    fn add_regexes(&mut self, from: usize, hop: &mut Hop) {
        let is_directory = hop.kind == Some(FileKind::Directory);
        let is_whole = (is_directory || matches!(hop.kind, Some(FileKind::File(_))))
            && hop.path_info.is_empty();
        let end = memchr::memrchr(b'/', &hop.filename).map_or(0, |slash| slash + 1);
        let directory = if is_directory { &hop.filename[..] } else { &hop.filename[..end] };
        // A directory without its slash is never the one that was walked to before.
        let is_known =
            |walked: &&Walked| walked.directory == directory && directory.ends_with(b"/");
        if let Some(walked) = hop.walked.as_ref().filter(is_known).filter(|_| is_whole) {
            self.work.sections.extend_from_slice(&walked.sections);
            return;
        }
        let directory = directory.to_vec();
        let first = self.work.sections.len();
        for (section, number) in self.server.directories.iter().zip(0..).skip(from) {
            if let SectionMatcher::Regex(pattern) = &section.value.matcher {
                let pool = &self.program.pool;
                // The whole file name is searched, not its directory alone.
                let found = pattern.find(pool, &hop.filename, &mut self.work.matcher);
                if let Ok(Some(captures)) = found {
                    set_groups(&section.value, &hop.filename, &captures, &mut hop.env);
                    self.work.sections.push(DIRECTORY | number);
                }
            }
        }
        hop.walked = Some(Walked { directory, sections: self.work.sections[first..].to_vec() });
    }

    /// Refuses a symbolic link that may not be followed.
    fn check_link(&self, path: &[u8], options: Options) -> Result<(), u16> {
        let path = bytes_to_path(path);
        if self.outside.kind_of_link(path) != FileKind::Link {
            return Ok(());
        }
        let same_owner = || self.outside.owners(path).is_some_and(|(link, target)| link == target);
        if options.follows_owned_links() && same_owner() { Ok(()) } else { Err(403) }
    }

    /// Sections of exactly this directory, then its `.htaccess`.
    fn add_level(&mut self, level: &[u8], walk: &mut Walk) -> Result<(), u16> {
        let server = self.server;
        let pool = &self.program.pool;
        while let Some(section) = server.directories.get(walk.next) {
            let Section { matcher, config, .. } = &*section.value;
            if section.value.depth != Some(walk.depth) {
                break;
            }
            let covers = match matcher {
                SectionMatcher::Path(path) => pool.get(*path) == level,
                SectionMatcher::Wildcard(pattern) => wildcard::matches(pool.get(*pattern), level),
                SectionMatcher::Regex(_) => false,
            };
            if covers {
                self.work.sections.push(DIRECTORY | walk.next as u32);
                walk.options.merge(config.options);
                if let Some(allowed) = &config.allow_override {
                    walk.allowed = Some(Arc::clone(allowed)).filter(|allowed| !allowed.is_none());
                }
            }
            walk.next += 1;
        }
        let Some(allowed) = &walk.allowed else { return Ok(()) };
        if let Some(version) = self.htaccess(level, allowed)? {
            self.work.sections.push(HTACCESS | version & NUMBER);
            if let Some(config) = self.work.htaccess.get(version) {
                walk.options.merge(config.options);
            }
        }
        Ok(())
    }

    fn add_files(&mut self, hop: &mut Hop) {
        // A directory has a name as well, unless a slash follows it.
        let config = self.merged();
        let start = memchr::memrchr(b'/', &hop.filename).map_or(0, |slash| slash + 1);
        let name = &hop.filename[start..];
        for (section, number) in config.get().files.iter().zip(0..) {
            let pool = section.pool(&self.program.pool);
            let covers = match &section.value.matcher {
                SectionMatcher::Path(path) => pool.get(*path) == name,
                SectionMatcher::Wildcard(pattern) => wildcard::matches(pool.get(*pattern), name),
                SectionMatcher::Regex(pattern) => {
                    let found = pattern.find(pool, name, &mut self.work.matcher).unwrap_or(None);
                    if let Some(captures) = &found {
                        set_groups(&section.value, name, captures, &mut hop.env);
                    }
                    found.is_some()
                }
            };
            if covers {
                self.work.sections.push(FILES | number);
            }
        }
    }

    fn add_locations(&mut self, hop: &mut Hop) {
        let pool = &self.program.pool;
        // Where runs of slashes are kept, they still count as one here.
        let merged: Cow<'_, [u8]> = match memchr::memmem::find(&hop.uri, b"//") {
            Some(_) if hop.uri.starts_with(b"/") => {
                let mut last = 0;
                let is_new =
                    |byte: &u8| !(std::mem::replace(&mut last, *byte) == b'/' && *byte == b'/');
                Cow::Owned(hop.uri.iter().copied().filter(is_new).collect())
            }
            _ => Cow::Borrowed(&hop.uri),
        };
        for (section, number) in self.server.locations.iter().zip(0..) {
            let covers = match &section.value.matcher {
                SectionMatcher::Path(path) => covers_location(pool.get(*path), &merged),
                SectionMatcher::Wildcard(pattern) => wildcard::matches(pool.get(*pattern), &merged),
                SectionMatcher::Regex(pattern) => {
                    let found = pattern.find(pool, &hop.uri, &mut self.work.matcher);
                    let found = found.unwrap_or(None);
                    if let Some(captures) = &found {
                        set_groups(&section.value, &hop.uri, captures, &mut hop.env);
                    }
                    found.is_some()
                }
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
        if let Some(config) = self.known() {
            return config;
        }
        let mut config = server.base.clone();
        // Sections of one kind are merged among themselves first: with `AuthMerging` that matters.
        let mut group: Option<(u32, DirConfig)> = None;
        for &section in &self.work.sections {
            let number = (section & NUMBER) as usize;
            let kind = match section & !NUMBER {
                HTACCESS => DIRECTORY,
                kind => kind,
            };
            if let Some((_, merged)) = group.take_if(|(known, _)| *known != kind) {
                config.merge(&merged);
            }
            let file;
            let own = match section & !NUMBER {
                DIRECTORY => &server.directories[number].value.config,
                LOCATION => &server.locations[number].value.config,
                PROXY => &server.proxy_sections[number].value.config,
                FILES => {
                    file = Arc::clone(&config.files[number].value);
                    &file.config
                }
                _ => match self.work.htaccess.get(section & NUMBER) {
                    Some(file) => file,
                    None => continue,
                },
            };
            match &mut group {
                Some((_, merged)) => merged.merge(own),
                None => group = Some((kind, own.clone())),
            }
        }
        if let Some((_, merged)) = group {
            config.merge(&merged);
        }
        self.remember(config)
    }

    /// As [`Run::merged`], for `config` and the `<If>` sections that the key names from `from` on.
    pub(super) fn merged_with(&mut self, config: Config<'r>, from: usize) -> Config<'r> {
        if let Some(config) = self.known() {
            return config;
        }
        let mut merged = config.get().clone();
        let chosen = self.work.sections[from..].iter().map(|section| section & NUMBER);
        if_walk::merge_ifs(&mut merged, chosen);
        self.remember(merged)
    }

    /// The configuration that the collected sections were merged into before.
    fn known(&mut self) -> Option<Config<'r>> {
        // The key ends with the server's number.
        self.work.sections.push(self.server_number);
        let known = self.work.merged.get(&self.work.sections[..]).cloned();
        self.work.sections.pop();
        known.map(Config::Merged)
    }

    fn remember(&mut self, config: DirConfig) -> Config<'r> {
        let config = Arc::new(config);
        if self.work.merged.len() >= MERGED_MAX {
            self.work.merged.clear();
        }
        let mut key = self.work.sections.clone();
        key.push(self.server_number);
        self.work.merged.insert(key.into(), Arc::clone(&config));
        Config::Merged(config)
    }
}

fn is_regex(section: &Part<Section>) -> bool {
    matches!(section.value.matcher, SectionMatcher::Regex(_))
}

/// Sets `MATCH_NAME` for each named group that took part in a match.
fn set_groups(section: &Section, subject: &[u8], captures: &Captures, env: &mut Table) {
    for (name, number) in &section.groups {
        if let Some(span) = captures.get(*number as usize) {
            env.set(name, &subject[span]);
        }
    }
}

/// `<Location /p>`: whole segments, unless it ends in a slash.
fn covers_location(location: &[u8], uri: &[u8]) -> bool {
    uri.strip_prefix(location).is_some_and(|rest| {
        location.is_empty() || location.ends_with(b"/") || matches!(rest.first(), None | Some(b'/'))
    })
}

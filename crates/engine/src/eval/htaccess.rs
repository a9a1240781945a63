//! `.htaccess` files: compiled when first met, and again when the file has changed.
//!
//! One look at the file's stamp a directory and request is what freshness costs; Apache opens and
//! parses the file each time. In the first seconds after a change the stamp proves nothing, and the file is
//! read each time as well, but compiled only when its text is another one.
//!
//! Source: httpd 2.4.71 `server/config.c`, `ap_parse_htaccess`.

use std::collections::HashMap;
use std::sync::Arc;

use super::Run;
use crate::build::{self, bytes_to_path};
use crate::outside::Stamp;
use crate::program::{DirConfig, Override};

/// Name of the file, where `AccessFileName` says nothing.
const NAME: &[u8] = b".htaccess";

/// How many files a thread remembers.
const FILES_MAX: usize = 16_384;

/// Compiled files, by path.
#[derive(Debug, Default)]
pub(super) struct Cache {
    files: HashMap<Box<[u8]>, Entry>,
    versions: u32,
    /// Those that apply to the current request, by version.
    current: Vec<(u32, Arc<DirConfig>)>,
}

#[derive(Debug)]
struct Entry {
    stamp: Stamp,
    /// Its text, while it is too young for its stamp to tell the next change.
    young: Option<Vec<u8>>,
    /// What directives it was allowed, as it was compiled.
    allowed: Arc<Override>,
    version: u32,
    /// `None` if it does not compile.
    config: Option<Arc<DirConfig>>,
}

impl Cache {
    /// Forgets what applies to the last request.
    pub(super) fn start(&mut self) {
        self.current.clear();
    }

    /// The file with this version, which applies to the current request.
    pub(super) fn get(&self, version: u32) -> Option<&Arc<DirConfig>> {
        self.current.iter().find(|(known, _)| *known == version).map(|(_, config)| config)
    }
}

impl Run<'_> {
    /// The version number of the file in `directory`, which ends in `/`, if there is one.
    ///
    /// Errors are statuses: 403 for a file that may not be read, 500 for one that does not compile.
    pub(super) fn htaccess(
        &mut self,
        directory: &[u8],
        allowed: &Arc<Override>,
    ) -> Result<Option<u32>, u16> {
        let names = &self.server.access_names;
        let mut path = self.take_buffer();
        let mut version = Ok(None);
        // The first that is there is the only one that is read.
        for number in 0..names.len().max(1) {
            let name = names.get(number).map_or(NAME, |name| self.program.pool.get(*name));
            path.clear();
            path.extend_from_slice(directory);
            path.extend_from_slice(name);
            version = match self.outside.stamp(bytes_to_path(&path)) {
                Ok(None) => continue,
                Ok(Some(stamp)) => self.compiled(&path, directory, stamp, allowed).map(Some),
                Err(_) => Err(403),
            };
            break;
        }
        self.put_buffer(path);
        version
    }

    fn compiled(
        &mut self,
        path: &[u8],
        directory: &[u8],
        stamp: Stamp,
        allowed: &Arc<Override>,
    ) -> Result<u32, u16> {
        let outside = self.outside;
        let read = || outside.read(bytes_to_path(path)).map_err(|_| 403_u16);
        let is_settled = || stamp.is_settled(outside.now().0);
        let cache = &mut self.work.htaccess;
        let mut text = None;
        if let Some(entry) = cache.files.get_mut(path)
            && entry.stamp == stamp
            && entry.allowed == *allowed
        {
            if entry.young.is_some() {
                text = Some(read()?);
            }
            if entry.young == text {
                entry.young.take_if(|_| is_settled());
                let config = entry.config.as_ref().ok_or(500_u16)?;
                cache.current.push((entry.version, Arc::clone(config)));
                return Ok(entry.version);
            }
        }
        let text = text.map_or_else(read, Ok)?;
        let young = if is_settled() { None } else { Some(text.clone()) };
        let (config, diagnostics) =
            build::build_htaccess(self.program, path, text, directory, allowed, outside);
        if !diagnostics.is_empty() {
            outside.report(&diagnostics);
        }
        if cache.files.len() >= FILES_MAX {
            cache.files.clear();
        }
        cache.versions += 1;
        let version = cache.versions;
        let config = config.map(Arc::new);
        if let Some(config) = &config {
            cache.current.push((version, Arc::clone(config)));
        }
        let found = config.is_some();
        let entry = Entry { stamp, young, allowed: Arc::clone(allowed), version, config };
        cache.files.insert(path.into(), entry);
        if found { Ok(version) } else { Err(500) }
    }
}

//! Notices when the files of a configuration change.
//!
//! What to look at is what the load has looked at: every file that it read or missed, and every directory
//! that it listed. A few `stat` calls a second are cheaper than they sound, and work on every file system,
//! through symbolic links and with editors that put a new file in the place of the old one.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use milepost_engine::{LoadOptions, Loaded, Outside, Site, TlsBackend, TlsFault, TlsServer};

use crate::outside::FileSystem;

/// How often the files are looked at.
pub const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The files of a configuration as they were when it was loaded.
#[derive(Debug, Default)]
pub struct Watched {
    seen: Vec<(PathBuf, Option<Look>)>,
}

/// What differs when a file does: device and number, length, times of change of content and of name.
type Look = (u64, u64, u64, [i64; 4]);

impl Watched {
    /// Loads a configuration and notes what was looked at.
    pub fn load(options: &LoadOptions) -> (Loaded, Watched) {
        let noting = Noting::default();
        let loaded = Site::load(options, &noting);
        let mut paths = noting.paths.into_inner();
        paths.extend(options.file.iter().map(|file| options.server_root.join(file)));
        let seen =
            paths.into_iter().map(|path| (look(&path), path)).map(|(look, path)| (path, look));
        (loaded, Watched { seen: seen.collect() })
    }

    /// Looks again. Whether anything has changed, since the load or since the last time that it had.
    pub fn has_changed(&mut self) -> bool {
        let mut changed = false;
        for (path, seen) in &mut self.seen {
            let now = look(path);
            changed |= *seen != now;
            *seen = now;
        }
        changed
    }
}

fn look(path: &Path) -> Option<Look> {
    let metadata = fs::metadata(path).ok()?;
    let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
    Some((metadata.dev(), metadata.ino(), metadata.len(), times))
}

/// The file system, with notes of what was read and listed.
#[derive(Default)]
struct Noting {
    paths: RefCell<BTreeSet<PathBuf>>,
}

impl Noting {
    fn note(&self, path: &Path) {
        self.paths.borrow_mut().insert(path.to_owned());
    }
}

impl Outside for Noting {
    fn below(&self) -> Option<&dyn Outside> {
        Some(&FileSystem)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.note(path);
        FileSystem.read(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.note(directory);
        FileSystem.list(directory)
    }

    fn random(&self) -> u64 {
        FileSystem.random()
    }

    fn examine_tls(&self, server: &TlsServer) -> Vec<TlsFault> {
        server.files().for_each(|file| self.note(file));
        FileSystem.examine_tls(server)
    }

    fn examine_backend_tls(&self, backend: &TlsBackend) -> Vec<TlsFault> {
        backend.files().for_each(|file| self.note(file));
        FileSystem.examine_backend_tls(backend)
    }

    fn now(&self) -> (i64, i32) {
        FileSystem.now()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn files_that_come_change_and_go_are_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("sites")).unwrap();
        fs::write(root.join("main.conf"), "Include a.conf\nIncludeOptional sites/*.conf\n")
            .unwrap();
        fs::write(root.join("a.conf"), "Redirect /a http://b/\n").unwrap();
        let options = LoadOptions {
            server_root: root.to_owned(),
            file: Some("main.conf".into()),
            ..LoadOptions::default()
        };
        let (loaded, mut watched) = Watched::load(&options);
        assert!(loaded.site.is_some());
        assert!(!watched.has_changed());
        fs::write(root.join("a.conf"), "Redirect /a http://longer/\n").unwrap();
        assert!(watched.has_changed());
        assert!(!watched.has_changed());
        fs::write(root.join("sites/new.conf"), "Redirect /c http://d/\n").unwrap();
        assert!(watched.has_changed());
        fs::write(root.join("elsewhere"), "").unwrap();
        assert!(!watched.has_changed());
        fs::remove_file(root.join("a.conf")).unwrap();
        // A configuration that does not load is looked at as well: somebody will mend it.
        let (loaded, mut watched) = Watched::load(&options);
        assert!(loaded.site.is_none());
        fs::write(root.join("a.conf"), "").unwrap();
        assert!(watched.has_changed());
    }
}

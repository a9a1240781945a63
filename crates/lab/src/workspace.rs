//! The directories of a run: where the result goes, and where the servers find their files.
//!
//! Both are the same, except for root in a directory that only root may enter: there the servers,
//! which give root up, could read nothing. Then their files stand in a directory of their own among
//! the temporary ones, where a person can still start the servers, and are copied to the result.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::site::{anybody_may_enter, forbidden, make_directory};

/// The file that marks a directory as one of the lab's.
const MARKER: &str = "experiment.toml";

/// The directories that the servers' files are in.
const SERVED: [&str; 2] = ["methods", "servers"];

/// The directories of a run.
#[derive(Debug)]
pub(crate) struct Workspace {
    result: PathBuf,
    root: PathBuf,
}

/// Directories that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The directory holds something else.
    #[error("{0} holds files that are not an earlier result; choose another --out")]
    NotEmpty(String),
    /// The path would be read as something else inside a configuration.
    #[error(
        "the path {path} holds {character:?}, which configurations cannot hold; choose another --out"
    )]
    Character {
        /// The path.
        path: String,
        /// The character.
        character: char,
    },
    /// The system refuses.
    #[error("{path}: {source}")]
    Io {
        /// The directory.
        path: String,
        /// Why.
        source: io::Error,
    },
}

impl Workspace {
    /// Makes `result`, or empties it when it holds an earlier result of the lab.
    ///
    /// `gives_root_up` says that the servers will read their files as somebody else.
    ///
    /// # Errors
    ///
    /// [`WorkspaceError`].
    pub(crate) fn prepare(result: &Path, gives_root_up: bool) -> Result<Self, WorkspaceError> {
        let io_error = |source| WorkspaceError::Io { path: result.display().to_string(), source };
        make_directory(result).map_err(io_error)?;
        let result = result.canonicalize().map_err(io_error)?;
        if let Some(character) = forbidden(&result) {
            return Err(WorkspaceError::Character {
                path: result.display().to_string(),
                character,
            });
        }
        let used = fs::read_dir(&result).map_err(io_error)?.next().is_some();
        if used && !result.join(MARKER).is_file() {
            return Err(WorkspaceError::NotEmpty(result.display().to_string()));
        }
        for name in SERVED {
            match fs::remove_dir_all(result.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(io_error(error));
                }
                _ => {}
            }
        }
        if !gives_root_up || anybody_may_enter(&result) {
            return Ok(Self { root: result.clone(), result });
        }
        let root = std::env::temp_dir().join(format!("milepost-lab-{}", process::id()));
        make_directory(&root).map_err(io_error)?;
        Ok(Self { root, result })
    }

    /// Returns the directory that holds the servers' files.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Tells whether the servers' files stand outside of the result.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.root != self.result
    }

    /// Returns `path` as it is called from the result directory.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// Copies the servers' files to the result, where they stand elsewhere.
    ///
    /// # Errors
    ///
    /// When a file cannot be copied.
    pub(crate) fn keep(&self) -> Result<(), WorkspaceError> {
        if !self.is_elsewhere() {
            return Ok(());
        }
        SERVED.iter().try_for_each(|name| {
            copy(&self.root.join(name), &self.result.join(name)).map_err(|source| {
                WorkspaceError::Io { path: self.result.join(name).display().to_string(), source }
            })
        })
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    make_directory(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_result_is_replaced_and_nothing_else_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let result = directory.path().join("a/b");
        Workspace::prepare(&result, false).expect("a new directory");

        fs::write(result.join("mine.txt"), "").expect("a file");
        let error = Workspace::prepare(&result, false).expect_err("a directory of somebody");
        assert!(error.to_string().contains("holds files that are not an earlier result"));

        fs::write(result.join(MARKER), "").expect("a file");
        fs::create_dir(result.join("servers")).expect("a directory");
        Workspace::prepare(&result, false).expect("an earlier result");
        assert!(!result.join("servers").exists());
        assert!(result.join("mine.txt").exists());
    }

    #[test]
    fn paths_fit_for_configurations_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = Workspace::prepare(&directory.path().join("a\"b"), false).expect_err("a quote");
        assert!(error.to_string().contains("holds '\"'"), "{error}");
        Workspace::prepare(&directory.path().join("a b"), false).expect("a space is fine");
    }

    #[test]
    fn files_that_servers_may_not_reach_stand_elsewhere() {
        let directory = tempfile::tempdir().expect("a directory");
        let set_mode = |mode| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(directory.path(), mode).expect("our own directory");
        };
        set_mode(0o700);
        let result = directory.path().join("result");
        let workspace = Workspace::prepare(&result, true).expect("a new directory");
        assert!(workspace.is_elsewhere());
        assert!(anybody_may_enter(workspace.root()));
        for name in SERVED {
            let file = workspace.root().join(name).join("x/y.conf");
            make_directory(file.parent().expect("a parent")).expect("a directory");
            fs::write(&file, name).expect("a file");
            assert_eq!(workspace.relative(&file), format!("{name}/x/y.conf"));
        }
        workspace.keep().expect("a copy");
        assert_eq!(fs::read_to_string(result.join("servers/x/y.conf")).expect("it"), "servers");
        fs::remove_dir_all(workspace.root()).expect("our own directory");

        set_mode(0o755);
        assert!(!Workspace::prepare(&result.join("2"), true).expect("a directory").is_elsewhere());
    }
}

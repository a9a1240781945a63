//! Finds the `.htaccess` files of a directory and of those in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Name of the files.
const NAME: &str = ".htaccess";

/// Directories that are looked into: more than any site has, fewer than a walk of a whole machine meets.
const DIRECTORIES_MAX: usize = 200_000;

/// Whether a path is a file with the name of such a file, or with a name that ends in it.
pub(super) fn is_one(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(NAME.as_bytes()))
        && path.is_file()
}

/// The `.htaccess` files of `path` and of the directories in it, those of a directory before those below it; or
/// `path` itself, if that is a file. Symbolic links are not followed.
///
/// # Errors
/// A directory cannot be read, or there are more than [`DIRECTORIES_MAX`].
pub(super) fn find(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let path = path.canonicalize().with_context(|| format!("cannot check {}", path.display()))?;
    if path.is_file() {
        return Ok(vec![path]);
    }
    let mut files = Vec::new();
    let mut waiting = vec![path.clone()];
    let mut looked_at = 0;
    while let Some(directory) = waiting.pop() {
        looked_at += 1;
        if looked_at > DIRECTORIES_MAX {
            bail!(
                "{} has more than {DIRECTORIES_MAX} directories: name one of them",
                path.display()
            );
        }
        look(&directory, &mut files, &mut waiting)
            .with_context(|| format!("cannot read {}", directory.display()))?;
    }
    Ok(files)
}

/// Adds the file of one directory, and what is to be looked into next, the first name last.
fn look(
    directory: &Path,
    files: &mut Vec<PathBuf>,
    waiting: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    let below = waiting.len();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            waiting.push(entry.path());
        } else if entry.file_name() == NAME && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    waiting[below..].sort_unstable_by(|one, other| other.cmp(one));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_all_directories_are_found_in_order() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for name in ["b/c", "a", "b"] {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(root.join(name).join(NAME), "").unwrap();
        }
        fs::create_dir_all(root.join("d").join(NAME)).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("link")).unwrap();
        let found = find(&root).unwrap();
        let names = ["a", "b", "b/c"].map(|name| root.join(name).join(NAME));
        assert_eq!(found, names);
        assert_eq!(find(&names[1]).unwrap(), [names[1].clone()]);
        assert!(is_one(&names[1]) && !is_one(&root) && !is_one(&root.join("d").join(NAME)));
        assert!(find(&root.join("none")).unwrap_err().to_string().starts_with("cannot check "));
    }
}

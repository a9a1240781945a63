//! What the process is to the system: its pid file, and whose rights it has.
//!
//! Rights are given up once, after the ports are bound and before any other thread exists: the system
//! keeps them for each thread, and a thread inherits those of the one that starts it. What is opened
//! later, logs too, is opened as the user; so a reload needs nothing that the user does not have.
//!
//! Source: httpd 2.4.71 `os/unix/unixd.c`, `ap_unixd_setup_child`; `server/log.c`, `ap_log_pid`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use milepost_engine::Settings;
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::helpers::owner::{self, Owner};

/// Why the rights of a user cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot take the rights of{}: {error}", names(&[("User", user), ("Group", group)]))]
pub struct UserError {
    user: Option<String>,
    group: Option<String>,
    error: io::Error,
}

/// The directives that are given.
fn names(directives: &[(&str, &Option<String>)]) -> String {
    let given = directives.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    given.map(|(name, value)| format!(" `{name} {value}`")).collect()
}

/// Why a pid file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the pid file {}: {error}", path.display())]
pub struct PidFileError {
    path: PathBuf,
    error: io::Error,
}

/// Takes the rights of `User` and `Group`. Does nothing when the process is not root's, as in Apache.
///
/// Must be called before another thread is started.
///
/// # Errors
/// When there is no such user or group, or the system refuses.
pub fn become_user(settings: &Settings) -> Result<(), UserError> {
    let (user, group) = (settings.user.as_deref(), settings.group.as_deref());
    if !geteuid().is_root() || (user.is_none() && group.is_none()) {
        return Ok(());
    }
    take_rights(user, group).map_err(|error| UserError {
        user: user.map(str::to_owned),
        group: group.map(str::to_owned),
        error,
    })
}

fn take_rights(user: Option<&str>, group: Option<&str>) -> io::Result<()> {
    let Owner { user: uid, group: gid } = find(user, group)?;
    let gid = Gid::from_raw(gid);
    // Groups first: without root's rights they could not be changed any more.
    set_thread_groups(&[gid])?;
    set_thread_res_gid(gid, gid, gid)?;
    if user.is_some() {
        let uid = Uid::from_raw(uid);
        set_thread_res_uid(uid, uid, uid)?;
    }
    Ok(())
}

/// Numbers stand for themselves after `#`; names are looked up.
fn find(user: Option<&str>, group: Option<&str>) -> io::Result<Owner> {
    let number = |name: &str| name.strip_prefix('#').and_then(|digits| digits.parse().ok());
    let user = user.unwrap_or("#0");
    let group_number = group.and_then(number);
    let group_name = group.filter(|_| group_number.is_none()).map(str::as_bytes);
    let mut found = match number(user) {
        // A number alone has no group of its own.
        Some(uid) => match group_name {
            Some(_) => Owner { user: uid, ..owner::find(b"root", group_name)? },
            None => Owner { user: uid, group: uid },
        },
        None => owner::find(user.as_bytes(), group_name)?,
    };
    if let Some(group) = group_number {
        found.group = group;
    }
    Ok(found)
}

/// A file that holds the number of the process, while it serves.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes it, in place of one that is there already.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(path: &Path) -> Result<PidFile, PidFileError> {
        match fs::write(path, own_line()) {
            Ok(()) => Ok(PidFile { path: path.to_owned() }),
            Err(error) => Err(PidFileError { path: path.to_owned(), error }),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What the file holds.
fn own_line() -> String {
    format!("{}\n", std::process::id())
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another server may have taken the file over; it is that one's then.
        if fs::read_to_string(&self.path).is_ok_and(|line| line == own_line()) {
            // The user of the server need not have the right to; then it is replaced by the next server.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_themselves() {
        let owner = |user, group| Owner { user, group };
        assert_eq!(find(Some("#5"), None).unwrap(), owner(5, 5));
        assert_eq!(find(Some("#5"), Some("#7")).unwrap(), owner(5, 7));
        assert_eq!(find(Some("root"), None).unwrap(), owner(0, 0));
        assert_eq!(find(Some("root"), Some("#7")).unwrap(), owner(0, 7));
        assert_eq!(find(None, Some("root")).unwrap(), owner(0, 0));
        assert!(find(Some("no such user"), None).is_err());
        assert!(find(Some("#5"), Some("no such group")).is_err());
    }
}

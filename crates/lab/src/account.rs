//! The account that a server's workers run as when the lab runs as root.
//!
//! Apache refuses to serve as root, and nobody should. As another user the question does not come
//! up: the servers run as that user. The two files are read as text, because the C library's calls
//! need `unsafe` and these accounts are always local ones.

use std::fs;
use std::path::Path;

/// Accounts that distributions make for web servers, the most usual first.
const CANDIDATES: [&str; 6] = ["www-data", "apache", "nginx", "http", "_www", "nobody"];

/// A user and its group, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub user: String,
    /// The user's own group, or its number as `#n` where it has no name.
    pub group: String,
}

impl Account {
    /// Returns the account to drop to: `None` when this process is not root.
    ///
    /// Root without any of the usual accounts gets `None` too; the server then says what it wants.
    pub fn for_workers() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let read = |path: &str| fs::read_to_string(Path::new(path)).unwrap_or_default();
        Self::find(&read("/etc/passwd"), &read("/etc/group"))
    }

    /// Looks for the first candidate in the text of `/etc/passwd` and `/etc/group`.
    fn find(users: &str, groups: &str) -> Option<Self> {
        CANDIDATES.iter().find_map(|candidate| {
            let user = lines(users).find(|user| user.first() == Some(candidate))?;
            let id = user.get(3)?;
            let group = lines(groups).find(|group| group.get(2) == Some(id));
            let group = group.map_or_else(|| format!("#{id}"), |group| group[0].to_owned());
            Some(Self { user: (*candidate).to_owned(), group })
        })
    }
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\n\
        nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n\
        www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n";

    #[test]
    fn the_most_usual_account_wins() {
        check(USERS, "www-data:x:33:\n", Some(("www-data", "www-data")));
        check(USERS, "", Some(("www-data", "#33")));
        check("nobody:x:99:99::/:/bin/false\n", "nogroup:x:99:\n", Some(("nobody", "nogroup")));
        check("root:x:0:0::/:/bin/sh\nnobody\n", "", None);
    }

    #[track_caller]
    fn check(users: &str, groups: &str, expected: Option<(&str, &str)>) {
        let account = |(user, group): (&str, &str)| Account {
            user: user.to_owned(),
            group: group.to_owned(),
        };
        assert_eq!(Account::find(users, groups), expected.map(account));
    }
}

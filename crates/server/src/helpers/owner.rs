//! Finds the numbers of a user and a group, for programs that are to run as somebody else.
//!
//! Read are `/etc/passwd` and `/etc/group`; users that only a directory service knows are not found.
//!
//! Source: passwd(5), group(5).

use std::io;

/// User and group number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// Looks a user up, and a group if it is not to be the user's own.
///
/// # Errors
/// When a name is not known.
pub(crate) fn find(user: &[u8], group: Option<&[u8]>) -> io::Result<Owner> {
    let read = |path| std::fs::read(path);
    owner(&read("/etc/passwd")?, &read("/etc/group")?, user, group)
}

/// Looks up the home directory of a user.
pub(crate) fn home(user: &[u8]) -> Option<Vec<u8>> {
    let users = std::fs::read("/etc/passwd").ok()?;
    line(&users, user)?.get(5).filter(|home| !home.is_empty()).map(|home| home.to_vec())
}

fn owner(users: &[u8], groups: &[u8], user: &[u8], group: Option<&[u8]>) -> io::Result<Owner> {
    let unknown = |kind: &str, name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        io::Error::new(io::ErrorKind::NotFound, format!("no {kind} is called {name}"))
    };
    let entry = line(users, user).and_then(|fields| {
        Some(Owner { user: number(fields.get(2)?)?, group: number(fields.get(3)?)? })
    });
    let found = entry.ok_or_else(|| unknown("user", user))?;
    let Some(group) = group else { return Ok(found) };
    let number = line(groups, group).and_then(|fields| number(fields.get(2)?));
    Ok(Owner { group: number.ok_or_else(|| unknown("group", group))?, ..found })
}

/// The fields of the line that starts with `name`.
fn line<'t>(text: &'t [u8], name: &[u8]) -> Option<Vec<&'t [u8]>> {
    text.split(|&byte| byte == b'\n')
        .map(|line| line.split(|&byte| byte == b':').collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&name))
}

fn number(field: &[u8]) -> Option<u32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_the_users_unless_one_is_named() {
        let users = b"root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/var/www:/bin/false\n";
        let groups = b"root:x:0:\nothers:x:70:web\n";
        let find = |user: &str, group: Option<&str>| {
            owner(users, groups, user.as_bytes(), group.map(str::as_bytes)).ok()
        };
        assert_eq!(find("web", None), Some(Owner { user: 33, group: 34 }));
        assert_eq!(find("web", Some("others")), Some(Owner { user: 33, group: 70 }));
        assert_eq!(
            (find("we", None), find("web", Some("none")), find("", None)),
            (None, None, None)
        );
    }
}

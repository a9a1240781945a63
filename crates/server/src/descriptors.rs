//! The number of connections that a process can hold is the number of its descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors to the most that the system allows this process.
///
/// The usual soft limit of 1024 is a courtesy to programs that use `select`; Apache and nginx have to
/// be told to go beyond it. If it cannot be raised, it stays: then there are fewer connections at once.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        // Nothing is worse than before if this fails.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_becomes_the_largest_possible() {
        raise_descriptor_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}

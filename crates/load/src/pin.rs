//! Keeps a thread on one processor.

use crate::failure::RunError;

/// Whether this process may use the processors.
///
/// # Errors
///
/// When it may not use one of them, or the system has no way to choose.
pub(crate) fn check(cpus: &[usize]) -> Result<(), RunError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let allowed = system::allowed()?;
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(&cpu) => Err(RunError::Cpu { cpu, allowed }),
        None => Ok(()),
    }
}

/// Keeps the calling thread, number `index` of all, on its processor.
///
/// # Errors
///
/// When the system will not.
pub(crate) fn pin(cpus: &[usize], index: usize) -> std::io::Result<()> {
    match cpus.get(index % cpus.len().max(1)) {
        Some(&cpu) => system::pin(cpu),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use crate::failure::RunError;

    pub(super) fn allowed() -> Result<Vec<usize>, RunError> {
        let set = sched_getaffinity(None).map_err(|error| RunError::Worker(error.into()))?;
        Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
    }

    pub(super) fn pin(cpu: usize) -> io::Result<()> {
        let mut set = CpuSet::new();
        set.set(cpu);
        Ok(sched_setaffinity(None, &set)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    use crate::failure::RunError;

    pub(super) fn allowed() -> Result<Vec<usize>, RunError> {
        Err(RunError::Worker(io::ErrorKind::Unsupported.into()))
    }

    pub(super) fn pin(_: usize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_is_not_there_is_an_error_that_says_which_are() {
        assert!(check(&[]).is_ok());
        let allowed = system::allowed().unwrap();
        assert!(check(&allowed).is_ok());
        let absent = allowed.last().unwrap() + 1;
        let said = check(&[allowed[0], absent]).unwrap_err().to_string();
        assert!(said.contains(&format!("processor {absent} ")), "{said}");
    }

    #[test]
    fn threads_take_processors_in_turn() {
        let allowed = system::allowed().unwrap();
        for index in 0..2 * allowed.len() {
            let on = std::thread::scope(|scope| {
                let thread = scope.spawn(|| {
                    pin(&allowed, index).unwrap();
                    system::allowed().unwrap()
                });
                thread.join().unwrap()
            });
            assert_eq!(on, [allowed[index % allowed.len()]]);
        }
        pin(&[], 0).unwrap();
        assert_eq!(system::allowed().unwrap(), allowed);
    }
}

//! The CPU time of a server: of all its processes and threads, in nanoseconds.
//!
//! The scheduler's own account (`schedstat`) is exact for threads that sleep, so a reading waits
//! until all of them do. It knows no user and system time; that split comes from the
//! clock ticks of `stat`, a sample taken a hundred times a second. So the sum is exact and the split
//! an estimate, and the ticks stay in the raw data.
//!
//! A thread that ends between two readings takes its time with it. The servers of the lab keep
//! theirs.
//!
//! Source: Linux Documentation/scheduler/sched-stats.rst, proc(5).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How long a reading waits between two looks.
const REST: Duration = Duration::from_millis(1);

/// How often a reading looks until it takes the server for one that never rests.
const LOOKS_MAX: usize = 50;

/// CPU time used between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// All of it.
    pub nanoseconds: u64,
    /// Clock ticks seen in user mode.
    pub user_ticks: u64,
    /// Clock ticks seen in the kernel.
    pub system_ticks: u64,
}

/// What the processes of a server had used at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// By thread.
    nanoseconds: HashMap<u32, u64>,
    user_ticks: u64,
    system_ticks: u64,
    /// Whether a thread runs, or would if it had a processor: one that waits for its turn uses no
    /// time and is not at rest.
    runs: bool,
}

impl Reading {
    /// Reads the account of process `root` and its descendants, once they rest.
    ///
    /// # Errors
    ///
    /// When the process is gone, or the kernel keeps no such account.
    pub fn at_rest(root: u32) -> io::Result<Self> {
        // To look at every process of the machine takes longer than to look at these.
        let family = family(root)?;
        let mut reading = Self::of(root, &family)?;
        for _ in 0..LOOKS_MAX {
            thread::sleep(REST);
            let next = Self::of(root, &family)?;
            if next == reading && !next.runs {
                break;
            }
            reading = next;
        }
        Ok(reading)
    }

    fn of(root: u32, family: &[u32]) -> io::Result<Self> {
        let mut reading = Self::default();
        for &process in family {
            // A child may end while we read; the root may not.
            match reading.add(process) {
                Err(error) if process == root => return Err(error),
                _ => {}
            }
        }
        Ok(reading)
    }

    /// Returns what was used since `earlier`.
    pub fn since(&self, earlier: &Self) -> CpuTime {
        let used = self.nanoseconds.iter().map(|(thread, now)| {
            now.saturating_sub(earlier.nanoseconds.get(thread).copied().unwrap_or(0))
        });
        CpuTime {
            nanoseconds: used.sum(),
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
        }
    }

    fn add(&mut self, process: u32) -> io::Result<()> {
        let directory = Path::new("/proc").join(process.to_string());
        let stat = Stat::read(&directory)?;
        self.user_ticks += stat.user_ticks;
        self.system_ticks += stat.system_ticks;
        for entry in fs::read_dir(directory.join("task"))? {
            let entry = entry?;
            let Some(thread) = number(&entry) else { continue };
            self.runs |= Stat::read(&entry.path())?.runs;
            let text = fs::read_to_string(entry.path().join("schedstat"))?;
            let used = text.split_whitespace().next().and_then(|field| field.parse().ok());
            self.nanoseconds.insert(thread, used.ok_or(io::ErrorKind::InvalidData)?);
        }
        Ok(())
    }
}

/// Returns `root` and all processes that descend from it.
fn family(root: u32) -> io::Result<Vec<u32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(process) = number(&entry) else { continue };
        // Processes come and go while we look.
        if let Ok(stat) = Stat::read(&entry.path()) {
            parents.push((process, stat.parent));
        }
    }
    let mut family = vec![root];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| process));
        at += 1;
    }
    Ok(family)
}

fn number(entry: &fs::DirEntry) -> Option<u32> {
    entry.file_name().to_str()?.parse().ok()
}

/// What we need of `/proc/PID/stat`, of a process or of a thread.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    runs: bool,
    parent: u32,
    user_ticks: u64,
    system_ticks: u64,
}

impl Stat {
    fn read(directory: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(directory.join("stat"))?;
        Self::parse(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(text: &str) -> Option<Self> {
        // The second field is the program's name in parentheses, and may hold anything.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Self {
            runs: *fields.first()? == "R",
            parent: fields.get(1)?.parse().ok()?,
            user_ticks: fields.get(11)?.parse().ok()?,
            system_ticks: fields.get(12)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn names_of_programs_may_hold_anything() {
        let line = "77 (a) b (c) S 5 77 77 0 -1 4194304 103 0 0 0 12 34 0 0 20 0 1 0 90301 3133440";
        let expected = Stat { runs: false, parent: 5, user_ticks: 12, system_ticks: 34 };
        assert_eq!(Stat::parse(line), Some(expected));
        assert_eq!(Stat::parse(&line.replace(" S ", " R ")).map(|stat| stat.runs), Some(true));
        assert_eq!(Stat::parse("77 (a) S 5"), None);
    }

    #[test]
    fn a_process_that_is_gone_has_no_account() {
        assert!(Reading::at_rest(u32::MAX).is_err());
    }

    /// A child of a child counts, and a sleeping family comes to rest.
    #[test]
    fn the_work_of_children_counts() {
        let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo; read x'; :";
        let mut parent = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut line = [0];
        let mut output = parent.stdout.take().expect("a pipe");
        io::Read::read_exact(&mut output, &mut line).expect("the child says that it is done");
        let reading = Reading::at_rest(parent.id()).expect("a running process");
        let used = reading.since(&Reading::default());
        let idle = Reading::at_rest(parent.id()).expect("a running process").since(&reading);
        drop(parent.stdin.take());
        parent.wait().expect("sh ends");

        // Two hundred thousand turns of a shell are more than ten milliseconds on any machine.
        assert!(used.nanoseconds > 10_000_000, "{used:?}");
        assert!(used.user_ticks > 0, "{used:?}");
        assert_eq!(idle.nanoseconds, 0);
    }
}

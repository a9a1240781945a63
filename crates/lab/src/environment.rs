//! The machine that the numbers are from: without it they say nothing.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The commit that this program was built from, where the build said so.
const COMMIT: Option<&str> = option_env!("MILEPOST_COMMIT");

/// Seconds of a day.
const DAY: i64 = 86_400;

/// The machine, the moment and the command.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Environment {
    /// When the run began, in UTC.
    pub date: String,
    /// The command line.
    pub command: Vec<String>,
    /// The version of milepost.
    pub milepost_version: String,
    /// The commit that milepost was built from, where the build said so.
    pub milepost_commit: Option<String>,
    /// Whether milepost was built with optimisation; numbers of another build are not comparable.
    pub optimised_build: bool,
    /// The processor.
    pub cpu_model: String,
    /// How many cores this process may use.
    pub cores: usize,
    /// Whether the machine is a virtual one, as the processor tells.
    pub virtual_machine: bool,
    /// The policy of the processor's frequency, where the kernel tells.
    pub governor: Option<String>,
    /// The kernel.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// Processes that wanted to run, in the mean of the last minute before the run.
    pub load_average: f64,
    /// Share of time, in per cent, that the host kept from this machine during the run.
    pub steal_percent: Option<f64>,
}

impl Environment {
    /// Looks at the machine; [`Environment::steal_percent`] is known only at the end.
    pub fn observe(command: Vec<String>) -> Self {
        let cpu = read("/proc/cpuinfo");
        Self {
            date: timestamp(SystemTime::now()),
            command,
            milepost_version: env!("CARGO_PKG_VERSION").to_owned(),
            milepost_commit: COMMIT.map(str::to_owned),
            optimised_build: !cfg!(debug_assertions),
            cpu_model: value(&cpu, "model name", ':').unwrap_or_else(|| "unknown".to_owned()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            virtual_machine: value(&cpu, "flags", ':')
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            governor: governor(),
            kernel: kernel(),
            system: value(&read("/etc/os-release"), "PRETTY_NAME", '=')
                .map_or_else(|| "unknown".to_owned(), |name| name.trim_matches('"').to_owned()),
            load_average: first_number(&read("/proc/loadavg")).unwrap_or(0.0),
            steal_percent: None,
        }
    }
}

/// Returns the day in UTC, as `2026-11-21`.
pub fn today() -> String {
    timestamp(SystemTime::now()).split('T').next().unwrap_or_default().to_owned()
}

/// Writes a moment as `2026-11-21T05:25:00Z`.
pub(crate) fn timestamp(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let time = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Turns days since 1970-01-01 into year, month and day of the Gregorian calendar.
///
/// Years begin in March, so that the leap day is the last of one; eras are 400 years.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // From 0000-03-01.
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn governor() -> Option<String> {
    let text = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok()?;
    Some(text.trim().to_owned())
}

fn kernel() -> String {
    let name = rustix::system::uname();
    let part = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    format!("{} {} {}", part(name.sysname()), part(name.release()), part(name.machine()))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the value of the first line `key <separator> value`.
fn value(text: &str, key: &str, separator: char) -> Option<String> {
    let pair = |line: &str| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    text.lines().find_map(pair)
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_dates() {
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(951_868_799, "2000-02-29T23:59:59Z");
        check(1_795_238_700, "2026-11-21T05:25:00Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z"); // 2100 has no leap day.
    }

    #[test]
    fn this_machine_can_be_observed() {
        let environment = Environment::observe(vec!["milepost".to_owned()]);
        assert!(environment.cores >= 1);
        assert!(environment.kernel.starts_with("Linux "), "{}", environment.kernel);
    }

    #[track_caller]
    fn check(seconds: u64, expected: &str) {
        assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
    }
}

//! The generators: their command lines, and what they print.

use std::fs;
use std::process::{Command, Stdio};

/// The processor that generators run on, apart from the servers.
const PROCESSOR: &str = "1";

/// How much longer than it was told to a generator may take. Whoever takes more is ended, and its row says so.
const END_WITHIN_SECONDS: f64 = 20.0;

/// What `timeout` ends with when it had to kill.
const KILLED: i32 = 137;

/// How long a run takes in which the system calls are counted: so long that what opens the connections is
/// little beside the requests, which are slow then.
const COUNTED_SECONDS: f64 = 1.0;

/// With fewer requests than this on a connection, its opening is most of what would be counted.
const COUNTED_EACH_MIN: f64 = 3.0;

/// The others are far behind: they take part in the first rounds alone, which is enough to show it.
const ROUNDS_OF_OTHERS: usize = 2;

/// One way to put load on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generator {
    Uring,
    UringUnchecked,
    UringBusy,
    Epoll,
    EpollUnchecked,
    Wrk,
    H2load,
    Oha,
}

/// What is asked of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load<'a> {
    pub(crate) url: &'a str,
    /// What is right, as the client takes it.
    pub(crate) location: &'a str,
    pub(crate) connections: usize,
    pub(crate) seconds: f64,
}

/// What one run did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    requests: f64,
    seconds: f64,
    cpu_seconds: f64,
}

/// Why there is no trial.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It ran on after its time.
    DidNotEnd,
    /// It failed, or said nothing that could be read.
    Failed(String),
}

impl Trial {
    pub(crate) fn rate(&self) -> f64 {
        self.requests / self.seconds
    }

    pub(crate) fn per_cpu_second(&self) -> f64 {
        self.requests / self.cpu_seconds
    }
}

impl Generator {
    const ALL: [Self; 8] = [
        Self::Uring,
        Self::UringUnchecked,
        Self::UringBusy,
        Self::Epoll,
        Self::EpollUnchecked,
        Self::Wrk,
        Self::H2load,
        Self::Oha,
    ];

    /// Those that are installed.
    pub(crate) fn found() -> Vec<Self> {
        Self::ALL.into_iter().filter(|it| it.is_here()).collect()
    }

    /// The names of those that are not.
    pub(crate) fn absent() -> Vec<&'static str> {
        Self::ALL.into_iter().filter(|it| !it.is_here()).map(|it| it.name()).collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uring => "milepost, io_uring",
            Self::UringUnchecked => "  without Location",
            Self::UringBusy => "  busy polling",
            Self::Epoll => "milepost, epoll",
            Self::EpollUnchecked => " without Location",
            Self::Wrk => "wrk",
            Self::H2load => "h2load --h1",
            Self::Oha => "oha",
        }
    }

    fn is_here(self) -> bool {
        let program = match self {
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
            Self::Oha => "oha",
            Self::Uring | Self::UringUnchecked | Self::UringBusy => return is_uring_allowed(),
            Self::Epoll | Self::EpollUnchecked => return true,
        };
        let quiet = |it: &mut Command| it.stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet(Command::new(program).arg("--version")).is_ok()
    }

    fn command(self, load: &Load<'_>) -> Vec<String> {
        let Load { url, location, connections, seconds } = *load;
        let own = std::env::current_exe().map(|path| path.display().to_string());
        let client = |io: &str, check: &str| {
            let own = own.as_deref().unwrap_or_default();
            format!("{own} client {io} {check} {connections} {seconds} {url}")
        };
        let whole = seconds.ceil();
        let text = match self {
            Self::Uring => client("uring", location),
            Self::UringUnchecked => client("uring", "-"),
            Self::UringBusy => client("uring-busy", location),
            Self::Epoll => client("epoll", location),
            Self::EpollUnchecked => client("epoll", "-"),
            Self::Wrk => format!("wrk -t1 -c{connections} -d{whole} {url}"),
            Self::H2load => format!("h2load --h1 -t1 -c{connections} -D{whole} {url}"),
            Self::Oha => format!(
                "oha --no-tui --redirect 0 --disable-compression -c {connections} -z {seconds}s {url}"
            ),
        };
        text.split(' ').map(str::to_owned).collect()
    }

    /// In how many of `rounds` rounds it takes part.
    pub(crate) fn rounds(self, rounds: usize) -> usize {
        match self {
            Self::H2load | Self::Oha => rounds.min(ROUNDS_OF_OTHERS),
            _ => rounds,
        }
    }

    /// Whether it is worth its time there: what checking costs is seen where it is most of the work.
    pub(crate) fn is_of_use(self, is_redirect: bool, connections: usize) -> bool {
        match self {
            Self::UringUnchecked | Self::EpollUnchecked => is_redirect && connections == 100,
            // Without sleep neither side is ever woken, which matters most with few and with very many.
            Self::UringBusy => is_redirect && matches!(connections, 1 | 1_000),
            _ => true,
        }
    }

    /// Runs it once.
    pub(crate) fn run(self, load: &Load<'_>) -> Result<Trial, Fault> {
        let command = self.command(load);
        // The shell knows what its children have used to the millisecond.
        let mut timed = Command::new("bash");
        timed.args(["-c", "TIMEFORMAT='cpu %U %S'; time \"$@\"", "bash"]);
        timed.args(limit(load)).args(["taskset", "-c", PROCESSOR]).args(&command);
        // One runtime thread, as the others have one.
        timed.env("TOKIO_WORKER_THREADS", "1");
        let output = timed.output().map_err(|error| Fault::Failed(error.to_string()))?;
        if output.status.code() == Some(KILLED) {
            return Err(Fault::DidNotEnd);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        let cpu_seconds = error.lines().rev().find_map(|line| line.strip_prefix("cpu "));
        let cpu_seconds =
            cpu_seconds.map(|line| line.split(' ').filter_map(|it| it.parse::<f64>().ok()).sum());
        match (self.parse(&text), cpu_seconds) {
            (Some((requests, seconds)), Some(cpu_seconds)) => {
                Ok(Trial { requests, seconds, cpu_seconds })
            }
            _ => {
                let said = format!("{}: {}\n{text}{error}", self.name(), command.join(" "));
                Err(Fault::Failed(said))
            }
        }
    }

    /// Finds the number of requests and the time in what was printed.
    fn parse(self, text: &str) -> Option<(f64, f64)> {
        let lines = || text.lines().map(str::trim);
        match self {
            Self::H2load => {
                let done = lines().find_map(|line| line.strip_prefix("requests: "))?;
                let done = done.split(", ").find_map(|part| part.strip_suffix(" succeeded"))?;
                let rate = lines().find_map(|line| line.strip_prefix("finished in "))?;
                let rate = rate.split(", ").find_map(|part| part.strip_suffix(" req/s"))?;
                let requests: f64 = done.parse().ok()?;
                Some((requests, requests / rate.parse::<f64>().ok()?))
            }
            Self::Oha => {
                // "0.8012 secs", or "801.2 ms" from newer ones.
                let value = |name: &str| {
                    let line = lines().find_map(|line| line.strip_prefix(name))?;
                    let mut words = line.split_whitespace();
                    let number = words.next()?.parse::<f64>().ok()?;
                    Some(if words.next() == Some("ms") { number / 1e3 } else { number })
                };
                let (rate, seconds) = (value("Requests/sec:")?, value("Total:")?);
                Some((rate * seconds, seconds))
            }
            _ => {
                let line = lines().find(|line| line.contains(" requests in "))?;
                let mut words = line.split(' ');
                let requests = words.next()?.parse().ok()?;
                let time = words.nth(2)?.trim_end_matches(',');
                // wrk says 1.10s or 1.00m, and nothing of milliseconds for whole seconds.
                let seconds = match (time.strip_suffix("ms"), time.strip_suffix('m')) {
                    (Some(millis), _) => millis.parse::<f64>().ok()? / 1e3,
                    (None, Some(minutes)) => minutes.parse::<f64>().ok()? * 60.0,
                    (None, None) => time.trim_end_matches('s').parse().ok()?,
                };
                Some((requests, seconds))
            }
        }
    }

    /// System calls a request, as strace counts them, in words.
    pub(crate) fn calls_a_request(self, load: &Load<'_>) -> Result<String, String> {
        let load = Load { seconds: COUNTED_SECONDS, ..*load };
        let file = std::env::temp_dir().join(format!("bench_load-{}.strace", std::process::id()));
        let [timeout, rest @ ..] = limit(&load);
        let output = Command::new(timeout)
            .args(rest)
            .args(["strace", "-f", "-c", "-o"])
            .arg(&file)
            .args(self.command(&load))
            .output();
        let Ok(output) = output else { return Ok("-".to_owned()) };
        let counts = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        // The last line: % time, seconds, usecs/call, calls, errors, "total".
        let total = counts.lines().rfind(|line| line.ends_with("total"));
        let calls = total.and_then(|line| line.split_whitespace().nth(3)?.parse::<f64>().ok());
        let requests = self.parse(&String::from_utf8_lossy(&output.stdout));
        Ok(match (calls, requests) {
            (Some(calls), Some((requests, _)))
                if requests >= COUNTED_EACH_MIN * load.connections as f64 =>
            {
                format!("{:.2}", calls / requests)
            }
            _ => "-".to_owned(),
        })
    }
}

/// What ends a command that takes too long: it alone and what it started.
fn limit(load: &Load<'_>) -> [String; 4] {
    let seconds = load.seconds + END_WITHIN_SECONDS;
    ["timeout", "-s", "KILL", &format!("{seconds}")].map(str::to_owned)
}

fn is_uring_allowed() -> bool {
    let target = milepost_load::Target::new(
        std::net::SocketAddr::from(([127, 0, 0, 1], 9)),
        "localhost",
        "/",
    );
    let mut plan = milepost_load::Plan::new(vec![target]);
    plan.io = milepost_load::Io::Uring;
    plan.stop = milepost_load::Stop::Requests(0);
    !matches!(
        milepost_load::run(&plan, &milepost_load::Control::new()),
        Err(milepost_load::RunError::Uring(_))
    )
}

//! Makes a plan of what was typed: reads the URL or the list, looks up addresses, fills in defaults.

use std::io::Read;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use milepost_load::{
    Arrival, HttpUrl, Io, ListedUrl, Order, Persistence, Plan, Share, Spacing, Stop, Waiting,
    WarmUp, parse_url_list,
};

use super::cpus::Cpus;
use super::network;
use super::{Args, ArrivalArg, IoArg, OrderArg};

/// Units of a duration, in seconds.
const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// A year: longer is a mistake, and far from overflowing anything.
const DURATION_SECONDS_MAX: f64 = 365.0 * 86_400.0;

impl TryFrom<Args> for Plan {
    type Error = anyhow::Error;

    fn try_from(args: Args) -> anyhow::Result<Self> {
        if args.processes > 1 && args.urls.as_deref() == Some(Path::new("-")) {
            bail!("--processes: a list on stdin cannot be read by several; put it in a file");
        }
        let listed = match (&args.url, &args.urls) {
            (_, Some(file)) => read_list(file)?,
            (Some(url), None) => {
                let url = HttpUrl::parse(url).with_context(|| format!("cannot load {url}"))?;
                vec![ListedUrl::new(url)]
            }
            (None, None) => return Err(anyhow!("neither a URL nor a list of URLs")),
        };
        let speaks_tls = network::speaks_tls(listed.iter().map(|listed| &listed.url));
        let mut router = args.network.router();
        let common = args.request.common()?;
        let targets = listed
            .into_iter()
            .map(|listed| common.target(listed, &mut router))
            .collect::<anyhow::Result<_>>()?;

        let mut plan = Plan::new(targets);
        plan.order = match args.order {
            OrderArg::Sequential => Order::Sequential,
            OrderArg::Random => Order::Random,
        };
        plan.seed = args.seed;
        plan.names = args.network.names(&router);
        plan.variables = args.request.variables()?;
        plan.io = match args.io {
            IoArg::Auto => Io::Auto,
            IoArg::Uring => Io::Uring,
            IoArg::Epoll => Io::Epoll,
        };
        if args.busy_poll {
            plan.waiting = Waiting::BusyPoll;
        }
        plan.cpus = args.cpus.map(|Cpus(list)| list).unwrap_or_default();
        plan.connections = args.connections;
        plan.threads = args.threads;
        plan.timeout = args.timeout;
        plan.share = args.share.unwrap_or(Share { index: 0, of: args.processes });
        args.network.complete(&mut plan, speaks_tls, args.browse.leads_elsewhere())?;
        args.browse.complete(&mut plan);
        if args.no_keep_alive {
            plan.persistence = Persistence::Close;
        }
        plan.requests_per_connection = args.requests_per_connection;
        plan.pause_max = args.pause.unwrap_or_default();
        let spacing = match args.arrival {
            ArrivalArg::Uniform => Spacing::Even,
            ArrivalArg::Poisson => Spacing::Poisson,
        };
        if let Some(per_second) = args.rate {
            plan.arrival = Arrival::open(per_second, spacing);
        } else if let Some(rate) = args.stages {
            plan.stop = Stop::Duration(rate.length().unwrap_or(Duration::MAX));
            plan.arrival = Arrival::Open { rate, spacing };
        } else if args.find_max.is_some() {
            // The search puts its own rates in.
            plan.arrival = Arrival::open(1.0, spacing);
        } else if spacing != Spacing::Even {
            return Err(anyhow!("--arrival poisson needs a rate: --rate, --stages or --find-max"));
        }
        plan.warm_up = args.warm_up.unwrap_or(WarmUp::None);
        match (args.requests, args.duration) {
            (Some(count), _) => plan.stop = Stop::Requests(count.get()),
            (None, Some(length)) => plan.stop = Stop::Duration(length),
            (None, None) => {}
        }
        Ok(plan)
    }
}

/// Reads a duration: a number with a unit, seconds without.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let factor = match unit {
        "" => Some(1.0),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = factor.zip(digits.parse::<f64>().ok()).map(|(factor, number)| factor * number);
    match seconds.filter(|&seconds| plain && seconds > 0.0 && seconds <= DURATION_SECONDS_MAX) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => {
            Err("a duration is a positive number with ms, s, m or h, of a year at most".to_owned())
        }
    }
}

/// Reads how many of something there are.
pub(super) fn count(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "a whole number of 1 or more is needed".to_owned())
}

/// Reads a warm-up: a number of requests, or a duration with its unit.
pub(super) fn warm_up(text: &str) -> Result<WarmUp, String> {
    match text.parse() {
        Ok(count) => Ok(WarmUp::Requests(count)),
        Err(_) => duration(text).map(WarmUp::Duration),
    }
}

/// Reads a field line.
pub(super) fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) => Ok((name.to_owned(), value.trim().to_owned())),
        None => Err("a field line is a name, a colon and a value".to_owned()),
    }
}

fn read_list(file: &Path) -> anyhow::Result<Vec<ListedUrl>> {
    let name = file.display();
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).context("cannot read the URLs from stdin")?;
    } else {
        bytes = std::fs::read(file).with_context(|| format!("cannot read {name}"))?;
    }
    parse_url_list(&text(bytes, file)?).map_err(|error| anyhow!("{name}:{error}"))
}

/// What a file says, which must be UTF-8.
pub(super) fn text(bytes: Vec<u8>, file: &Path) -> anyhow::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let mut lines = before.rsplit(|byte| *byte == b'\n');
        let column = lines.next().map_or(0, |line| String::from_utf8_lossy(line).chars().count());
        anyhow!("{}:{}:{}: not UTF-8", file.display(), lines.count() + 1, column + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, millis) in [
            ("10", 10_000),
            ("10s", 10_000),
            ("1.5s", 1_500),
            ("250ms", 250),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "0", "-1s", "1d", "1 s", "1e3", "inf", "nan", "9999999h", "1s2"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_warm_up_is_a_number_or_a_duration() {
        assert_eq!(warm_up("100"), Ok(WarmUp::Requests(100)));
        assert_eq!(warm_up("2s"), Ok(WarmUp::Duration(Duration::from_secs(2))));
        assert!(warm_up("soon").is_err());
    }

    #[test]
    fn what_is_not_text_has_its_place() {
        let check = |bytes: &[u8], expected: &str| {
            let error = text(bytes.to_vec(), Path::new("f")).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(b"\xff", "f:1:1: not UTF-8");
        check(
            "a\n\u{e4}b".as_bytes().strip_suffix(b"b").unwrap().split_last().unwrap().1,
            "f:2:1: not UTF-8",
        );
        check(b"a\n\nbc\xff\n", "f:3:3: not UTF-8");
    }

    #[test]
    fn a_field_line_has_a_colon() {
        assert_eq!(field("A:  b: c "), Ok(("A".to_owned(), "b: c".to_owned())));
        assert!(field("A b").is_err());
    }
}

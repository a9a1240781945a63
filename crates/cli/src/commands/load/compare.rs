//! `milepost load compare`: what the reports of some runs say against those of others.
//!
//! A file holds one report or several, as `milepost load --json >> FILE` leaves them. Run k of one side is
//! compared with run k of the other, which should have been made right after it. One run on each side
//! gives a ratio and nothing about how much of it is noise; six and more give an interval.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use milepost_stats::bootstrap::TRIALS_MIN;
use milepost_stats::compare::{EFFECT_MIN, Ratio, Verdict, noise, paired_ratio, verdict};
use milepost_stats::quantile::median_in_place;
use serde_json::{Value, json};

use super::text;

/// B is shown to be worse.
const EXIT_WORSE: u8 = 1;

/// Seed of the resampling: the same reports always give the same intervals.
const SEED: u64 = 1;

/// What is compared: the name, where it stands in the report, and whether more of it is better.
const METRICS: [Metric; 6] = [
    Metric::new("requests a second", &["requests_per_second"], Better::Higher, Unit::Count),
    Metric::new("service time 50 %", &["service_ns", "p50"], Better::Lower, Unit::Nanoseconds),
    Metric::new("service time 99 %", &["service_ns", "p99"], Better::Lower, Unit::Nanoseconds),
    Metric::new("response time 50 %", &["response_ns", "p50"], Better::Lower, Unit::Nanoseconds),
    Metric::new("response time 99 %", &["response_ns", "p99"], Better::Lower, Unit::Nanoseconds),
    Metric::new("response time 99.9 %", &["response_ns", "p999"], Better::Lower, Unit::Nanoseconds),
];

/// Fields of `plan` that must be the same for a comparison to mean something.
const SAME: [&str; 10] = [
    "connections",
    "keep_alive",
    "streams",
    "pipeline",
    "requests_per_connection",
    "pause_max_seconds",
    "arrival",
    "rate",
    "stages",
    "timeout_seconds",
];

/// Arguments of `milepost load compare`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
A file holds one report or several: milepost load ... --json >> FILE. Run k of A is compared with run k of \
B; make them in turns. With fewer than six runs on each side there is no interval, and so no verdict.

Exit status: 0 done, 1 B is shown to be worse, 2 could not do it.")]
pub(super) struct CompareArgs {
    /// Reports of A, in JSON
    #[arg(value_name = "A")]
    a: PathBuf,

    /// Reports of B, in JSON
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Further reports of A: how they differ from the first is noise, and a verdict needs more
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,

    /// Call the two the same when the whole interval lies within this many per cent
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    margin: Option<f64>,

    /// Print the comparison as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy)]
struct Metric {
    name: &'static str,
    path: &'static [&'static str],
    better: Better,
    unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Count,
    Nanoseconds,
}

impl Metric {
    const fn new(
        name: &'static str,
        path: &'static [&'static str],
        better: Better,
        unit: Unit,
    ) -> Self {
        Self { name, path, better, unit }
    }

    fn of(self, report: &Value) -> Option<f64> {
        let found = self.path.iter().try_fold(report, |value, key| value.get(key))?;
        found.as_f64().filter(|number| *number > 0.0)
    }

    fn show(self, value: f64) -> String {
        match self.unit {
            Unit::Count => text::grouped(value.round() as u64),
            Unit::Nanoseconds => text::time(value.round() as u64),
        }
    }
}

/// The runs of one side.
#[derive(Debug)]
struct Side {
    name: String,
    reports: Vec<Value>,
}

/// A metric over all runs.
#[derive(Debug)]
struct Row {
    metric: Metric,
    /// Medians over the runs.
    a: f64,
    b: f64,
    /// B against A.
    ratio: Ratio,
    finding: Finding,
}

/// What may be said of B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Better,
    Worse,
    Same,
    Open,
}

/// Everything that there is to say.
#[derive(Debug)]
struct Comparison {
    names: [String; 2],
    runs: [usize; 2],
    rows: Vec<Row>,
    doubts: Vec<String>,
}

/// Reads a margin in per cent.
fn margin(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse().ok();
    percent
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .ok_or_else(|| "a margin is a number of per cent, above 0 and 100 at most".to_owned())
}

/// Runs `milepost load compare`.
pub(super) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let control = args.control.as_deref().map(Side::read).transpose()?;
    let comparison =
        compare(&Side::read(&args.a)?, &Side::read(&args.b)?, control.as_ref(), args.margin)?;
    let output = if args.json { comparison.json()? } else { comparison.text() };
    super::print(&output).context("cannot write to stdout")?;
    let is_worse = comparison.rows.iter().any(|row| row.finding == Finding::Worse);
    Ok(if is_worse { ExitCode::from(EXIT_WORSE) } else { ExitCode::SUCCESS })
}

impl Side {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        Self::parse(name, &text)
    }

    fn parse(name: String, text: &str) -> anyhow::Result<Self> {
        let reports = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let reports: Vec<_> = reports.collect::<Result<_, _>>().map_err(|error| {
            anyhow!("{name}:{}:{}: no JSON: {error}", error.line(), error.column())
        })?;
        if reports.is_empty() {
            bail!("{name}: no report in it");
        }
        let is_report = |report: &Value| {
            report.get("requests_per_second").is_some() && report.get("service_ns").is_some()
        };
        if let Some(at) = reports.iter().position(|report| !is_report(report)) {
            bail!("{name}: object {} is no report of milepost load --json", at + 1);
        }
        Ok(Self { name, reports })
    }

    fn values(&self, metric: Metric) -> Option<Vec<f64>> {
        self.reports.iter().map(|report| metric.of(report)).collect()
    }

    /// What in its runs forbids a verdict.
    fn faults(&self) -> Option<String> {
        let count = |report: &Value, name: &str| report[name].as_u64().unwrap_or(0);
        let bad = self
            .reports
            .iter()
            .filter(|report| count(report, "wrong_answers") + count(report, "errors") > 0);
        let bad = bad.count();
        (bad > 0).then(|| {
            format!(
                "{}: {bad} of {} runs had wrong answers or errors",
                self.name,
                self.reports.len()
            )
        })
    }
}

/// Compares B with A.
fn compare(
    a: &Side,
    b: &Side,
    control: Option<&Side>,
    margin: Option<f64>,
) -> anyhow::Result<Comparison> {
    let margin = margin.map(|percent| 1.0 + percent / 100.0);
    let pairs = a.reports.len().min(b.reports.len());
    let mut doubts = doubts(a, b, pairs);
    let is_faulty =
        [a.faults(), b.faults()].into_iter().flatten().map(|it| doubts.push(it)).count() > 0;
    let mut rows = Vec::new();
    for metric in METRICS {
        let (Some(of_a), Some(of_b)) = (a.values(metric), b.values(metric)) else { continue };
        let paired = |of: &[f64], against: &[f64]| {
            let pairs: Vec<_> = of.iter().copied().zip(against.iter().copied()).collect();
            paired_ratio(&pairs, SEED)
        };
        let Some(ratio) = paired(&of_b, &of_a) else { continue };
        let noise = match control {
            None => Some(EFFECT_MIN),
            Some(control) => control
                .values(metric)
                .and_then(|of_control| paired(&of_control, &of_a))
                .and_then(|ratio| noise(&ratio)),
        };
        let finding = match noise.filter(|_| !is_faulty) {
            None => Finding::Open,
            Some(noise) => match (verdict(&ratio, noise, margin), metric.better) {
                (Verdict::Open, _) => Finding::Open,
                (Verdict::Same, _) => Finding::Same,
                (Verdict::Higher, Better::Higher) | (Verdict::Lower, Better::Lower) => {
                    Finding::Better
                }
                _ => Finding::Worse,
            },
        };
        let median = |values: &[f64]| median_in_place(&mut values[..pairs].to_vec());
        rows.push(Row { metric, a: median(&of_a), b: median(&of_b), ratio, finding });
    }
    if rows.is_empty() {
        bail!("no figure is in all reports: there may have been no right answer");
    }
    if let Some(control) = control
        && control.reports.len().min(pairs) < TRIALS_MIN
    {
        doubts.push(format!(
            "{}: fewer than {TRIALS_MIN} runs do not tell how large noise is",
            control.name
        ));
    }
    Ok(Comparison {
        names: [a.name.clone(), b.name.clone()],
        runs: [a.reports.len(), b.reports.len()],
        rows,
        doubts,
    })
}

fn doubts(a: &Side, b: &Side, pairs: usize) -> Vec<String> {
    let mut doubts = Vec::new();
    if pairs < TRIALS_MIN {
        let what = if pairs == 1 { "one run".to_owned() } else { format!("{pairs} runs") };
        doubts.push(format!(
            "{what} on each side cannot tell a difference from noise: make at least {TRIALS_MIN} of each, in turns"
        ));
    }
    if a.reports.len() != b.reports.len() {
        let (longer, more) =
            if a.reports.len() > pairs { (a, a.reports.len()) } else { (b, b.reports.len()) };
        doubts.push(format!(
            "{}: the last {} runs have no partner and are left out",
            longer.name,
            more - pairs
        ));
    }
    for field in SAME {
        let of = |side: &Side| -> Vec<Value> {
            side.reports.iter().map(|report| report["plan"][field].clone()).collect()
        };
        let (of_a, of_b) = (of(a), of(b));
        let first = &of_a[0];
        if let Some(other) = of_a.iter().chain(&of_b).find(|value| *value != first) {
            doubts.push(format!("the runs were not made alike: {field} is {first} and {other}"));
        }
    }
    let warned = |side: &Side| {
        side.reports
            .iter()
            .any(|report| report["warnings"].as_array().is_some_and(|it| !it.is_empty()))
    };
    for side in [a, b].into_iter().filter(|side| warned(side)) {
        doubts.push(format!("{}: its reports have warnings", side.name));
    }
    doubts
}

impl Comparison {
    fn text(&self) -> String {
        let runs = |count| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        let mut out = format!(
            "A  {}, {}\nB  {}, {}\n\n{:22}{:>12}{:>12}{:>10}   {:18}\n",
            self.names[0],
            runs(self.runs[0]),
            self.names[1],
            runs(self.runs[1]),
            "",
            "A",
            "B",
            "B / A",
            "95 % interval"
        );
        for Row { metric, a, b, ratio, finding } in &self.rows {
            let interval = ratio.interval.map_or("-".to_owned(), |interval| {
                format!("[{:.3}, {:.3}]", interval.low, interval.high)
            });
            let finding = match finding {
                Finding::Better => "B is better",
                Finding::Worse => "B is worse",
                Finding::Same => "the same",
                Finding::Open => "not decided",
            };
            out.push_str(&format!(
                "{:22}{:>12}{:>12}{:>10.3}   {interval:18} {finding}\n",
                metric.name,
                metric.show(*a),
                metric.show(*b),
                ratio.estimate
            ));
        }
        for doubt in &self.doubts {
            out.push_str(&format!("\ndoubt: {doubt}"));
        }
        if !self.doubts.is_empty() {
            out.push('\n');
        }
        out.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    fn json(&self) -> anyhow::Result<String> {
        let rows = self.rows.iter().map(|row| {
            let finding = match row.finding {
                Finding::Better => "better",
                Finding::Worse => "worse",
                Finding::Same => "same",
                Finding::Open => "open",
            };
            json!({
                "metric": row.metric.path.join("."),
                "a": row.a,
                "b": row.b,
                "ratio": row.ratio.estimate,
                "low": row.ratio.interval.map(|interval| interval.low),
                "high": row.ratio.interval.map(|interval| interval.high),
                "verdict": finding,
            })
        });
        let object = json!({
            "a": { "file": self.names[0], "runs": self.runs[0] },
            "b": { "file": self.names[1], "runs": self.runs[1] },
            "metrics": rows.collect::<Vec<_>>(),
            "doubts": self.doubts,
        });
        let text = serde_json::to_string_pretty(&object).context("the comparison is no JSON")?;
        Ok(text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heights of fifteen pairs of maize plants in eighths of an inch, crossed and self-fertilized. The
    /// difference is significant, barely: Wilcoxon's test gives 0.041, Fisher's t test 0.0497.
    ///
    /// Source: C. Darwin, "The Effects of Cross- and Self-Fertilisation" (1876), table XCVII; R. A. Fisher,
    /// "The Design of Experiments" (1935), chapter III.
    const CROSSED: [u32; 15] =
        [188, 96, 168, 176, 153, 172, 177, 163, 146, 173, 186, 168, 177, 184, 96];
    const SELFED: [u32; 15] =
        [139, 163, 160, 160, 147, 149, 149, 122, 132, 144, 130, 144, 102, 124, 144];

    #[test]
    fn published_pairs_give_their_verdict() {
        let comparison = check(&SELFED, &CROSSED, None);
        let row = &comparison.rows[0];
        // The eighth of the fifteen ratios is 168 / 144.
        assert!((row.ratio.estimate - 168.0 / 144.0).abs() < 1e-12, "{row:?}");
        let interval = row.ratio.interval.unwrap();
        assert!(interval.low > 1.0 && interval.low < 1.11 && interval.high < 1.44, "{row:?}");
        assert_eq!((row.a, row.b), (144.0, 172.0));
        assert_eq!(row.finding, Finding::Better);
        assert!(comparison.doubts.is_empty(), "{:?}", comparison.doubts);
        // The other way round.
        assert_eq!(check(&CROSSED, &SELFED, None).rows[0].finding, Finding::Worse);
        // For times, more is worse.
        assert_eq!(comparison.rows[1].finding, Finding::Worse);
    }

    #[test]
    fn few_runs_have_a_ratio_and_no_verdict() {
        let comparison = check(&[100], &[150], None);
        assert_eq!(comparison.rows[0].finding, Finding::Open);
        assert!((comparison.rows[0].ratio.estimate - 1.5).abs() < 1e-12);
        let doubt = "one run on each side cannot tell a difference from noise: make at least 6 of each, in turns";
        assert_eq!(comparison.doubts, [doubt]);
        let text = comparison.text();
        assert!(
            text.contains("requests a second              100         150     1.500   -"),
            "{text}"
        );
        assert!(text.ends_with(&format!("\ndoubt: {doubt}\n")), "{text}");
    }

    #[test]
    fn the_same_within_a_margin_is_said_when_it_is_asked_for() {
        let (a, b) = ([100, 101, 99, 100, 102, 98], [101, 100, 100, 99, 101, 100]);
        assert_eq!(check(&a, &b, None).rows[0].finding, Finding::Open);
        assert_eq!(check(&a, &b, Some(5.0)).rows[0].finding, Finding::Same);
    }

    #[test]
    fn a_control_raises_what_it_takes() {
        let side =
            |name: &str, rates: &[u32]| Side::parse(name.to_owned(), &reports(rates)).unwrap();
        let (a, b) = (side("a", &[100; 8]), side("b", &[110; 8]));
        let finding = |control: &[u32]| {
            compare(&a, &b, Some(&side("c", control)), None).unwrap().rows[0].finding
        };
        assert_eq!(finding(&[101; 8]), Finding::Better);
        assert_eq!(finding(&[115; 8]), Finding::Open);
        assert_eq!(finding(&[100; 3]), Finding::Open);
    }

    #[test]
    fn runs_that_were_not_alike_or_went_wrong_are_doubted() {
        let a = Side::parse("a".to_owned(), &reports(&[100; 7])).unwrap();
        let text = reports(&[200; 6]).replace("\"connections\":10", "\"connections\":20");
        let b =
            Side::parse("b".to_owned(), &text.replacen("\"errors\":0", "\"errors\":3", 1)).unwrap();
        let comparison = compare(&a, &b, None, None).unwrap();
        assert_eq!(
            comparison.doubts,
            [
                "a: the last 1 runs have no partner and are left out",
                "the runs were not made alike: connections is 10 and 20",
                "b: 1 of 6 runs had wrong answers or errors",
            ]
        );
        assert_eq!(comparison.rows[0].finding, Finding::Open);
    }

    #[test]
    fn what_is_no_report_is_told_with_its_place() {
        let fault = |text: &str| Side::parse("f".to_owned(), text).unwrap_err().to_string();
        assert_eq!(fault(""), "f: no report in it");
        assert!(fault("{\n x").starts_with("f:2:2: no JSON: "), "{}", fault("{\n x"));
        assert_eq!(
            fault(&(reports(&[1]) + "{}")),
            "f: object 2 is no report of milepost load --json"
        );
    }

    fn check(a: &[u32], b: &[u32], margin: Option<f64>) -> Comparison {
        let side = |name: &str, rates| Side::parse(name.to_owned(), &reports(rates)).unwrap();
        compare(&side("a", a), &side("b", b), None, margin).unwrap()
    }

    fn reports(rates: &[u32]) -> String {
        let report = |rate: &u32| {
            format!(
                "{{\"requests_per_second\":{rate},\"wrong_answers\":0,\"errors\":0,\
                 \"service_ns\":{{\"p50\":{rate}}},\"plan\":{{\"connections\":10}},\"warnings\":[]}}\n"
            )
        };
        rates.iter().map(report).collect()
    }
}

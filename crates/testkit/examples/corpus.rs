//! Loads the real configurations of a folder into httpd and milepost and compares their answers.
//!
//! `corpus DIR [--seed S] [--show N] [--shrink N] [--only PART] [--mend N]` prints the differences by file and
//! a total. Exit 0: none, 1: some, 2: could not run.
//!
//! With `--mend` a file is compared as it is, and again with its directories, logs and ports moved to this
//! machine; up to N lines of it that httpd does not accept are taken out one after the other, and what is left
//! is compared each time: so the rules behind a missing module or certificate are asked too.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use milepost_engine::Lookup;
use milepost_testkit::differential::{Contest, Tally, differences};
use milepost_testkit::httpd::Program;
use milepost_testkit::known::KnownDifferences;
use milepost_testkit::{Case, Engine, Judge, Milepost, Verdict, bless, corpus, shrink, spec};

struct Options {
    folder: PathBuf,
    seed: u64,
    show: usize,
    shrink: usize,
    only: Option<String>,
    mend: usize,
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("corpus: {error}");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options =
        Options { folder: PathBuf::new(), seed: 1, show: 3, shrink: 0, only: None, mend: 0 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--seed" => options.seed = value()?.parse()?,
            "--show" => options.show = value()?.parse()?,
            "--shrink" => options.shrink = value()?.parse()?,
            "--mend" => options.mend = value()?.parse()?,
            "--only" => options.only = Some(value()?),
            _ => options.folder = PathBuf::from(argument),
        }
    }
    if options.folder.as_os_str().is_empty() {
        return Err("which folder?".into());
    }
    Ok(options)
}

/// Returns how many files differ.
fn run(options: &Options) -> Result<usize, Box<dyn Error>> {
    let started = Instant::now();
    let program = Program::find()?.with_modules(&corpus::MODULES);
    let judge = Judge::with(program.clone())?;
    let scan = Milepost::new(Lookup::Scan, program.clone());
    let index = Milepost::new(Lookup::Index, program);
    let known = KnownDifferences::read(&spec::directory())?;
    let contest = Contest { judge: &judge, scan: &scan, index: &index, known: &known };
    let mut texts = corpus::read(&options.folder)?;
    if let Some(part) = &options.only {
        texts.retain(|text| text.name.contains(part));
    }
    let mut waiting: Vec<(Case, usize)> = Vec::new();
    for text in texts.iter().rev() {
        if options.mend > 0 {
            waiting.extend(text.moved(options.seed).map(|case| (case, options.mend)));
        }
        waiting.push((text.case(options.seed), options.mend));
    }
    let (mut files, mut requests, mut wrong) = (0, 0, 0);
    let (mut shrunk, mut unjudged) = (0, 0);
    while let Some((case, mends)) = waiting.pop() {
        let case = &case;
        let one: [&Case; 1] = [case];
        let [judged, scanned, indexed] = [&judge as &dyn Engine, &scan, &index]
            .map(|engine| engine.run(&one).map(|mut verdicts| verdicts.remove(0)));
        let (judged, scanned, indexed) = match (judged, scanned, indexed) {
            (Ok(judged), Ok(scanned), Ok(indexed)) => (judged, scanned, indexed),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
                println!("FAILED {error}  {}", case.name);
                files += 1;
                continue;
            }
        };
        if let Verdict::Refused(message) = &judged
            && !message.starts_with("line ")
        {
            // `-t` has nothing against it: what is missing is a file or a port of this machine.
            println!("not judged  {}  (httpd does not start: {message})", case.name);
            scan.take_reports();
            index.take_reports();
            unjudged += 1;
            continue;
        }
        // Both have the same to say of an `.htaccess`; only the last is printed.
        scan.take_reports();
        let found = differences(case, &judged, &scanned, &indexed);
        let asked = case.exchanges.len();
        requests += asked;
        wrong += found.iter().filter(|difference| difference.request.is_some()).count();
        let note = note(&judged);
        let reports = index.take_reports();
        let mended = fault(&judged, &note, &reports).filter(|_| mends > 0);
        let mended = mended.and_then(|fault| corpus::without_line(case, &fault));
        let goes_on = mended.is_some();
        waiting.extend(mended.map(|case| (case, mends - 1)));
        if found.is_empty() && goes_on {
            continue;
        }
        if found.is_empty() {
            println!("ok     {asked:>6} requests  {}{note}", case.name);
            continue;
        }
        files += 1;
        println!("DIFFER {:>6} of {asked}  {}{note}", found.len(), case.name);
        for difference in found.iter().take(options.show) {
            let request = difference.request.map(|at| spec::one_line(&case.exchanges[at].ask));
            println!("    {:?} {}", difference.kind, request.unwrap_or_default());
            println!("      httpd    {}", difference.expected);
            println!("      milepost {}", difference.got);
        }
        for report in reports.iter().take(options.show) {
            println!("    milepost finds in .htaccess: {report}");
        }
        if shrunk < options.shrink {
            shrunk += 1;
            let compared = contest.compare(std::slice::from_ref(case), &mut Tally::default())?;
            for found in compared {
                let small = shrink::shrink(&contest, found)?;
                println!("# {:?}: milepost: {}", small.kind, small.got);
                println!("{}", bless::case_text(&small.case));
            }
        }
    }
    println!(
        "{} files, {files} differ, {unjudged} not judged; {requests} requests, {wrong} differ; {:.1} s",
        texts.len(),
        started.elapsed().as_secs_f64()
    );
    Ok(files)
}

/// The line that keeps a configuration, or most answers of its `.htaccess`, from anything but an error.
fn fault(judged: &Verdict, note: &str, reports: &BTreeSet<String>) -> Option<String> {
    if let Verdict::Refused(message) = judged {
        return Some(message.clone());
    }
    let number = |report: &&String| -> Option<usize> {
        report.strip_prefix("line ")?.split_once(':')?.0.parse().ok()
    };
    let first = reports.iter().min_by_key(|report| number(report).unwrap_or(usize::MAX));
    first.filter(|_| !note.is_empty()).cloned()
}

/// Says when a file proves little, because httpd itself does not get along with it.
fn note(judged: &Verdict) -> String {
    match judged {
        Verdict::Refused(message) => format!("  (httpd refuses it: {message})"),
        Verdict::Answers(answers) => {
            let failed = |answer: &Result<milepost_testkit::Answer, String>| {
                answer.as_ref().is_ok_and(|answer| answer.status == 500)
            };
            let count = answers.iter().filter(|answer| failed(answer)).count();
            if count > 0 && count * 2 > answers.len() {
                format!("  (httpd answers 500 to {count})")
            } else {
                String::new()
            }
        }
    }
}

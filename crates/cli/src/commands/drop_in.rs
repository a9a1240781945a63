//! `milepost ab`, `siege` and `http_load`, and the same by the name of the program: a link called `ab`
//! to the binary is ab.
//!
//! What the program does is the business of the load library; here it gets its words, its files and
//! its terminal. The first SIGINT or SIGTERM ends the run early and the report is still printed.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, anyhow};
use milepost_load::Control;
use milepost_load::dropin::{Outside, Program};

use super::load::stop_on_signal;

/// Words that the program reads itself.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    /// Options and operands of the original
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// The words of the command line: where the program was called by the name of another, with
/// `milepost` in front.
pub(crate) fn words(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = typed.collect();
    let called = words.first().map(Path::new).and_then(Path::file_name);
    let program = called.and_then(|name| name.to_str()).and_then(Program::by_name);
    if let Some(program) = program {
        words[0] = program.name().into();
        words.insert(0, "milepost".into());
    }
    words
}

/// Runs the program.
pub(crate) fn run(program: Program, args: &Args) -> anyhow::Result<ExitCode> {
    let words = args.words.iter().map(|word| {
        word.to_str().map(str::to_owned).ok_or_else(|| anyhow!("{word:?} is not UTF-8"))
    });
    let words = words.collect::<anyhow::Result<Vec<_>>>()?;
    let stopped = stop_on_signal().context("cannot listen to signals")?;
    let terminal = Terminal::new(Arc::clone(&stopped));
    let exit = program.run(&words, &terminal, &Control::stopped_by(stopped));
    terminal.flush();
    Ok(ExitCode::from(exit))
}

/// The files and the terminal of the process.
struct Terminal {
    out: Mutex<BufWriter<Stdout>>,
    /// Whether somebody watches every line.
    is_watched: bool,
    /// Set when nobody reads any more.
    stopped: Arc<AtomicBool>,
}

impl Terminal {
    fn new(stopped: Arc<AtomicBool>) -> Self {
        let out = io::stdout();
        Self { is_watched: out.is_terminal(), out: Mutex::new(BufWriter::new(out)), stopped }
    }

    /// Does something with stdout. What cannot be printed has nobody to be printed for.
    fn with_out(&self, act: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if act(&mut out).is_err() {
            self.stopped.store(true, Relaxed);
        }
    }

    fn flush(&self) {
        self.with_out(Write::flush);
    }
}

impl Outside for Terminal {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        std::fs::write(path, text)
    }

    fn append(&self, path: &Path, text: &str) -> io::Result<()> {
        OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn out(&self, text: &str) {
        self.with_out(|out| {
            out.write_all(text.as_bytes())?;
            if self.is_watched { out.flush() } else { Ok(()) }
        });
    }

    fn err(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        // What was printed before is to be seen before.
        self.flush();
        // There is nowhere left to say that stderr is gone.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_is_the_command() {
        check(&["/usr/local/bin/ab", "-n", "1"], &["milepost", "ab", "-n", "1"]);
        check(&["ab"], &["milepost", "ab"]);
        check(&["bin/http_load", "-v"], &["milepost", "http_load", "-v"]);
        check(&["./milepost", "ab", "-V"], &["./milepost", "ab", "-V"]);
        check(&["/ab/milepost"], &["/ab/milepost"]);
        check(&[], &[]);
    }

    #[track_caller]
    fn check(typed: &[&str], expected: &[&str]) {
        assert_eq!(words(typed.iter().map(OsString::from)), expected);
    }
}

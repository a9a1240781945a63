//! Runs the originals and milepost in their place, and takes their outputs apart.

use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often an original may crash before that is what it does.
const TRIES: usize = 4;

/// Nobody listens here: no system gives this port to a program that asks for any.
pub(crate) const NOBODY: &str = "127.0.0.1:1";

/// Far longer than anything in here takes, for a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one run printed.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) exit: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the original `name` and milepost by the same name, in the same directory.
#[track_caller]
pub(crate) fn both(name: &str, directory: &Path, arguments: &[&str]) -> [Printed; 2] {
    [theirs(name, directory, arguments), ours(name, directory, arguments)]
}

/// Runs the original. siege 4.0.7 crashes now and then, more so where it is refused; then it runs again.
#[track_caller]
fn theirs(name: &str, directory: &Path, arguments: &[&str]) -> Printed {
    let mut runs = (0..TRIES).map(|_| run(name, directory, arguments));
    let ended = runs.find(|printed| printed.exit.is_some());
    ended.unwrap_or_else(|| panic!("{name} {arguments:?} was killed {TRIES} times"))
}

/// Runs milepost by the name of the original.
#[track_caller]
pub(crate) fn ours(name: &str, directory: &Path, arguments: &[&str]) -> Printed {
    run(&link(name, directory), directory, arguments)
}

/// A link to milepost.
fn link(name: &str, directory: &Path) -> String {
    let link = directory.join(name);
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_milepost"), &link).expect("a directory that can be written");
    }
    link.to_str().expect("a path in UTF-8").to_owned()
}

/// Runs a program to its end.
#[track_caller]
pub(crate) fn run(program: &str, directory: &Path, arguments: &[&str]) -> Printed {
    Running::spawn(program, directory, arguments).finish()
}

/// A program that has not ended.
pub(crate) struct Running {
    child: Child,
    out: thread::JoinHandle<Vec<u8>>,
    err: thread::JoinHandle<Vec<u8>>,
}

impl Running {
    /// Starts milepost by the name of the original.
    #[track_caller]
    pub(crate) fn start(name: &str, directory: &Path, arguments: &[&str]) -> Self {
        Self::spawn(&link(name, directory), directory, arguments)
    }

    #[track_caller]
    fn spawn(program: &str, directory: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            // Nobody's own settings.
            .env("HOME", directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("this test needs {program}; `make test` installs it: {error}")
            });
        let out = collect(child.stdout.take().expect("a pipe"));
        let err = collect(child.stderr.take().expect("a pipe"));
        Self { child, out, err }
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the end.
    #[track_caller]
    pub(crate) fn interrupt(self) -> Printed {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-INT", &id]).status().expect("kill");
        assert!(status.success());
        self.finish()
    }

    #[track_caller]
    fn finish(mut self) -> Printed {
        let exit = wait(&mut self.child);
        let text = |reader: thread::JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&reader.join().expect("a reader")).into_owned()
        };
        Printed { exit, out: text(self.out), err: text(self.err) }
    }
}

impl Printed {
    /// Labels of both outputs in order, those of milepost's own notes left out.
    pub(crate) fn labels(&self, text: fn(&Self) -> &str) -> Vec<&str> {
        pairs(text(self)).into_iter().map(|(label, _)| label).collect()
    }

    /// The value behind a label, with its white space made one.
    #[track_caller]
    pub(crate) fn value(&self, label: &str) -> String {
        let both = [&*self.out, &*self.err];
        let found = both.into_iter().flat_map(pairs).find(|(found, _)| *found == label);
        let (_, value) = found.unwrap_or_else(|| panic!("no {label}: {self:?}"));
        value.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Labels and values of the lines that have a label in front: words, then a colon.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with("milepost: "));
    lines
        .filter_map(|line| line.split_once(':'))
        // ab's doubts about mean and median come and go with the times.
        .filter(|(label, _)| !["ERROR", "WARNING"].contains(label))
        .filter(|(label, _)| label.starts_with(|first: char| first.is_ascii_uppercase()))
        .filter(|(label, _)| {
            label.chars().all(|it| it.is_ascii_alphanumeric() || " /-".contains(it))
        })
        .collect()
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is what there is.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

#[track_caller]
fn wait(child: &mut Child) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        if began.elapsed() > PATIENCE {
            child.kill().expect("our own child");
            panic!("the program does not end");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

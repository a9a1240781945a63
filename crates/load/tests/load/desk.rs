//! Files and a terminal in memory, for the drop-ins.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use milepost_load::Control;
use milepost_load::dropin::{Outside, Program};

/// What a drop-in reads and writes.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    files: Mutex<BTreeMap<PathBuf, String>>,
    variables: BTreeMap<String, String>,
    out: Mutex<String>,
    err: Mutex<String>,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) exit: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    /// A file that is there.
    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        self.files.lock().unwrap().insert(name.into(), text.to_owned());
        self
    }

    /// A variable of the environment.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// What is in a file now.
    pub(crate) fn file(&self, name: &str) -> String {
        self.files.lock().unwrap()[Path::new(name)].clone()
    }

    /// Runs a program with the words of `line`.
    pub(crate) fn run(&self, program: Program, line: &str) -> Said {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        self.run_words(program, &words)
    }

    pub(crate) fn run_words(&self, program: Program, words: &[String]) -> Said {
        let exit = program.run(words, self, &Control::new());
        let take = |text: &Mutex<String>| std::mem::take(&mut *text.lock().unwrap());
        Said { exit, out: take(&self.out), err: take(&self.err) }
    }
}

impl Outside for Desk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let files = self.files.lock().unwrap();
        let file = files.get(path).ok_or_else(|| io::Error::from_raw_os_error(2))?;
        Ok(file.clone().into_bytes())
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        if path.starts_with("/nowhere") {
            return Err(io::Error::from_raw_os_error(2));
        }
        self.files.lock().unwrap().insert(path.to_owned(), text.to_owned());
        Ok(())
    }

    fn append(&self, path: &Path, text: &str) -> io::Result<()> {
        self.files.lock().unwrap().entry(path.to_owned()).or_default().push_str(text);
        Ok(())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn out(&self, text: &str) {
        self.out.lock().unwrap().push_str(text);
    }

    fn err(&self, text: &str) {
        self.err.lock().unwrap().push_str(text);
    }
}

//! The program of a `prg:` map: one line in, one line out, one question at a time.
//!
//! A thread reads the answers and numbers them, so that the n-th line is the answer to the n-th
//! question, however late it comes. A question that is not answered in time fails; until its answer has
//! come, no other is asked. Programs are not started again when they end: from then on the answer is
//! an empty line, as in httpd.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `rewritemap_program_child`,
//! `lookup_map_program`.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use milepost_engine::MapProgram;
use rustix::process::{Pid, Signal, kill_process};

use super::owner;
use crate::error_log::report_error;

/// How long an answer may take. httpd waits for ever; here a worker and all its connections would.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest answer. No `Location` of this length arrives anywhere; httpd has no limit.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Longest question: it must fit into a pipe (64 KiB on Linux), or writing it could wait for ever.
const KEY_BYTES_MAX: usize = 48 * 1024;
/// Lines that a program may be ahead of the questions before it is made to wait.
const LINES_AHEAD_MAX: usize = 16;
/// Between asking a program to end and killing it, as in APR.
const END_TIME_MAX: Duration = Duration::from_secs(3);
/// Between two looks whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A program that runs, or has ended by itself.
pub(super) struct Program {
    name: String,
    talk: Mutex<Talk>,
    /// `None` once it has been told to end.
    child: Mutex<Option<Child>>,
}

/// Questions and answers so far.
struct Talk {
    questions: Option<ChildStdin>,
    answers: Receiver<Answer>,
    asked: u64,
    answered: u64,
    time_max: Duration,
}

/// A line of the program, without its end; `None` if it is too long.
struct Answer(Option<Vec<u8>>);

impl Program {
    /// Starts the program, in its own directory and with an empty environment. Its stderr is ours.
    ///
    /// # Errors
    /// As the system reports them.
    pub(super) fn start(program: &MapProgram) -> io::Result<Program> {
        let path = Path::new(OsStr::from_bytes(&program.argv[0]));
        let mut command = Command::new(path);
        command
            .args(program.argv[1..].iter().map(|argument| OsStr::from_bytes(argument)))
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(directory) = path.parent() {
            command.current_dir(directory);
        }
        if let Some(user) = &program.user {
            let owner = owner::find(user, program.group.as_deref())?;
            command.uid(owner.user).gid(owner.group);
        }
        let mut child = command.spawn()?;
        let (questions, lines) = (child.stdin.take(), child.stdout.take());
        let (sender, answers) = mpsc::sync_channel(LINES_AHEAD_MAX);
        let name = path.display().to_string();
        let talk = Talk { questions, answers, asked: 0, answered: 0, time_max: ANSWER_TIME_MAX };
        let program = Program { name, talk: Mutex::new(talk), child: Mutex::new(Some(child)) };
        if let Some(lines) = lines {
            let reader = thread::Builder::new().name("milepost-prg".to_owned());
            reader.spawn(move || read_answers(lines, &sender))?;
        }
        Ok(program)
    }

    /// Asks for the value of `key`, which holds no line end, and appends it. False if there is none.
    pub(super) fn ask(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        let answer = self.talk.lock().unwrap_or_else(PoisonError::into_inner).ask(key);
        match answer {
            Ok(line) if line.eq_ignore_ascii_case(b"NULL") => false,
            Ok(line) => {
                let end = memchr::memchr(0, &line).unwrap_or(line.len());
                value.extend_from_slice(&line[..end]);
                true
            }
            Err(error) => {
                report_error(&format!("{}: {error}", self.name));
                false
            }
        }
    }

    /// Ends the program and waits until it has ended.
    pub(super) fn stop(&self) {
        if let Some(child) = self.take_child() {
            end(child);
        }
    }

    fn take_child(&self) -> Option<Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whoever drops it last may be a worker, which must not wait for the end.
impl Drop for Program {
    fn drop(&mut self) {
        if let Some(child) = self.take_child() {
            let ender = thread::Builder::new().name("milepost-prg-end".to_owned());
            if let Err(error) = ender.spawn(move || end(child)) {
                report_error(&format!("{}: cannot end it: {error}", self.name));
            }
        }
    }
}

/// Asks a program to end, and kills it if it does not.
fn end(mut child: Child) {
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may end in this moment: then there is nothing to tell it.
        let _ = kill_process(pid, Signal::TERM);
    }
    let deadline = Instant::now() + END_TIME_MAX;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(LOOK_EVERY);
    }
    // As above; and once killed it ends.
    let _ = child.kill();
    let _ = child.wait();
}

/// Why a question has no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum AskError {
    #[error("no answer within {} s", .0.as_secs_f32())]
    Late(Duration),
    #[error("an answer has more than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    #[error("a key has more than {KEY_BYTES_MAX} bytes")]
    LongKey,
}

impl Talk {
    fn ask(&mut self, key: &[u8]) -> Result<Vec<u8>, AskError> {
        if key.len() > KEY_BYTES_MAX {
            return Err(AskError::LongKey);
        }
        let deadline = Instant::now() + self.time_max;
        // What was asked before and given up.
        while self.answered < self.asked {
            self.next(deadline)?;
        }
        let mut line = Vec::with_capacity(key.len() + 1);
        line.extend_from_slice(key);
        line.push(b'\n');
        self.asked += 1;
        if let Some(questions) = &mut self.questions
            && questions.write_all(&line).is_err()
        {
            // It has ended; it may have answered before.
            self.questions = None;
        }
        match self.next(deadline)? {
            Answer(Some(line)) => Ok(line),
            Answer(None) => Err(AskError::TooLong),
        }
    }

    /// The next line; an empty one if the program has ended.
    fn next(&mut self, deadline: Instant) -> Result<Answer, AskError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = match self.answers.recv_timeout(left) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => Answer(Some(Vec::new())),
            Err(RecvTimeoutError::Timeout) => return Err(AskError::Late(self.time_max)),
        };
        self.answered += 1;
        Ok(answer)
    }
}

/// Hands on all lines until the program ends or nobody asks any more.
fn read_answers(lines: ChildStdout, answers: &SyncSender<Answer>) {
    let mut lines = BufReader::new(lines);
    loop {
        let mut line = Vec::new();
        let limit = ANSWER_BYTES_MAX as u64 + 1;
        match lines.by_ref().take(limit).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let answer = if line.last() == Some(&b'\n') {
            line.pop();
            Answer(Some(line))
        } else if line.len() <= ANSWER_BYTES_MAX {
            // The last line, without its end.
            Answer(Some(line))
        } else {
            if lines.skip_until(b'\n').is_err() {
                return;
            }
            Answer(None)
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_line_is_answered_by_a_line() {
        let (_directory, program) = start("while read -r key; do echo \"<$key>\"; done");
        check(&program, "a", Some("<a>"));
        check(&program, "b c%", Some("<b c%>"));
        check(&program, "", Some("<>"));
    }

    #[test]
    fn null_in_any_case_is_no_answer() {
        let (_directory, program) = start("while read -r key; do echo \"$key\"; done");
        check(&program, "NULL", None);
        check(&program, "nuLL", None);
        check(&program, "NULLs", Some("NULLs"));
    }

    #[test]
    fn a_program_that_has_ended_answers_with_nothing() {
        let (_directory, program) = start("read -r key; echo one; printf two");
        check(&program, "a", Some("one"));
        check(&program, "b", Some("two"));
        check(&program, "c", Some(""));
        check(&program, "d", Some(""));
    }

    #[test]
    fn it_has_no_environment_and_its_own_directory() {
        let (directory, program) = start("read -r key; echo \"$HOME$LANG $PWD\"");
        check(&program, "a", Some(&format!(" {}", directory.path().display())));
    }

    #[test]
    fn answers_up_to_the_limit() {
        let script = "while read -r n; do head -c $n /dev/zero | tr '\\0' x; echo; done";
        let (_directory, program) = start(&format!("PATH=/usr/bin:/bin; {script}"));
        let long = "x".repeat(ANSWER_BYTES_MAX);
        check(&program, &ANSWER_BYTES_MAX.to_string(), Some(&long));
        check(&program, &(ANSWER_BYTES_MAX + 1).to_string(), None);
        check(&program, "2", Some("xx"));
        check(&program, &"1".repeat(KEY_BYTES_MAX + 1), None);
        check(&program, "3", Some("xxx"));
    }

    #[test]
    fn a_late_answer_is_not_taken_for_the_next() {
        let script =
            "read -r a; read -r go < go; echo \"$a\"; while read -r b; do echo \"$b\"; done";
        let (directory, program) = start(&format!("PATH=/usr/bin:/bin; mkfifo go; {script}"));
        program.talk.lock().unwrap().time_max = Duration::from_millis(50);
        check(&program, "first", None);
        check(&program, "second", None);
        program.talk.lock().unwrap().time_max = ANSWER_TIME_MAX;
        fs::write(directory.path().join("go"), "\n").unwrap();
        check(&program, "third", Some("third"));
    }

    #[test]
    fn stopping_ends_even_what_does_not_listen() {
        let (_directory, program) =
            start("trap '' TERM; echo ready; while :; do read -r key; done");
        check(&program, "a", Some("ready"));
        let id = program.child.lock().unwrap().as_ref().unwrap().id();
        let started = Instant::now();
        program.stop();
        assert!(started.elapsed() >= END_TIME_MAX);
        assert!(!Path::new("/proc").join(id.to_string()).exists());
        check(&program, "b", Some(""));
    }

    #[test]
    fn what_cannot_start_is_told() {
        let program = |argv: &str, user: Option<&str>| MapProgram {
            map: b"m".to_vec(),
            argv: vec![argv.as_bytes().to_vec()],
            user: user.map(|user| user.as_bytes().to_vec()),
            group: None,
            starts: true,
        };
        let error = |program: &MapProgram| Program::start(program).err().unwrap().kind();
        assert_eq!(error(&program("/nonexistent", None)), io::ErrorKind::NotFound);
        assert_eq!(error(&program("/etc/passwd", None)), io::ErrorKind::PermissionDenied);
        assert_eq!(error(&program("/bin/cat", Some("no such user"))), io::ErrorKind::NotFound);
    }

    /// Starts a shell script. Its directory goes with the guard.
    fn start(script: &str) -> (tempfile::TempDir, Program) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        // Run by the shell, as a file just written may still be open in a child of another test.
        let argv = ["/bin/sh".into(), path.as_os_str().as_bytes().to_vec()].to_vec();
        let mut program =
            MapProgram { map: b"m".to_vec(), argv, user: None, group: None, starts: true };
        let shell = directory.path().join("sh");
        std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
        program.argv[0] = shell.into_os_string().into_encoded_bytes();
        let program = Program::start(&program).unwrap();
        (directory, program)
    }

    #[track_caller]
    fn check(program: &Program, key: &str, expected: Option<&str>) {
        let mut value = Vec::new();
        let found = program.ask(key.as_bytes(), &mut value);
        let value = found.then(|| String::from_utf8(value).unwrap());
        assert_eq!(value.as_deref(), expected);
    }
}

//! The files of one method that its servers share: rules in both languages, maps, documents.
//!
//! A method is written once and every server includes it, so that Apache and milepost provably read
//! the same rules. Everything is readable by anybody, because a server started by root serves as
//! somebody else.

use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::experiment::{DIRECTORY, Experiment, Method, RuleSet, Target, Text, numbered};

/// Characters that some configuration language reads inside its quotes.
const PATH_FORBIDDEN: [char; 7] = ['"', '\\', '$', '\n', '*', '?', '['];

/// The files of one method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    directory: PathBuf,
}

impl Site {
    /// Names the files of `method` below `root`; nothing is written yet.
    pub fn new(root: &Path, method: &Method) -> Self {
        Self { directory: root.join("methods").join(&method.name) }
    }

    /// Returns the directory of the documents.
    pub fn documents(&self) -> PathBuf {
        self.directory.join("documents")
    }

    /// Returns the rules in Apache's language.
    pub fn apache_rules(&self) -> PathBuf {
        self.directory.join("rules.conf")
    }

    /// Returns nginx's text for inside `http`.
    pub fn nginx_http(&self) -> PathBuf {
        self.directory.join("nginx-http.conf")
    }

    /// Returns nginx's text for inside `server`.
    pub fn nginx_server(&self) -> PathBuf {
        self.directory.join("nginx-server.conf")
    }

    /// Writes the files of `method` for `rules` rules.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn write(&self, experiment: &Experiment, method: &Method, rules: u32) -> io::Result<()> {
        make_directory(&self.documents())?;
        if let Some(text) = &method.apache {
            write_file(&self.apache_rules(), &self.render(text, method, rules))?;
        }
        if let Some(text) = &method.nginx {
            write_file(&self.nginx_http(), &self.render(&text.http, method, rules))?;
            write_file(&self.nginx_server(), &self.render(&text.server(), method, rules))?;
        }
        for file in &method.files {
            let text = Text { each: Some(file.each.clone()), ..Text::default() };
            write_file(&self.directory.join(&file.name), &self.render(&text, method, rules))?;
        }
        if let Some(content) = &method.document {
            for target in [Target::First, Target::Middle, Target::Last] {
                let path = experiment.path(target, rules);
                let file = self.documents().join(path.trim_start_matches('/'));
                make_directory(file.parent().unwrap_or(&file))?;
                write_file(&file, content)?;
            }
        }
        Ok(())
    }

    fn render(&self, text: &Text, method: &Method, rules: u32) -> String {
        let mut rendered = String::new();
        let directory = self.directory.display().to_string();
        let once = |text: &str| text.trim_end().replace(DIRECTORY, &directory);
        if let Some(before) = &text.before {
            let _ = writeln!(rendered, "{}", once(before));
        }
        if let Some(each) = &text.each {
            let each = once(each);
            let numbers = match method.rules {
                RuleSet::All => 1..=rules,
                RuleSet::Last => rules..=rules,
                RuleSet::None => return rendered,
            };
            for rule in numbers {
                let _ = writeln!(rendered, "{}", numbered(&each, rule));
            }
        }
        if let Some(after) = &text.after {
            let _ = writeln!(rendered, "{}", once(after));
        }
        rendered
    }
}

/// Returns the first character of `path` that cannot stand in a configuration.
pub(crate) fn forbidden(path: &Path) -> Option<char> {
    path.to_string_lossy().chars().find(|character| PATH_FORBIDDEN.contains(character))
}

/// Makes a directory, and those above it, that anybody may enter.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    // The ancestors of a relative path end with an empty one, which is where we are.
    let ancestors = path.ancestors().filter(|path| !path.as_os_str().is_empty());
    let missing: Vec<&Path> = ancestors.take_while(|path| !path.exists()).collect();
    for directory in missing.into_iter().rev() {
        fs::create_dir(directory)?;
        // Whatever the umask says.
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Writes a file that anybody may read.
pub(crate) fn write_file(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

/// Tells whether every account may enter `directory`, which exists.
pub(crate) fn anybody_may_enter(directory: &Path) -> bool {
    directory.ancestors().all(|directory| {
        fs::metadata(directory).is_ok_and(|data| data.permissions().mode() & 0o001 != 0)
    })
}

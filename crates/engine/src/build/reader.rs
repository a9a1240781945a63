//! Reads configuration files and walks their directives: includes, variables, conditional sections.
//!
//! Source: httpd 2.4.71 `server/config.c` `ap_build_config`, `server/core.c` `include_config`,
//! `ap_resolve_env`, `start_ifmod`, `start_ifdefine`.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use milepost_syntax::{Fault, Kind, Node, Text, Tree, Words};

use super::form::{CONDITIONS, Condition};
use super::known::Known;
use super::report::{Finding, show};
use super::{Builder, Context, DirDraft, Directive, bytes_to_path, path_to_bytes};
use crate::decision::Place;
use crate::outside::FileKind;
use crate::program::Scope;

/// Deepest nesting of includes, `AP_MAX_INCLUDE_DEPTH`.
const INCLUDE_DEPTH_MAX: usize = 20;

/// A file while it is walked.
pub(super) struct Walk<'t> {
    pub(super) file: u32,
    pub(super) tree: &'t Tree,
    pub(super) nodes: &'t [Node],
    /// What is wrong with the form of the file.
    pub(super) faults: &'t [Fault],
    /// The conditions that were met, if anything is wrong.
    pub(super) met: RefCell<Vec<Condition>>,
}

impl Builder<'_> {
    /// Reads the main configuration file.
    pub(super) fn read_main_file(&mut self, path: &Path) {
        match self.outside.read(path) {
            Ok(text) => self.with_main(|builder, context| builder.read_text(path, text, context)),
            Err(error) => {
                self.report_file(path, Finding::error(cannot_read(&error)));
            }
        }
    }

    /// Reads a directive of the command line.
    pub(super) fn read_option(&mut self, option: &str, number: usize, line: &str) {
        let name = PathBuf::from(format!("{option} #{}", number + 1));
        let text = line.as_bytes().to_vec();
        self.with_main(|builder, context| builder.read_text(&name, text, context));
    }

    fn with_main(&mut self, read: impl FnOnce(&mut Self, &mut Context<'_>)) {
        let mut base: DirDraft = std::mem::take(&mut self.servers[0].base);
        let mut context =
            Context { scope: Scope::Main, server: 0, directory: Arc::from([]), dir: &mut base };
        read(self, &mut context);
        self.servers[0].base = base;
    }

    /// Parses a file and runs its directives.
    pub(super) fn read_text(&mut self, path: &Path, text: Vec<u8>, context: &mut Context<'_>) {
        let (mut tree, faults) = Tree::parse(text);
        let nodes = tree.take_nodes();
        let tree = Arc::new(tree);
        let file = self.pool.add_file(path.to_owned(), Arc::clone(&tree));
        let walk =
            Walk { file, tree: &tree, nodes: &nodes, faults: &faults, met: RefCell::default() };
        self.walk(&walk, 0..nodes.len(), context);
        self.report_faults(&walk);
    }

    fn walk(&mut self, walk: &Walk<'_>, range: std::ops::Range<usize>, context: &mut Context<'_>) {
        let mut at = range.start;
        while at < range.end {
            let node = &walk.nodes[at];
            let name = walk.tree.bytes(node.name);
            let place = Place { file: walk.file, offset: node.name.at() as u32 };
            let raw = walk.tree.bytes(node.args);
            let expanded = self.expand_variables(raw, place);
            let args_text = match &expanded {
                None => self.pool.in_file(walk.file, node.args),
                Some(text) => self.pool.add(text),
            };
            let directive = Directive {
                name,
                args: expanded.as_deref().unwrap_or(raw),
                args_text,
                name_text: self.pool.in_file(walk.file, node.name),
                place,
            };
            match node.kind {
                Kind::Directive if self.only_conditions && !is_read_at_once(name) => {}
                Kind::Directive => self.directive(&directive, context),
                Kind::Open { end } => {
                    let inner = at + 1..(end as usize).min(range.end);
                    self.open(walk, &directive, inner, context);
                    at = end as usize;
                }
                Kind::Close => {}
            }
            at += 1;
        }
    }

    /// Decides a section: whether its contents count, and for what.
    fn open(
        &mut self,
        walk: &Walk<'_>,
        directive: &Directive<'_>,
        inner: std::ops::Range<usize>,
        context: &mut Context<'_>,
    ) {
        let name = directive.name.to_ascii_lowercase();
        let known = match self.only_conditions {
            true => None,
            false => self.may_open(directive, &name),
        };
        let is_read_at_once = CONDITIONS.contains(&&*name) || name == b"macro";
        if known.is_none() && !self.only_conditions && is_read_at_once {
            return self.stumble(walk, inner.end);
        }
        let counts = match name.as_slice() {
            b"ifmodule" => self.holds(directive, |builder, name| builder.names.modules.holds(name)),
            b"ifdefine" => {
                self.holds(directive, |builder, name| builder.names.defines.contains_key(name))
            }
            b"iffile" => self.holds(directive, |builder, path| {
                let path = builder.resolve(path);
                builder.outside.kind(&path) != FileKind::Missing
            }),
            b"ifversion" => {
                let start = inner.start - 1;
                self.version_holds(directive, walk.tree.behind(&walk.nodes[start]))
            }
            b"ifdirective" => self.holds(directive, |builder, name| builder.has_directive(name)),
            b"ifsection" => self.holds(directive, |builder, name| builder.has_section(name)),
            b"macro" => return self.define_macro(directive, text_of(walk, inner)),
            _ => return self.open_section(&name, known, walk, directive, inner, context),
        };
        walk.note(directive.place, &inner, counts);
        if counts {
            let end = walk.nodes.get(inner.end).filter(|node| node.kind == Kind::Close);
            self.walk(walk, inner, context);
            // httpd does not take such a line for the end of what it is reading.
            if let Some(end) = end.filter(|end| !end.args.is_empty()) {
                let place = Place { file: walk.file, offset: end.name.at() as u32 };
                let finding = Finding::error("text after the end of a section")
                    .hint("a comment needs a line of its own");
                self.report_place(place, end.name.len(), finding);
            }
        } else {
            self.check_left_out(walk, directive, inner);
        }
    }

    /// Where httpd passes over the first line of a section that is not allowed, it stumbles over the last.
    fn stumble(&mut self, walk: &Walk<'_>, end: usize) {
        let is_passed_over = self.allowed.as_ref().is_some_and(|allowed| allowed.nonfatal.1);
        let Some(end) = walk.nodes.get(end).filter(|_| is_passed_over) else { return };
        let place = Place { file: walk.file, offset: end.name.at() as u32 };
        let finding = Finding::error("the end of a section whose beginning is not allowed here")
            .hint("`Nonfatal` does not help sections: let `AllowOverride` have a class");
        self.report_place(place, end.name.len(), finding);
    }

    /// A section that is for some requests. Where it is wrong, the conditions in it are looked at all the
    /// same: httpd does so while it reads, before it knows.
    fn open_section(
        &mut self,
        name: &[u8],
        known: Option<&Known>,
        walk: &Walk<'_>,
        directive: &Directive<'_>,
        inner: std::ops::Range<usize>,
        context: &mut Context<'_>,
    ) {
        let mut is_entered = false;
        if let Some(known) = known {
            if known.is_core() {
                context.dir.config.refuse_encoded_slashes();
            }
            let walk_inner = |builder: &mut Self, context: &mut Context<'_>| {
                is_entered = true;
                builder.walk(walk, inner.clone(), context);
            };
            self.section(name, directive, context, walk_inner);
        }
        if !is_entered {
            let before = std::mem::replace(&mut self.only_conditions, true);
            self.walk(walk, inner, context);
            self.only_conditions = before;
        }
    }

    fn holds(
        &mut self,
        directive: &Directive<'_>,
        test: impl Fn(&mut Self, &[u8]) -> bool,
    ) -> bool {
        // The mark stands before the word, and before its quote.
        let (is_negated, name) = match directive.args.strip_prefix(b"!") {
            Some(name) => (true, name),
            None => (false, directive.args),
        };
        match Words::new(name).next().filter(|word| !word.text.is_empty()) {
            Some(word) => test(self, &word.text) != is_negated,
            None => {
                self.report(directive, Finding::error("the section needs an argument"));
                false
            }
        }
    }

    /// Replaces `${NAME}` by a `Define` or a variable of the environment. `None`: nothing to replace.
    fn expand_variables(&mut self, args: &[u8], place: Place) -> Option<Vec<u8>> {
        // Nearly every pattern has a `$`, and hardly any a variable.
        memchr::memchr_iter(b'$', args).find(|&at| args.get(at + 1) == Some(&b'{'))?;
        let mut out = Vec::with_capacity(args.len());
        let mut rest = args;
        let mut changed = false;
        while let Some(start) = memchr::memmem::find(rest, b"${") {
            let Some(end) = memchr::memchr(b'}', &rest[start..]) else { break };
            let name = &rest[start + 2..start + end];
            out.extend_from_slice(&rest[..start]);
            let value = self.names.defines.get(name).cloned().or_else(|| {
                let name = std::str::from_utf8(name).ok()?;
                self.outside.environment(name).map(String::into_bytes)
            });
            // What is empty is not replaced.
            match value.filter(|value| !value.is_empty()) {
                Some(value) => {
                    out.extend_from_slice(&value);
                    changed = true;
                }
                None => {
                    // A map call of mod_rewrite has a colon; anything else was meant as a variable.
                    if !name.contains(&b':') {
                        let message = format!("variable {} is not defined or empty", show(name));
                        let hint = match name.starts_with(b"APACHE_") {
                            true => {
                                "Debian's are those of its `envvars`: `. /etc/apache2/envvars` before the command"
                            }
                            false => {
                                "say what it is with `Define`, with `-D`, or in the environment"
                            }
                        };
                        self.report_place(place, 1, Finding::warning(message).hint(hint));
                    }
                    out.extend_from_slice(&rest[start..=start + end]);
                }
            }
            rest = &rest[start + end + 1..];
        }
        out.extend_from_slice(rest);
        changed.then_some(out)
    }

    /// `Include` and `IncludeOptional`: a file, a directory, or a pattern in any part of the path.
    pub(super) fn include(
        &mut self,
        directive: &Directive<'_>,
        required: bool,
        context: &mut Context<'_>,
    ) {
        let words = directive.words();
        let [word] = words.as_slice() else {
            self.report(directive, Finding::error("write one path after `Include`"));
            return;
        };
        if self.including.len() >= INCLUDE_DEPTH_MAX {
            let message = format!("includes are nested more than {INCLUDE_DEPTH_MAX} deep");
            self.report(directive, Finding::error(message).hint("does a file include itself?"));
            return;
        }
        let path = self.resolve(&word.text);
        let mut files = Vec::new();
        if let Err((path, error)) = self.find_files(&path, &mut files) {
            if required {
                let message = format!("{}: {}", path.display(), cannot_read(&error));
                self.report_at(directive, word.at, word.len, Finding::error(message));
            }
            return;
        }
        if files.is_empty() && required {
            let finding = Finding::error(format!("no file matches {}", show(&word.text)))
                .hint("use `IncludeOptional` where it may be missing");
            self.report_at(directive, word.at, word.len, finding);
        }
        for file in files {
            match self.outside.read(&file) {
                Ok(text) => {
                    self.including.push(file.clone());
                    self.read_text(&file, text, context);
                    self.including.pop();
                }
                Err(error) if !required && error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let message = format!("{}: {}", file.display(), cannot_read(&error));
                    self.report_at(directive, word.at, word.len, Finding::error(message));
                }
            }
        }
    }

    /// Collects the files that a path names, in the order in which httpd reads them.
    fn find_files(
        &self,
        path: &Path,
        files: &mut Vec<PathBuf>,
    ) -> Result<(), (PathBuf, io::Error)> {
        let bytes = path_to_bytes(path);
        let Some(wild) = bytes.iter().position(|byte| b"*?[".contains(byte)) else {
            if self.outside.kind(path) == FileKind::Directory {
                let mut entries =
                    self.outside.list(path).map_err(|error| (path.to_owned(), error))?;
                entries.sort();
                for entry in entries {
                    self.find_files(&path.join(entry), files)?;
                }
            } else {
                files.push(path.to_owned());
            }
            return Ok(());
        };
        // The part with the wildcard, what is before it and what is after it.
        let start = memchr::memrchr(b'/', &bytes[..wild]).map_or(0, |slash| slash + 1);
        let end = memchr::memchr(b'/', &bytes[wild..]).map_or(bytes.len(), |slash| wild + slash);
        let directory = bytes_to_path(&bytes[..start]);
        let mut entries = match self.outside.list(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err((directory.to_owned(), error)),
        };
        entries.sort();
        for entry in entries {
            let name = path_to_bytes(&entry);
            let hidden = name.first() == Some(&b'.');
            if hidden || !crate::wildcard::matches(&bytes[start..end], name) {
                continue;
            }
            let found = directory.join(&entry);
            if end == bytes.len() {
                self.find_files(&found, files)?;
            } else if self.outside.kind(&found) == FileKind::Directory {
                self.find_files(&found.join(bytes_to_path(&bytes[end + 1..])), files)?;
            }
        }
        Ok(())
    }
}

/// Whether httpd looks at a directive while it reads, before it knows the section around it.
fn is_read_at_once(name: &[u8]) -> bool {
    ["use", "include", "includeoptional"]
        .iter()
        .any(|read| name.eq_ignore_ascii_case(read.as_bytes()))
}

/// The text of some nodes, one to a line, as it was before variables were replaced. Empty lines stay, as they
/// count in the numbers of lines that httpd gives, and comments go.
fn text_of(walk: &Walk<'_>, range: std::ops::Range<usize>) -> Vec<u8> {
    let source_of = |text: Text, at: usize| walk.tree.source_offset(text.at() + at);
    let mut text = Vec::new();
    let mut before = range.start.checked_sub(1).and_then(|at| walk.nodes.get(at));
    for node in walk.nodes.get(range).unwrap_or_default() {
        if let Some(before) = before.replace(node) {
            let last = if before.args.is_empty() { before.name } else { before.args };
            let gap = source_of(last, last.len().saturating_sub(1))..source_of(node.name, 0);
            let empty = empty_lines(walk.tree.source().get(gap).unwrap_or_default());
            text.extend(std::iter::repeat_n(b'\n', empty));
        }
        let (open, close): (&[u8], &[u8]) = match node.kind {
            Kind::Directive => (b"", b""),
            Kind::Open { .. } => (b"<", b">"),
            Kind::Close => (b"</", b">"),
        };
        text.extend_from_slice(open);
        text.extend_from_slice(walk.tree.bytes(node.name));
        // What follows an end is its own affair.
        if !node.args.is_empty() && node.kind != Kind::Close {
            text.push(b' ');
            text.extend_from_slice(walk.tree.bytes(node.args));
        }
        text.extend_from_slice(close);
        text.push(b'\n');
    }
    text
}

/// How many empty lines there are between the line that the text begins in and the one that it ends in.
fn empty_lines(text: &[u8]) -> usize {
    let end = memchr::memrchr(b'\n', text).unwrap_or(0);
    let mut is_joined = true;
    let lines = text[..end].split(|&byte| byte == b'\n').enumerate();
    let empty = lines.filter(|(number, line)| {
        let line = line.trim_ascii();
        let is_empty = *number > 0 && !is_joined && line.is_empty();
        is_joined = line.ends_with(b"\\");
        is_empty
    });
    empty.count()
}

/// What the operating system says, without its error number.
pub(super) fn cannot_read(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "may not be read: permission denied".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

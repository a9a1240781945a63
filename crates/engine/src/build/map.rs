//! `RewriteMap`, and the directives of mod_dbd that its databases need.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `cmd_rewritemap`, `run_rewritemap_programs`;
//! `modules/database/mod_dbd.c`, `dbd_param`, `dbd_merge`.

use std::path::PathBuf;
use std::sync::Arc;

use milepost_syntax::Word;

use super::report::{Finding, show};
use super::{Builder, Context, Directive, path_to_bytes};
use crate::helper::{Database, Driver, MapProgram};
use crate::map::{DbmError, DbmType, FileMap, Form, ReadError};
use crate::outside::FileKind;
use crate::program::{InternalMap, Map, QueryMap, Server};

/// What is counted across all servers.
#[derive(Default)]
pub(super) struct MapDraft {
    /// Maps that remember something.
    numbered: usize,
    pub(super) programs: Vec<MapProgram>,
}

/// What the directives of mod_dbd say for one server.
#[derive(Default)]
pub(super) struct DatabaseDraft {
    driver: Option<Driver>,
    params: Vec<u8>,
    init: Vec<String>,
    statements: Vec<String>,
}

/// Where a map gets its answers from.
enum Source<'a> {
    File(Form, &'a [u8]),
    Internal(&'a [u8]),
    Program(&'a [u8]),
    Query { sql: &'a [u8], cached: bool },
}

impl Builder<'_> {
    /// `RewriteMap name type:source [user:group]`
    pub(super) fn rewrite_map(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 2, 3, "RewriteMap name type:source") else {
            return;
        };
        let (name, source) = (&words[0], &words[1]);
        let map = match self.source(directive, source) {
            Some(Source::File(form, path)) => self.file_map(directive, name, source, form, path),
            Some(Source::Internal(function)) => self.internal_map(directive, source, function),
            Some(Source::Program(line)) => {
                let owner = words.get(2).map(|word| &*word.text);
                self.program_map(directive, name, source, line, owner)
            }
            Some(Source::Query { sql, cached }) => {
                let sql = String::from_utf8_lossy(sql).into_owned();
                self.servers[context.server].database.statements.push(sql.clone());
                Some(Map::Query(QueryMap { number: self.next_map(), sql, cached }))
            }
            None => None,
        };
        if let Some(map) = map {
            let name = name.text.to_vec().into_boxed_slice();
            self.servers[context.server].maps.insert(name, Arc::new(map));
        }
    }

    /// Splits `type:source`. What has no known type is the path of a text file.
    fn source<'w>(&mut self, directive: &Directive<'_>, word: &'w Word<'_>) -> Option<Source<'w>> {
        let text: &[u8] = &word.text;
        let after = |kind: &[u8]| {
            let (start, rest) = text.split_at_checked(kind.len())?;
            start.eq_ignore_ascii_case(kind).then_some(rest)
        };
        if let Some(path) = after(b"txt:") {
            return Some(Source::File(Form::Text, path));
        }
        if let Some(path) = after(b"rnd:") {
            return Some(Source::File(Form::Random, path));
        }
        if let Some(rest) = after(b"dbm") {
            return self.dbm_source(directive, word, rest);
        }
        let is_query = after(b"dbd:").is_some() || after(b"fastdbd:").is_some();
        if is_query && !self.names.modules.has("mod_dbd.c") {
            let finding = Finding::error("maps of databases need mod_dbd, which is not loaded")
                .hint("load it: `LoadModule dbd_module …/mod_dbd.so`");
            self.report_at(directive, word.at, word.len, finding);
            return None;
        }
        if let Some(sql) = after(b"dbd:") {
            return Some(Source::Query { sql, cached: false });
        }
        if let Some(sql) = after(b"fastdbd:") {
            return Some(Source::Query { sql, cached: true });
        }
        if let Some(line) = after(b"prg:") {
            return Some(Source::Program(line));
        }
        if let Some(function) = after(b"int:") {
            return Some(Source::Internal(function));
        }
        Some(Source::File(Form::Text, text))
    }

    /// `dbm:path` or `dbm=type:path`
    fn dbm_source<'w>(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        rest: &'w [u8],
    ) -> Option<Source<'w>> {
        let typed = |rest: &'w [u8]| {
            let colon = memchr::memchr(b':', rest)?;
            Some((&rest[..colon], &rest[colon + 1..]))
        };
        let split = match rest.split_first() {
            Some((b':', path)) => Some((&b"default"[..], path)),
            Some((b'=', rest)) => typed(rest),
            _ => None,
        };
        let Some((kind, path)) = split else {
            let finding = Finding::error(format!("{} is no map", show(&word.text)))
                .hint("write `dbm:path` or `dbm=type:path`");
            self.report_at(directive, word.at, word.len, finding);
            return None;
        };
        let full = self.resolve(path);
        let exists = |path: &std::path::Path| self.outside.kind(path) != FileKind::Missing;
        let Some(kind) = DbmType::named(kind, &full, exists) else {
            let finding = Finding::error(format!("no dbm type is called {}", show(kind)))
                .hint("sdbm, gdbm, db or default");
            self.report_at(directive, word.at, word.len, finding);
            return None;
        };
        Some(Source::File(Form::Dbm(kind), path))
    }

    fn file_map(
        &mut self,
        directive: &Directive<'_>,
        name: &Word<'_>,
        source: &Word<'_>,
        form: Form,
        path: &[u8],
    ) -> Option<Map> {
        let map = FileMap::new(self.next_map(), form, self.resolve(path));
        if !self.is_there(directive, name, source, map.path().to_owned()) {
            return None;
        }
        let mut newest = None;
        match map.refresh(&mut newest, self.outside) {
            Ok(()) => {}
            // Never answered from, whatever becomes of the file.
            Err(
                error @ (ReadError::TooLong { .. }
                | ReadError::Dbm {
                    error:
                        DbmError::NotHash
                        | DbmError::OtherMachine
                        | DbmError::Version { .. }
                        | DbmError::Sealed,
                    ..
                }),
            ) => {
                let finding = Finding::error(error.to_string())
                    .hint("read are sdbm, gdbm and db (type hash), as `httxt2dbm` writes them");
                self.report_at(directive, source.at, source.len, finding);
                return None;
            }
            Err(error) => {
                let finding = Finding::warning(error.to_string())
                    .hint("as long as it is so, every lookup in it fails");
                self.report_at(directive, source.at, source.len, finding);
            }
        }
        Some(Map::File(map))
    }

    /// Whether the file of a map exists; an error otherwise.
    fn is_there(
        &mut self,
        directive: &Directive<'_>,
        name: &Word<'_>,
        source: &Word<'_>,
        path: PathBuf,
    ) -> bool {
        let found = self.outside.kind(&path) != FileKind::Missing;
        if !found {
            let (name, path) = (show(&name.text), path.display());
            let finding = Finding::error(format!("file for map {name} not found: {path}"));
            self.report_at(directive, source.at, source.len, finding);
        }
        found
    }

    fn internal_map(
        &mut self,
        directive: &Directive<'_>,
        source: &Word<'_>,
        function: &[u8],
    ) -> Option<Map> {
        let function = match function {
            b"toupper" => InternalMap::ToUpper,
            b"tolower" => InternalMap::ToLower,
            b"escape" => InternalMap::Escape,
            b"unescape" => InternalMap::Unescape,
            _ => {
                let message = format!("no internal function is called {}", show(function));
                let finding = Finding::error(message).hint("toupper, tolower, escape or unescape");
                self.report_at(directive, source.at, source.len, finding);
                return None;
            }
        };
        Some(Map::Internal(function))
    }

    fn program_map(
        &mut self,
        directive: &Directive<'_>,
        name: &Word<'_>,
        source: &Word<'_>,
        line: &[u8],
        owner: Option<&[u8]>,
    ) -> Option<Map> {
        let mut argv = arguments(line);
        let Some(program) = argv.first_mut() else {
            self.report_at(directive, source.at, source.len, Finding::error("no program is named"));
            return None;
        };
        let path = self.resolve(program);
        *program = path_to_bytes(&path).to_vec();
        if !self.is_there(directive, name, source, path) {
            return None;
        }
        let mut owner = owner.unwrap_or_default().split(|&byte| byte == b':');
        let mut next = || owner.find(|part| !part.is_empty()).map(<[u8]>::to_vec);
        let (user, group) = (next(), next());
        let map = name.text.to_vec();
        self.maps.programs.push(MapProgram { map, argv, user, group, starts: false });
        Some(Map::Program(self.maps.programs.len() - 1))
    }

    fn next_map(&mut self) -> usize {
        self.maps.numbered += 1;
        self.maps.numbered - 1
    }

    /// `DBDriver name`
    pub(super) fn database_driver(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        let Some(word) = self.database_word(directive, context, "DBDriver name") else { return };
        let driver = match word.text.to_ascii_lowercase().as_slice() {
            b"sqlite3" => Driver::Sqlite3,
            b"pgsql" => Driver::Pgsql,
            b"mysql" => Driver::Mysql,
            name => {
                let message = match name {
                    b"sqlite2" | b"oracle" | b"freetds" | b"odbc" => {
                        format!("databases of type {} are not done yet", show(&word.text))
                    }
                    _ => format!("no driver for {}", show(&word.text)),
                };
                let finding = Finding::error(message).hint("done are sqlite3, pgsql and mysql");
                return self.report_at(directive, word.at, word.len, finding);
            }
        };
        self.servers[context.server].database.driver = Some(driver);
    }

    /// `DBDParams params`
    pub(super) fn database_params(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if let Some(word) = self.database_word(directive, context, "DBDParams params") {
            self.servers[context.server].database.params = word.text.to_vec();
        }
    }

    /// `DBDInitSQL statement`
    pub(super) fn database_init(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if let Some(word) = self.database_word(directive, context, "DBDInitSQL statement") {
            let sql = String::from_utf8_lossy(&word.text).into_owned();
            self.servers[context.server].database.init.push(sql);
        }
    }

    /// `DBDPrepareSQL statement label`
    pub(super) fn database_prepare(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        if let Some(words) = self.words(directive, 1, 2, "DBDPrepareSQL statement label") {
            let sql = String::from_utf8_lossy(&words[0].text).into_owned();
            self.servers[context.server].database.statements.push(sql);
        }
    }

    /// `DBDPersist On|Off`: connections are kept here in any case.
    pub(super) fn database_persist(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if self.server_only(directive, context) {
            self.flag(directive);
        }
    }

    /// `DBDMin`, `DBDKeep`, `DBDMax`, `DBDExptime`: here each worker has one connection.
    pub(super) fn database_number(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        let Some(word) = self.database_word(directive, context, "DBDMax number") else { return };
        if !word.text.iter().all(u8::is_ascii_digit) {
            let finding = Finding::error("argument must be numeric");
            self.report_at(directive, word.at, word.len, finding);
        }
    }

    fn database_word<'d>(
        &mut self,
        directive: &Directive<'d>,
        context: &Context<'_>,
        usage: &str,
    ) -> Option<Word<'d>> {
        if !self.server_only(directive, context) {
            return None;
        }
        self.words(directive, 1, 1, usage)?.into_iter().next()
    }
}

impl DatabaseDraft {
    /// The database of a server; `main` is the main server's.
    pub(super) fn finish(self, main: Option<&Database>, number: usize) -> Database {
        let empty = Database::default();
        let main = main.unwrap_or(&empty);
        let or = |own: Vec<String>, main: &Vec<String>| {
            if own.is_empty() { main.clone() } else { own }
        };
        Database {
            number,
            driver: self.driver.or(main.driver),
            params: if self.params.is_empty() { main.params.clone() } else { self.params },
            init: or(self.init, &main.init),
            statements: or(self.statements, &main.statements),
        }
    }
}

/// Marks the programs that a server with `RewriteEngine On` can ask.
pub(super) fn mark_programs(programs: &mut [MapProgram], servers: &[Server]) {
    for server in servers {
        let on = server.base.rewrite.as_ref().is_some_and(|rewrite| rewrite.is_on());
        for map in server.maps.values() {
            if let Map::Program(number) = **map {
                programs[number].starts |= on;
            }
        }
    }
}

/// Splits a command line: blanks separate, quotes and backslashes keep.
///
/// Source: APR `strings/apr_cpystrn.c`, `apr_tokenize_to_argv`.
fn arguments(line: &[u8]) -> Vec<Vec<u8>> {
    let mut arguments = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let mut quote = None;
        let mut argument = Vec::new();
        let mut at = 0;
        while let Some(&byte) = rest.get(at) {
            match (byte, quote) {
                (b'\\', _) if rest.get(at + 1).is_some_and(|next| b" \t\"'\\".contains(next)) => {
                    at += 1;
                    argument.push(rest[at]);
                }
                (b'"' | b'\'', None) => quote = Some(byte),
                (byte, Some(open)) if byte == open => quote = None,
                (b' ' | b'\t', None) => break,
                (byte, _) => argument.push(byte),
            }
            at += 1;
        }
        arguments.push(argument);
        rest = rest[at..].trim_ascii_start();
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_split_at_blanks_outside_quotes() {
        check("/bin/a", &["/bin/a"]);
        check("  /bin/a  b\tc ", &["/bin/a", "b", "c"]);
        check("/bin/a 'b c' \"d e\"f", &["/bin/a", "b c", "d ef"]);
        check(r#"/bin/a b\ c "\"" \d"#, &["/bin/a", "b c", "\"", "\\d"]);
        check("", &[]);
    }

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        let expected: Vec<_> = expected.iter().map(|word| word.as_bytes().to_vec()).collect();
        assert_eq!(arguments(line.as_bytes()), expected, "{line}");
    }
}

//! Asks SQLite for the values of `dbd:` maps.
//!
//! A connection is opened when it is first asked, and has all statements of its server prepared, as in
//! mod_dbd: if one of them cannot be, the connection is not used, and the next request tries again.
//!
//! Source: httpd 2.4.71 `modules/database/mod_dbd.c`, `dbd_construct`; `mod_rewrite.c`,
//! `lookup_map_dbd`; APR-util 1.6 `dbd/apr_dbd.c`, `apr_dbd_prepare`; `dbd/apr_dbd_sqlite3.c`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use milepost_engine::{Database, Driver, Outside};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags};

use crate::error_log::report;
use crate::outside::FileSystem;

/// How long a query waits for somebody who writes, as in APR (15 times 0.1 s).
const BUSY_TIME_MAX: Duration = Duration::from_millis(1500);

/// The connections of one worker, by the number of the database.
#[derive(Default)]
pub(super) struct Connections {
    open: RefCell<HashMap<usize, Connection>>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    #[error("`DBDriver` is not set")]
    NoDriver,
    #[error("databases of this type are not done yet")]
    OtherDriver,
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl Connections {
    /// Returns the first column of a row that `sql` selects; its `%s` stands for the key.
    pub(super) fn query(&self, database: &Database, sql: &str, key: &[u8]) -> Option<Vec<u8>> {
        let mut open = self.open.borrow_mut();
        let connection = match open.entry(database.number) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match connect(database) {
                Ok(connection) => entry.insert(connection),
                Err(error) => {
                    report(&format!("database {}: {error}", name(database)));
                    return None;
                }
            },
        };
        let mut value = None;
        let result = select(connection, sql, key, &mut value);
        if let Err(error) = result {
            report(&format!("database {}: {error}", name(database)));
        }
        value
    }
}

fn connect(database: &Database) -> Result<Connection, ConnectError> {
    match database.driver {
        Some(Driver::Sqlite3) => {}
        Some(_) => return Err(ConnectError::OtherDriver),
        None => return Err(ConnectError::NoDriver),
    }
    let path = Path::new(OsStr::from_bytes(&database.params));
    // No file is made: an empty database could answer nothing.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIME_MAX)?;
    connection.set_prepared_statement_cache_capacity(database.statements.len().max(1));
    for sql in &database.init {
        connection.execute_batch(sql)?;
    }
    for sql in &database.statements {
        connection.prepare_cached(&placeholders(sql))?;
    }
    Ok(connection)
}

/// Leaves one value in `chosen`, whatever error comes after it.
fn select(
    connection: &Connection,
    sql: &str,
    key: &[u8],
    chosen: &mut Option<Vec<u8>>,
) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare_cached(&placeholders(sql))?;
    // More than one placeholder: the others stay NULL.
    if statement.parameter_count() > 0 {
        statement.raw_bind_parameter(1, Key(key))?;
    }
    let mut rows = statement.raw_query();
    let mut count = 0_u64;
    while let Some(row) = rows.next()? {
        count += 1;
        // Each of n rows is kept with the same probability.
        if chosen.is_none() || FileSystem.random().is_multiple_of(count) {
            *chosen = text(connection, row.get_ref(0)?)?;
        }
    }
    Ok(())
}

/// The text of a value, as SQLite writes it, up to a zero byte.
fn text(connection: &Connection, value: ValueRef<'_>) -> Result<Option<Vec<u8>>, rusqlite::Error> {
    let mut text = match value {
        ValueRef::Null => return Ok(None),
        ValueRef::Integer(number) => number.to_string().into_bytes(),
        ValueRef::Real(number) => {
            let mut cast = connection.prepare_cached("SELECT CAST(? AS TEXT)")?;
            cast.query_row([number], |row| row.get::<_, String>(0))?.into_bytes()
        }
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
    };
    text.truncate(memchr::memchr(0, &text).unwrap_or(text.len()));
    Ok(Some(text))
}

/// A key is text, whether or not it is UTF-8.
struct Key<'k>(&'k [u8]);

impl ToSql for Key<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// `%s` and its relatives become `?`, and `%%` becomes `%`.
fn placeholders(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let length = after.find(|c| c != 'h' && c != 'l').unwrap_or(after.len());
        if let Some(left) = after.strip_prefix('%') {
            out.push('%');
            rest = left;
        } else if after[length..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            out.push('?');
            rest = &after[length + 1..];
        } else {
            out.push('%');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

fn name(database: &Database) -> String {
    String::from_utf8_lossy(&database.params).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "CREATE TABLE m (k TEXT, v); INSERT INTO m VALUES ('a', 'one'), ('n', NULL), \
                         ('i', 12), ('r', 1.5), ('R', 1e100), ('e', ''), ('b', x'6162'), ('t', 'x'), ('t', 'y');";

    #[test]
    fn values_are_texts_as_sqlite_writes_them() {
        let (_directory, database) = database();
        let connections = Connections::default();
        let check = |key: &str, expected: Option<&str>| {
            let value = connections.query(&database, &database.statements[0], key.as_bytes());
            assert_eq!(value.as_deref(), expected.map(str::as_bytes), "{key}");
        };
        check("a", Some("one"));
        check("A", None);
        check("n", None);
        check("i", Some("12"));
        check("r", Some("1.5"));
        check("R", Some("1.0e+100"));
        check("e", Some(""));
        check("b", Some("ab"));
        check("a' OR '1'='1", None);
    }

    #[test]
    fn of_several_rows_each_comes_up() {
        let (_directory, database) = database();
        let connections = Connections::default();
        let mut seen = [0, 0];
        for _ in 0..200 {
            match connections.query(&database, &database.statements[0], b"t").as_deref() {
                Some(b"x") => seen[0] += 1,
                Some(b"y") => seen[1] += 1,
                other => panic!("{other:?}"),
            }
        }
        // Fewer than 50 of 200 fair coins: less than once in 10^12 runs.
        assert!(seen[0] >= 50 && seen[1] >= 50, "{seen:?}");
    }

    #[test]
    fn a_statement_that_cannot_be_prepared_spoils_the_connection_until_it_can() {
        let (_directory, mut database) = database();
        database.statements.push("SELECT v FROM other WHERE k = %s".to_owned());
        let connections = Connections::default();
        let ask = || connections.query(&database, &database.statements[0], b"a");
        assert_eq!(ask(), None);
        let path = std::str::from_utf8(&database.params).unwrap();
        Connection::open(path).unwrap().execute_batch("CREATE TABLE other (k, v)").unwrap();
        assert_eq!(ask(), Some(b"one".to_vec()));
    }

    #[test]
    fn without_driver_or_file_nothing_is_found() {
        let (_directory, database) = database();
        let connections = Connections::default();
        let without = Database { driver: None, ..database.clone() };
        assert_eq!(connections.query(&without, &database.statements[0], b"a"), None);
        let elsewhere = Database { params: b"/nonexistent/file".to_vec(), ..database.clone() };
        assert_eq!(connections.query(&elsewhere, &database.statements[0], b"a"), None);
    }

    #[test]
    fn formats_become_placeholders() {
        let check = |sql: &str, expected: &str| assert_eq!(placeholders(sql), expected);
        check("k = %s", "k = ?");
        check("k = %ld AND j = %d", "k = ? AND j = ?");
        check("k LIKE '%%' || %s", "k LIKE '%' || ?");
        check("5 % 3, '%", "5 % 3, '%");
    }

    fn database() -> (tempfile::TempDir, Database) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("map.sqlite");
        Connection::open(&path).unwrap().execute_batch(TABLE).unwrap();
        let database = Database {
            driver: Some(Driver::Sqlite3),
            params: path.as_os_str().as_bytes().to_vec(),
            statements: vec!["SELECT v FROM m WHERE k = %s".to_owned()],
            ..Database::default()
        };
        (directory, database)
    }
}

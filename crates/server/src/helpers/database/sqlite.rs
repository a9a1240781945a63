//! SQLite, which is built in.
//!
//! Source: APR-util 1.6 `dbd/apr_dbd_sqlite3.c`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use milepost_engine::Database;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags};

use super::placeholders::as_question_marks;
use super::{Chosen, Client, DatabaseError};

/// How long a query waits for somebody who writes, as in APR (15 times 0.1 s).
const BUSY_TIME_MAX: Duration = Duration::from_millis(1500);

/// A connection.
pub(super) struct Sqlite(Connection);

impl Sqlite {
    /// Opens the file that `DBDParams` names.
    pub(super) fn connect(database: &Database) -> Result<Sqlite, DatabaseError> {
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
            connection.prepare_cached(&as_question_marks(sql))?;
        }
        Ok(Sqlite(connection))
    }
}

impl Client for Sqlite {
    fn select(&mut self, sql: &str, key: &[u8], chosen: &mut Chosen) -> Result<(), DatabaseError> {
        let mut statement = self.0.prepare_cached(&as_question_marks(sql))?;
        // More than one placeholder: the others stay NULL.
        if statement.parameter_count() > 0 {
            statement.raw_bind_parameter(1, Key(key))?;
        }
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if chosen.wants_next() {
                chosen.keep(text(&self.0, row.get_ref(0)?)?);
            }
        }
        Ok(())
    }
}

/// The text of a value, as SQLite writes it.
fn text(connection: &Connection, value: ValueRef<'_>) -> Result<Option<Vec<u8>>, rusqlite::Error> {
    Ok(Some(match value {
        ValueRef::Null => return Ok(None),
        ValueRef::Integer(number) => number.to_string().into_bytes(),
        ValueRef::Real(number) => {
            let mut cast = connection.prepare_cached("SELECT CAST(? AS TEXT)")?;
            cast.query_row([number], |row| row.get::<_, String>(0))?.into_bytes()
        }
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
    }))
}

/// A key is text, whether or not it is UTF-8.
struct Key<'k>(&'k [u8]);

impl ToSql for Key<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use milepost_engine::Driver;

    use super::super::Connections;
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

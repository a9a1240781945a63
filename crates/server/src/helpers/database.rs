//! Asks databases for the values of `dbd:` maps: SQLite, PostgreSQL, MySQL and MariaDB.
//!
//! A connection is opened when it is first asked, and has all statements of its server prepared, as in
//! mod_dbd: if one of them cannot be, the connection is not used, and the next request tries again. One
//! that breaks is dropped, and the next request opens another.
//!
//! Source: httpd 2.4.71 `modules/database/mod_dbd.c`, `dbd_construct`; `mod_rewrite.c`,
//! `lookup_map_dbd`; APR-util 1.6 `dbd/apr_dbd.c`, `apr_dbd_prepare`.

mod mysql;
mod pgsql;
mod placeholders;
mod sqlite;

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use milepost_engine::{Database, Driver, Outside};

use self::mysql::Mysql;
use self::pgsql::Pgsql;
use self::sqlite::Sqlite;
use crate::error_log::report_error;
use crate::outside::FileSystem;

/// How long a database on another machine may take to take a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);

/// How long it may take to answer. Requests of the same worker wait meanwhile.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// The connections of one worker, by the number of the database.
#[derive(Default)]
pub(super) struct Connections {
    open: RefCell<HashMap<usize, Box<dyn Client>>>,
}

/// A connection to a database.
trait Client: Send {
    /// Lets `chosen` choose among the first columns of the rows that `sql` selects; its `%s` stands for
    /// the key. Whatever error comes after it, what has been chosen counts.
    fn select(&mut self, sql: &str, key: &[u8], chosen: &mut Chosen) -> Result<(), DatabaseError>;
}

/// One value of those that a statement selects.
#[derive(Debug, Default)]
struct Chosen {
    rows: u64,
    value: Option<Vec<u8>>,
}

/// Why a database has nothing to say.
#[derive(Debug, thiserror::Error)]
enum DatabaseError {
    #[error("`DBDriver` is not set")]
    NoDriver,
    #[error("databases of this type are not done yet")]
    OtherDriver,
    #[error("`DBDParams`: {0}")]
    Params(String),
    #[error("no thread for the connection: {0}")]
    Thread(std::io::Error),
    #[error("values of type {0} are not read; write `CAST(... AS text)` around the column")]
    Column(String),
    #[error("no answer within {} s", ANSWER_TIME_MAX.as_secs())]
    Late,
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("{}", with_causes(.0))]
    Pgsql(#[from] postgres::Error),
    #[error(transparent)]
    Mysql(#[from] ::mysql::Error),
}

impl DatabaseError {
    /// Whether the connection cannot be used any more.
    fn breaks(&self) -> bool {
        match self {
            DatabaseError::Sqlite(_) | DatabaseError::Column(_) => false,
            // What the server says of a query does not touch the connection.
            DatabaseError::Pgsql(error) => error.as_db_error().is_none(),
            DatabaseError::Mysql(error) => !matches!(error, ::mysql::Error::MySqlError(_)),
            _ => true,
        }
    }
}

impl Chosen {
    /// Whether the next row is to be kept: each of n is with the same probability.
    fn wants_next(&mut self) -> bool {
        self.rows += 1;
        self.value.is_none() || FileSystem.random().is_multiple_of(self.rows)
    }

    /// Keeps a value, up to a zero byte: to httpd it is a C string.
    fn keep(&mut self, value: Option<Vec<u8>>) {
        self.value = value.map(|mut text| {
            text.truncate(memchr::memchr(0, &text).unwrap_or(text.len()));
            text
        });
    }
}

impl Connections {
    /// Returns the first column of a row that `sql` selects; its `%s` stands for the key.
    pub(super) fn query(&self, database: &Database, sql: &str, key: &[u8]) -> Option<Vec<u8>> {
        let mut open = self.open.borrow_mut();
        let mut entry = match open.entry(database.number) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => match connect(database) {
                Ok(client) => entry.insert_entry(client),
                Err(error) => {
                    report_error(&format!("database {}: {error}", name(database)));
                    return None;
                }
            },
        };
        let mut chosen = Chosen::default();
        if let Err(error) = entry.get_mut().select(sql, key, &mut chosen) {
            report_error(&format!("database {}: {error}", name(database)));
            if error.breaks() {
                entry.remove();
            }
        }
        chosen.value
    }
}

fn connect(database: &Database) -> Result<Box<dyn Client>, DatabaseError> {
    Ok(match database.driver {
        Some(Driver::Sqlite3) => Box::new(Sqlite::connect(database)?),
        Some(Driver::Pgsql) => Box::new(Pgsql::connect(database)?),
        Some(Driver::Mysql) => Box::new(Mysql::connect(database)?),
        Some(_) => return Err(DatabaseError::OtherDriver),
        None => return Err(DatabaseError::NoDriver),
    })
}

/// What to call a database in the log: its parameters, without the password.
fn name(database: &Database) -> String {
    let params = String::from_utf8_lossy(&database.params);
    let is_secret = |word: &&str| word.trim_start().to_ascii_lowercase().starts_with("pass");
    match params.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?)))
    {
        Some((scheme, (_, host))) => format!("{scheme}://{host}"),
        None => {
            let words = params.split_inclusive([' ', ',', ';', '|']);
            words.filter(|word| !is_secret(word)).collect()
        }
    }
}

/// An error and what it says of its causes, which the text of this library's errors leaves out.
fn with_causes(error: &postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_does_not_tell_passwords() {
        let check = |params: &str, expected: &str| {
            let database = Database { params: params.as_bytes().to_vec(), ..Database::default() };
            assert_eq!(name(&database), expected);
        };
        check("/a/b.sqlite", "/a/b.sqlite");
        check("host=db password=x dbname=d", "host=db dbname=d");
        check("host=db,pass=x,dbname=d", "host=db,dbname=d");
        check("postgres://me:secret@db/d", "postgres://db/d");
        check("mysql://db/d", "mysql://db/d");
    }
}

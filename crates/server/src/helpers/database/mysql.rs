//! MySQL and MariaDB.
//!
//! Source: APR-util 1.6 `dbd/apr_dbd_mysql.c`, `dbd_mysql_open`, for what `DBDParams` may say; a URL,
//! `mysql://user:password@host:port/database`, may stand there too.

use std::collections::HashMap;

use milepost_engine::Database;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, Params, Statement, Value};

use super::placeholders::as_question_marks;
use super::{ANSWER_TIME_MAX, CONNECT_TIME_MAX, Chosen, Client, DatabaseError};

/// A connection.
pub(super) struct Mysql {
    connection: Conn,
    prepared: HashMap<String, Statement>,
}

impl Mysql {
    /// Connects as `DBDParams` says.
    pub(super) fn connect(database: &Database) -> Result<Mysql, DatabaseError> {
        let options = options(&String::from_utf8_lossy(&database.params))?
            .tcp_connect_timeout(Some(CONNECT_TIME_MAX))
            .read_timeout(Some(ANSWER_TIME_MAX))
            .write_timeout(Some(ANSWER_TIME_MAX))
            .stmt_cache_size(0)
            .init(database.init.clone());
        let mut mysql = Mysql { connection: Conn::new(options)?, prepared: HashMap::new() };
        database.statements.iter().try_for_each(|sql| mysql.prepare(sql).map(|_| ()))?;
        Ok(mysql)
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, DatabaseError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.connection.prep(as_question_marks(sql))?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Client for Mysql {
    fn select(&mut self, sql: &str, key: &[u8], chosen: &mut Chosen) -> Result<(), DatabaseError> {
        let statement = self.prepare(sql)?;
        // More than one placeholder: the others are NULL.
        let value = |number| if number == 0 { Value::Bytes(key.to_vec()) } else { Value::NULL };
        let keys: Vec<_> = (0..statement.num_params()).map(value).collect();
        let keys = if keys.is_empty() { Params::Empty } else { Params::Positional(keys) };
        for row in self.connection.exec_iter(&statement, keys)? {
            let row = row?;
            if chosen.wants_next() && !row.is_empty() {
                chosen.keep(text(&row[0]));
            }
        }
        Ok(())
    }
}

/// A value as the client of MySQL shows it.
fn text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(bytes.clone()),
        other => Some(other.as_sql(true).trim_matches('\'').as_bytes().to_vec()),
    }
}

/// Reads `name=value` pairs, or a URL.
fn options(params: &str) -> Result<OptsBuilder, DatabaseError> {
    if params.starts_with("mysql://") {
        let options =
            Opts::from_url(params).map_err(|error| DatabaseError::Params(error.to_string()))?;
        return Ok(OptsBuilder::from_opts(options));
    }
    let mut options = OptsBuilder::new();
    let words = params.split([' ', '\r', '\n', '\t', ';', '|', ',']);
    for word in words.filter(|word| !word.is_empty()) {
        let bad = |what: &str| DatabaseError::Params(format!("{word}: {what}"));
        let (name, value) = word.split_once('=').ok_or_else(|| bad("name=value is expected"))?;
        let value = Some(value);
        options = match name {
            "host" => options.ip_or_hostname(value),
            "user" => options.user(value),
            "pass" => options.pass(value),
            "dbname" => options.db_name(value),
            "sock" => options.socket(value),
            "port" => {
                let port = value.and_then(|text| text.parse().ok());
                options.tcp_port(port.ok_or_else(|| bad("no number of a port"))?)
            }
            // How libmysql behaves; the timeouts here are milepost's own.
            "flags" | "fldsz" | "group" | "reconnect" | "connecttimeout" | "readtimeout"
            | "writetimeout" => options,
            _ => return Err(bad("known are host, port, sock, user, pass, dbname")),
        };
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_pairs_or_a_url() {
        for params in ["host=db,user=me,pass=x,dbname=d,port=3307", "mysql://me:x@db:3307/d"] {
            let options = Opts::from(options(params).unwrap());
            assert_eq!(options.get_ip_or_hostname(), "db", "{params}");
            assert_eq!((options.get_tcp_port(), options.get_db_name()), (3307, Some("d")));
            assert_eq!((options.get_user(), options.get_pass()), (Some("me"), Some("x")));
        }
        for (params, expected) in
            [("port=x", "no number"), ("hots=db", "known are"), ("db", "name=value")]
        {
            let error = options(params).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn values_are_texts() {
        for (value, expected) in [
            (Value::Int(-1), "-1"),
            (Value::UInt(7), "7"),
            (Value::Bytes(b"it's".to_vec()), "it's"),
            (Value::Double(1.5), "1.5"),
            (Value::Date(2026, 11, 21, 1, 2, 3, 0), "2026-11-21 01:02:03"),
        ] {
            assert_eq!(text(&value), Some(expected.as_bytes().to_vec()), "{value:?}");
        }
        assert_eq!(text(&Value::NULL), None);
    }
}

//! PostgreSQL.
//!
//! The library runs the connection with a runtime of its own, which cannot be done on the thread of a
//! worker, as that has one already: so a connection lives on a thread of its own.
//!
//! Source: APR-util 1.6 `dbd/apr_dbd_pgsql.c`, where `DBDParams` is what libpq calls a connection string
//! (keywords and values, or a URL).

use std::collections::HashMap;
use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use milepost_engine::Database;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{Format, FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};
use postgres::{Config, NoTls, Statement};

use super::{ANSWER_TIME_MAX, CONNECT_TIME_MAX, Chosen, Client, DatabaseError, placeholders};

/// A connection, seen from its worker.
pub(super) struct Pgsql {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
}

struct Question {
    sql: String,
    key: Vec<u8>,
}

type Answer = Result<Chosen, DatabaseError>;

impl Pgsql {
    /// Connects as `DBDParams` says.
    pub(super) fn connect(database: &Database) -> Result<Pgsql, DatabaseError> {
        let params = String::from_utf8_lossy(&database.params);
        let mut config: Config = params.parse()?;
        config.connect_timeout(CONNECT_TIME_MAX);
        let (init, statements) = (database.init.clone(), database.statements.clone());
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let work = move || match Session::open(&config, &init, &statements) {
            Ok(mut session) => {
                // Nobody listens any more: so nothing is to be done.
                let mut sent = answer.send(Ok(Chosen::default()));
                while let (Ok(()), Ok(Question { sql, key })) = (&sent, asked.recv()) {
                    sent = answer.send(session.select(&sql, &key));
                }
            }
            Err(error) => drop(answer.send(Err(error))),
        };
        let thread = thread::Builder::new().name("milepost-pgsql".to_owned());
        thread.spawn(work).map_err(DatabaseError::Thread)?;
        let pgsql = Pgsql { questions, answers };
        pgsql.answer(CONNECT_TIME_MAX + ANSWER_TIME_MAX)?;
        Ok(pgsql)
    }

    fn answer(&self, within: Duration) -> Answer {
        self.answers.recv_timeout(within).unwrap_or(Err(DatabaseError::Late))
    }
}

impl Client for Pgsql {
    fn select(&mut self, sql: &str, key: &[u8], chosen: &mut Chosen) -> Result<(), DatabaseError> {
        let question = Question { sql: sql.to_owned(), key: key.to_owned() };
        self.questions.send(question).map_err(|_| DatabaseError::Late)?;
        *chosen = self.answer(ANSWER_TIME_MAX)?;
        Ok(())
    }
}

/// A connection, on its thread.
struct Session {
    client: postgres::Client,
    prepared: HashMap<String, Statement>,
}

impl Session {
    fn open(
        config: &Config,
        init: &[String],
        statements: &[String],
    ) -> Result<Session, DatabaseError> {
        let mut client = config.connect(NoTls)?;
        for sql in init {
            client.batch_execute(sql)?;
        }
        let mut session = Session { client, prepared: HashMap::new() };
        statements.iter().try_for_each(|sql| session.prepare(sql).map(|_| ()))?;
        Ok(session)
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, DatabaseError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let marked = placeholders::replace(sql, |number| format!("${number}"));
        let statement = self.client.prepare(&marked)?;
        match statement.columns().first() {
            Some(column) if !is_readable(column.type_()) => {
                Err(DatabaseError::Column(column.type_().to_string()))
            }
            _ => {
                self.prepared.insert(sql.to_owned(), statement.clone());
                Ok(statement)
            }
        }
    }

    fn select(&mut self, sql: &str, key: &[u8]) -> Answer {
        let statement = self.prepare(sql)?;
        // More than one placeholder: the others are NULL.
        let keys = (0..statement.params().len()).map(|number| (number == 0).then_some(Key(key)));
        let mut rows = self.client.query_raw(&statement, keys.collect::<Vec<_>>())?;
        let mut chosen = Chosen::default();
        while let Some(row) = rows.next()? {
            if chosen.wants_next() && !row.is_empty() {
                let text: Option<Text> = row.try_get(0)?;
                chosen.keep(text.map(|Text(text)| text));
            }
        }
        Ok(chosen)
    }
}

/// A key is text, whatever the type of its placeholder: the server reads it.
#[derive(Debug)]
struct Key<'k>(&'k [u8]);

impl ToSql for Key<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// A value as psql shows it.
struct Text(Vec<u8>);

fn is_readable(kind: &Type) -> bool {
    match kind.kind() {
        Kind::Domain(inner) => is_readable(inner),
        Kind::Enum(_) => true,
        _ => {
            const READABLE: [Type; 10] = [
                Type::TEXT,
                Type::VARCHAR,
                Type::BPCHAR,
                Type::NAME,
                Type::UNKNOWN,
                Type::JSON,
                Type::BOOL,
                Type::INT2,
                Type::INT4,
                Type::INT8,
            ];
            READABLE.contains(kind) || kind.name() == "citext"
        }
    }
}

impl<'a> FromSql<'a> for Text {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Text, Box<dyn Error + Sync + Send>> {
        if let Kind::Domain(inner) = kind.kind() {
            return Text::from_sql(inner, raw);
        }
        Ok(Text(match *kind {
            Type::BOOL => if bool::from_sql(kind, raw)? { "t" } else { "f" }.into(),
            Type::INT2 => i16::from_sql(kind, raw)?.to_string().into(),
            Type::INT4 => i32::from_sql(kind, raw)?.to_string().into(),
            Type::INT8 => i64::from_sql(kind, raw)?.to_string().into(),
            _ => raw.to_vec(),
        }))
    }

    fn accepts(kind: &Type) -> bool {
        is_readable(kind)
    }
}

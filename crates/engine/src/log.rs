//! What the configuration says about logs: which requests are logged where, and in which format.
//!
//! Source: httpd 2.4.71 `modules/loggers/mod_log_config.c`, `log_pre_config`, `config_log_transaction`.

mod error_format;
mod error_log;
mod format;
mod level;

use std::path::PathBuf;
use std::sync::Arc;

pub use error_format::{ErrorFormat, ErrorItem, ErrorWhat, Missing};
pub use error_log::ErrorLogSettings;
use error_log::ErrorLogs;
pub use format::{LogFormat, LogItem, LogPort, LogTime, LogTraffic, LogUnit, LogWhat};
pub(crate) use level::{LogLevels, SectionLevels};

use crate::eval::Logged;
use crate::expr::Condition;

/// The format that needs no `LogFormat`.
const JSON: &[u8] = b"json";

/// The logs of a site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSettings {
    pub(crate) formats: Vec<NamedFormat>,
    pub(crate) logs: Vec<LogDraft>,
    pub(crate) errors: ErrorLogs,
    pub(crate) levels: LogLevels,
}

/// A `LogFormat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedFormat {
    pub(crate) server: usize,
    /// `None`: for `TransferLog`.
    pub(crate) name: Option<Box<[u8]>>,
    pub(crate) format: Arc<LogFormat>,
}

/// A log whose format may still be a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogDraft {
    pub(crate) server: usize,
    pub(crate) target: LogTarget,
    pub(crate) format: FormatChoice,
    pub(crate) condition: Option<LogCondition>,
    /// `GlobalLog`: written for virtual hosts that have logs of their own too.
    pub(crate) global: bool,
}

/// How a log names its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FormatChoice {
    /// What `LogFormat` without a name has said.
    Default,
    /// The name of a `LogFormat`, or else the format itself.
    Text(Box<[u8]>, Arc<LogFormat>),
}

/// One access log of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Where lines go.
    pub target: LogTarget,
    /// What stands in them.
    pub format: Arc<LogFormat>,
    /// Which requests are logged; `None`: all of them.
    pub condition: Option<LogCondition>,
}

/// Where a log goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// A file, to append to.
    File(PathBuf),
    /// A program that reads the log; for the shell.
    Program(String),
    /// The error log.
    Errors,
    /// The system's log, for errors alone.
    Syslog(Syslog),
}

/// How lines stand in the system's log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Syslog {
    /// The number of the facility, as RFC 5424 has it: 23 is `local7`.
    pub facility: u8,
    /// What stands for the program.
    pub tag: String,
}

/// Which requests are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogCondition {
    /// `env=NAME` and `env=!NAME`
    Variable {
        /// The variable.
        name: Box<[u8]>,
        /// Whether it must be set, or must not be.
        set: bool,
    },
    /// `expr=EXPRESSION`; [`crate::Site::log_wants`] asks it.
    Expression(LogExpression),
}

/// An expression over a request and its answer.
#[derive(Debug, Clone)]
pub struct LogExpression(pub(crate) Arc<Condition>);

impl PartialEq for LogExpression {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LogExpression {}

impl LogSettings {
    /// Whether any log shows a variable of the request, or depends on one.
    pub(crate) fn look_at_variables(&self) -> bool {
        let shows = |format: &LogFormat| {
            format.items.iter().any(|item| matches!(item.what, LogWhat::Variable(_)))
        };
        let depends = |log: &LogDraft| matches!(log.condition, Some(LogCondition::Variable { .. }));
        self.formats.iter().any(|named| shows(&named.format))
            || self.logs.iter().any(|log| {
                depends(log)
                    || matches!(&log.format, FormatChoice::Text(_, format) if shows(format))
            })
            || self.errors.look_at_variables()
    }

    /// The access logs of a server: its own, or else those of the main server; and the global ones.
    pub fn of_server(&self, server: usize) -> Vec<Log> {
        let own = self.logs.iter().any(|log| log.server == server && !log.global);
        let owner = if own { server } else { 0 };
        let logs = self.logs.iter().filter(|log| log.global || log.server == owner);
        logs.map(|log| Log {
            target: log.target.clone(),
            format: self.format(log),
            condition: log.condition.clone(),
        })
        .collect()
    }

    /// The error log of a server.
    pub fn error_log(&self, server: usize) -> ErrorLogSettings {
        self.errors.merged(server)
    }

    /// How many servers can have error logs of their own; those beyond have the main server's.
    pub fn error_log_servers(&self) -> usize {
        self.errors.servers()
    }

    /// Whether messages of the proxy about a request are written at this level, `error` being 3.
    pub fn proxy_says(&self, request: &Logged<'_>, level: u8) -> bool {
        level <= request.proxy_level().unwrap_or_else(|| self.levels.proxy(request.server()))
    }

    /// How much of mod_rewrite a server writes to the error log: 1 to 8 for `trace1` to `trace8`, or 0.
    pub fn rewrite_level(&self, server: usize) -> u8 {
        self.levels.rewrite(server)
    }

    /// Whether any server writes anything of mod_rewrite to the error log.
    pub fn traces_rewriting(&self) -> bool {
        self.levels.any_rewrite()
    }

    /// Whether there is an access log.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// How many servers can have logs of their own; those beyond have the main server's.
    pub fn servers(&self) -> usize {
        self.logs.iter().map(|log| log.server + 1).max().unwrap_or(0)
    }

    fn format(&self, log: &LogDraft) -> Arc<LogFormat> {
        let name = match &log.format {
            FormatChoice::Default => None,
            FormatChoice::Text(name, _) => Some(name),
        };
        let find = |server| {
            let of_server =
                |format: &&NamedFormat| format.server == server && format.name.as_ref() == name;
            // The last one of a name counts.
            self.formats.iter().rev().find(of_server).map(|format| Arc::clone(&format.format))
        };
        find(log.server).or_else(|| find(0)).unwrap_or_else(|| match &log.format {
            FormatChoice::Text(name, _) if **name == *JSON => Arc::new(LogFormat::json()),
            FormatChoice::Text(_, format) => Arc::clone(format),
            FormatChoice::Default => Arc::new(LogFormat::common()),
        })
    }
}

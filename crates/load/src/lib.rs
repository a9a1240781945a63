//! Load: when to send, what to time, what to check, what to report.
//!
//! [`run`] takes a [`Plan`] and returns a [`Report`]. Every answer is held against the
//! [`Expectation`] of its [`Target`]; a wrong answer is counted and never timed. No process, no file,
//! no terminal in here: only sockets, threads and the clock.

mod answer;
mod assertion;
mod base64;
mod browse;
mod chains;
mod check;
mod choice;
mod clock;
mod connection;
mod control;
mod deadlines;
mod driver;
pub mod dropin;
mod elsewhere;
mod endpoint;
mod failure;
mod form;
mod head_fields;
mod http2;
mod idle;
mod interval;
mod keep;
mod layered;
mod machine_time;
mod meter;
mod names;
mod observer;
mod origin;
mod pacer;
mod part;
mod patience;
mod pin;
mod pipeline;
mod plan;
mod rate;
mod record;
mod report;
mod route;
mod run;
mod schedule;
mod search;
mod sha256;
mod share;
#[cfg(test)]
mod simulation;
mod socket;
mod stream;
mod summary;
mod target;
mod template;
mod tls;
mod turns;
mod url;
mod url_list;
mod variables;
mod wire;
mod wire_form;
mod worker;

pub use assertion::{Assertion, AssertionError, Verdict};
pub use base64::basic_credentials;
pub use browse::{Browsing, Login, REDIRECTS_MAX_DEFAULT};
pub use control::{Control, Progress};
pub use endpoint::Endpoint;
pub use failure::{FailureKind, RunError};
pub use form::{FormPart, render_form};
pub use interval::{Counts, Interval};
pub use keep::{Keep, KeepContent};
pub use machine_time::MachineTime;
pub use names::Names;
pub use observer::{Answered, Exchanged, Observer, Outcome};
pub use pipeline::PIPELINE_MAX;
pub use plan::{
    Arrival, CONNECTIONS_DEFAULT, Io, Order, Persistence, Plan, Refusal, Spacing, Stop,
    TIMEOUT_DEFAULT, TimeoutFrom, Waiting, WarmUp,
};
pub use rate::{RATE_PER_SECOND_MAX, Rate, RateError, Stage};
pub use report::{
    AssertionOutcome, Bytes, ChainSummary, Connections, Distributions, Ended, ErrorCount,
    Generator, HopSummary, Linger, PlanSummary, Report, Times, TlsSession, TlsSummary,
    WarmUpCounts, Warning, WarningKind, WrongAnswer,
};
pub use route::{ConnectTo, Proxy, RouteError, Router};
pub use run::{run, run_observed, run_share};
pub use search::{Found, Purpose, SearchStep, find_max};
pub use sha256::Sha256;
pub use share::{Share, ShareResult};
pub use target::{Expectation, STATUS_WRONG_MIN, Scheme, Target, Tunnel, Version};
pub use template::TemplateError;
pub use tls::{CipherError, CipherList, Identity, Resumption, TlsError, TlsSettings, TlsVersion};
pub use url::{HttpUrl, UrlError, UrlErrorKind};
pub use url_list::{ListedUrl, UrlListError, UrlListErrorKind, parse_url_list};
pub use variables::{ROWS_MAX, Variables, VariablesError};

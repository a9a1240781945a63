//! What can go wrong: with one request (counted, by kind) and with a whole run (stops it).

use std::io;

use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::rate::RateError;
use crate::template::TemplateError;
use crate::tls::TlsError;

/// Why a request ended without a complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// Nobody listens at the address.
    ConnectRefused,
    /// No local port is free for another connection to the address.
    NoLocalPort,
    /// The handshake of TLS failed.
    TlsFailed,
    /// The proxy made no tunnel.
    TunnelRefused,
    /// Connecting failed in another way.
    ConnectFailed,
    /// The answer was not complete in time.
    TimedOut,
    /// The server closed a fresh connection without answering.
    ClosedBeforeAnswer,
    /// The server closed the connection inside a message head.
    ClosedInHead,
    /// The server closed the connection inside the content.
    ClosedInContent,
    /// The server reset the connection.
    Reset,
    /// The message head is not HTTP/1.
    MalformedHead,
    /// The message head is longer than the limit, or has too many fields.
    HeadTooLarge,
    /// The chunked framing is broken.
    MalformedChunk,
    /// More bytes came than the answer's framing allows.
    SurplusBytes,
    /// Reading or writing failed in another way.
    Io,
    /// A redirect led back to a request of the same chain.
    RedirectLoop,
    /// More redirects in a row than the plan follows.
    RedirectLimit,
    /// A redirect has no Location, or one that cannot be followed.
    RedirectUnfit,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::ConnectRefused,
        Self::NoLocalPort,
        Self::TlsFailed,
        Self::TunnelRefused,
        Self::ConnectFailed,
        Self::TimedOut,
        Self::ClosedBeforeAnswer,
        Self::ClosedInHead,
        Self::ClosedInContent,
        Self::Reset,
        Self::MalformedHead,
        Self::HeadTooLarge,
        Self::MalformedChunk,
        Self::SurplusBytes,
        Self::Io,
        Self::RedirectLoop,
        Self::RedirectLimit,
        Self::RedirectUnfit,
    ];

    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connect_refused",
            Self::NoLocalPort => "no_local_port",
            Self::TlsFailed => "tls_failed",
            Self::TunnelRefused => "tunnel_refused",
            Self::ConnectFailed => "connect_failed",
            Self::TimedOut => "timed_out",
            Self::ClosedBeforeAnswer => "closed_before_answer",
            Self::ClosedInHead => "closed_in_head",
            Self::ClosedInContent => "closed_in_content",
            Self::Reset => "reset",
            Self::MalformedHead => "malformed_head",
            Self::HeadTooLarge => "head_too_large",
            Self::MalformedChunk => "malformed_chunk",
            Self::SurplusBytes => "surplus_bytes",
            Self::Io => "io",
            Self::RedirectLoop => "redirect_loop",
            Self::RedirectLimit => "redirect_limit",
            Self::RedirectUnfit => "redirect_unfit",
        }
    }
}

/// Why a run could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is nothing to request.
    #[error("no target to request")]
    NoTarget,
    /// Without connections nothing can be sent.
    #[error("the number of {0} must be at least 1")]
    Zero(&'static str),
    /// A rate that no schedule can keep.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// Each process needs a connection.
    #[error("{processes} processes need as many connections, and there are {connections}")]
    Share {
        /// Processes.
        processes: usize,
        /// Connections of the whole run.
        connections: usize,
    },
    /// A share that is none.
    #[error("the jitter must be a share from 0 to 1, not {0}")]
    Jitter(f64),
    /// Something that HTTP/2 has not.
    #[error("HTTP/2 does not go with {0}")]
    Http2(&'static str),
    /// Something that pipelines have not.
    #[error("pipelines do not go with {0}")]
    Pipeline(&'static str),
    /// Weights without a meaning.
    #[error("weights are numbers from 1, and all together not more than {0}")]
    Weights(u64),
    /// A request is no template.
    #[error("{uri}: {source}")]
    Template {
        /// Target URI.
        uri: String,
        /// What is wrong.
        source: TemplateError,
    },
    /// A part of the target cannot be sent as it is.
    #[error("{uri}: {what} cannot be sent in a request: {value:?}")]
    Unsendable {
        /// Target URI.
        uri: String,
        /// Which part.
        what: &'static str,
        /// The part.
        value: String,
    },
    /// The process may not open as many files.
    #[error("{needed} open files are needed and the limit is {limit}; try `ulimit -n {needed}`")]
    FileLimit {
        /// Files needed.
        needed: u64,
        /// Hard limit of the process.
        limit: u64,
    },
    /// Not one connection could be opened.
    #[error("cannot connect to {address}")]
    Connect {
        /// Address that was tried.
        address: Endpoint,
        /// The last failure.
        source: io::Error,
    },
    /// io_uring was asked for and cannot be used.
    #[error("io_uring cannot be used here: {0}")]
    Uring(String),
    /// A processor that the process may not use.
    #[error("processor {cpu} is not one that this process may use: {}", numbers(allowed))]
    Cpu {
        /// Its number.
        cpu: usize,
        /// Those that it may use.
        allowed: Vec<usize>,
    },
    /// TLS cannot be spoken as asked.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A worker could not be set up, or lost its poll or timer.
    #[error("cannot run a worker")]
    Worker(#[source] io::Error),
}

fn numbers(list: &[usize]) -> String {
    list.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for kind in FailureKind::ALL {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{}\"", kind.name()));
        }
    }
}

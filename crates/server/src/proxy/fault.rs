//! Why a request that is passed on has no good end: what is logged, what is answered, whose it is.
//!
//! Source: httpd 2.4.71 `modules/proxy/mod_proxy_http.c`; RFC 9110 sections 15.6.3 to 15.6.5.

use std::io;

use milepost_http::response;

use super::client::ContentError;
use super::pool::PoolError;
use crate::limits::PROXY_HEAD_BYTES_MAX;

/// Why an exchange has no end, or no good one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error("{0}")]
    Content(#[from] ContentError),
    #[error("the connection was closed before the first byte of the answer")]
    Closed,
    #[error("the connection broke before the first byte of the answer: {0}")]
    Broken(io::Error),
    #[error("the answer was cut off in its head")]
    HeadCut,
    #[error("the answer cannot be understood: {0}")]
    Head(#[from] response::HeadError),
    #[error("the head of the answer is larger than {PROXY_HEAD_BYTES_MAX} bytes")]
    HeadTooLarge,
    #[error("it sent too many answers before the final one")]
    TooManyInterim,
    #[error("it answered with a protocol that nobody asked for")]
    NotAskedFor,
    #[error(
        "it sent no answer within {seconds:.1} s (its timeout: timeout=, ProxyTimeout or Timeout)"
    )]
    Late { seconds: f64 },
    #[error(
        "it took no more of the request for {seconds:.1} s (its timeout: timeout=, ProxyTimeout or Timeout)"
    )]
    LateSending { seconds: f64 },
    #[error("it did not ask for the content within {seconds:.1} s (ping=)")]
    LatePing { seconds: f64 },
    #[error(
        "it sent nothing more of its answer for {seconds:.1} s (its timeout: timeout=, ProxyTimeout or Timeout)"
    )]
    LateContent { seconds: f64 },
    #[error("its answer was cut off after {bytes} bytes of content")]
    ContentCut { bytes: u64 },
    #[error("the content of its answer cannot be understood")]
    ContentMalformed,
    #[error("content that was kept cannot be read: {0}")]
    Held(io::Error),
    #[error("the client has gone or takes nothing: {0}")]
    ClientGone(io::Error),
    #[error("the URL names no server that can be asked")]
    NoAddress,
    #[error("no member of the balancer can be asked")]
    NoMember,
}

impl Fault {
    /// The status to answer with.
    pub(crate) fn status(&self) -> u16 {
        match self {
            // As in httpd.
            Fault::Pool(
                PoolError::Name { .. } | PoolError::Tls { .. } | PoolError::NoTls { .. },
            ) => 500,
            Fault::Pool(_) | Fault::NoMember | Fault::LatePing { .. } => 503,
            Fault::Content(error) => error.status(),
            Fault::Late { .. } | Fault::LateSending { .. } => 504,
            Fault::Held(_) | Fault::NoAddress => 500,
            _ => 502,
        }
    }

    /// The number that the system has for what is behind it.
    pub(crate) fn system_error(&self) -> Option<i32> {
        match self {
            Fault::Pool(error) => error.system_error(),
            Fault::Broken(error) | Fault::Held(error) | Fault::ClientGone(error) => {
                error.raw_os_error()
            }
            _ => None,
        }
    }

    /// Whether the connection had been closed before the request could have been read: then another one
    /// may do.
    pub(super) fn is_stale(&self) -> bool {
        matches!(self, Fault::Closed | Fault::Broken(_) | Fault::LatePing { .. })
    }

    /// What is said of it to a client: whose fault it was, and after how long, but nothing of where. `None`: what
    /// the status says is enough.
    pub(crate) fn sentence(&self) -> Option<String> {
        let backend = |what: &str| Some(format!("The server behind this one {what}."));
        let seconds = |seconds: &f64| format!("within {seconds:.1} s");
        match self {
            Fault::Pool(PoolError::Connect { .. }) => backend("cannot be reached"),
            Fault::Pool(PoolError::ConnectTimeout { seconds: limit, .. }) => {
                backend(&format!("could not be reached {}", seconds(limit)))
            }
            Fault::Pool(PoolError::Name { .. }) => backend("has a name without an address"),
            Fault::Pool(PoolError::Exhausted { .. }) => {
                backend("is busy: all connections to it are in use")
            }
            Fault::Pool(PoolError::LeftAlone { seconds, .. }) => {
                backend(&format!("failed a moment ago, and is asked again in {seconds} s"))
            }
            Fault::Pool(PoolError::Tls { .. } | PoolError::NoTls { .. }) => {
                backend("cannot be spoken to by TLS")
            }
            Fault::NoMember => {
                Some("None of the servers behind this one can be asked just now.".to_owned())
            }
            Fault::Late { seconds: limit } => {
                backend(&format!("sent no answer {}", seconds(limit)))
            }
            Fault::LateSending { seconds: limit } => {
                backend(&format!("took no more of the request {}", seconds(limit)))
            }
            Fault::LatePing { seconds: limit } => {
                backend(&format!("did not ask for the content of the request {}", seconds(limit)))
            }
            Fault::Closed | Fault::Broken(_) | Fault::HeadCut => {
                backend("closed the connection before it had answered")
            }
            Fault::Head(_) | Fault::HeadTooLarge | Fault::TooManyInterim | Fault::NotAskedFor => {
                backend("gave an answer that cannot be understood")
            }
            Fault::Content(ContentError::Late { seconds }) => {
                Some(format!("Nothing more of the content of the request came within {seconds} s."))
            }
            Fault::Content(_)
            | Fault::LateContent { .. }
            | Fault::ContentCut { .. }
            | Fault::ContentMalformed
            | Fault::Held(_)
            | Fault::ClientGone(_)
            | Fault::NoAddress => None,
        }
    }

    /// Whether it is the backend's.
    pub(crate) fn is_of_backend(&self) -> bool {
        !matches!(self, Fault::Content(_) | Fault::ClientGone(_) | Fault::Held(_))
    }
}

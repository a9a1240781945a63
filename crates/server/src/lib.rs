//! Listeners, connections, timeouts and files: asks the engine, answers the client.
//!
//! Below [`Respond`] everything is about connections and nothing about redirects; above it, the other
//! way round. [`Server`] binds and runs; each of its workers is a thread that shares nothing with the
//! others.

mod buffer;
mod clock;
mod connection;
mod deadline;
mod deferred;
mod descriptors;
mod endpoint;
mod error_log;
mod files;
mod helpers;
mod http2;
mod inherited;
mod limits;
mod listener;
mod log;
mod metrics;
mod notify;
mod outside;
mod page;
mod process;
mod proxy;
mod reply;
mod respond;
mod server;
mod site;
mod socket;
mod status;
mod tls;
mod watch;
mod worker;

pub use descriptors::raise_descriptor_limit;
pub use endpoint::Endpoint;
pub use error_log::{ErrorLog, note, report, report_diagnostic, report_error};
pub use helpers::{HelperError, Helpers};
pub use http2::Http2Limits;
pub use inherited::Inherited;
pub use listener::BindError;
pub use log::{LogError, Logs};
pub use metrics::{Metrics, Scrape};
pub use notify::Manager;
pub use outside::{FileSystem, LastLook};
pub use process::{PidFile, UserError, become_user};
pub use reply::Reply;
pub use respond::{Answered, Peer, Respond};
pub use server::{ReloadError, Reloader, Running, ServeError, Server, Stopper};
pub use site::SiteResponder;
pub use tls::{Tls, TlsError, TlsSession};
pub use watch::{WATCH_INTERVAL, Watched};

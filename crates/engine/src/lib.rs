//! Apache directives to a compiled [`Site`], and a request to the [`Decision`] that Apache would take.
//!
//! The engine does no I/O, reads no clock and starts no thread. What it must know of the world (file
//! contents while loading, file kinds and the time while deciding) comes in through [`Outside`].
//!
//! Source: httpd 2.4.71, `server/request.c`, `modules/mappers/mod_alias.c`, `mod_rewrite.c`, `mod_dir.c`.

mod build;
mod decision;
mod diagnostic;
mod eval;
mod expr;
mod helper;
mod htaccess;
mod index;
mod lint;
mod log;
mod map;
mod number;
mod outside;
mod pattern;
mod pool;
mod program;
mod protocol;
mod proxy;
mod request;
mod response;
mod serving;
mod settings;
mod site;
mod status;
mod tls;
mod trace;
mod wildcard;
mod words;

pub use build::{LoadOptions, Purpose};
pub use decision::{Decision, Outcome, Rule};
pub use diagnostic::{Diagnostic, Severity};
pub use eval::{Logged, ProxiedAnswer, Scratch, Suspended};
pub use helper::{Database, Driver, MapProgram};
pub use htaccess::Htaccess;
pub use index::Lookup;
pub use log::{
    ErrorFormat, ErrorItem, ErrorLogSettings, ErrorWhat, Log, LogCondition, LogExpression,
    LogFormat, LogItem, LogPort, LogSettings, LogTarget, LogTime, LogTraffic, LogUnit, LogWhat,
    Missing, Syslog,
};
pub use outside::{FileKind, Outside, Stamp};
pub use protocol::{Protocol, Protocols};
pub use proxy::{
    Backend, Balancer, BalancerMethod, ChangedFields, Member, MemberStatus, Proxied, ProxyTo,
    Upgrade, Via,
};
pub use request::{Fields, NoFields, Request, Scheme, Version};
pub use response::AddedFields;
pub use serving::{EtagParts, RangeLimit, Serving};
pub use settings::{Listen, OwnConnections, ReadTimeout, Settings};
pub use site::{Loaded, Site, SourceFile};
pub use tls::{
    Tls, TlsBackend, TlsCertificate, TlsClient, TlsExports, TlsFault, TlsPart, TlsRevocation,
    TlsServer, TlsSettings, TlsVariables, TlsVerify, TlsVersions,
};
pub use trace::{Directive, Event, RewriteNote, Step, rewrite_notes};

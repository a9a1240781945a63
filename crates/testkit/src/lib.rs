//! Proves that milepost gives Apache's own answers: cases, real httpd, comparison. For tests only.
//!
//! A [`Case`] is a configuration, a tree of files, requests and the answers to them. An [`Engine`]
//! answers cases: [`Judge`] is real httpd, [`Milepost`] is the engine of this workspace, by scan or
//! by index, and [`Served`] is its server, asked through a socket. [`spec::run`] compares an engine with the corpus in `spec/`; [`bless`] writes the
//! corpus's expectations from real httpd.

pub mod answer;
pub mod backend;
pub mod beside;
pub mod bless;
pub mod bytes;
pub mod case;
pub mod client;
pub mod corpus;
pub mod differential;
pub mod directory;
pub mod disk;
pub mod engine;
pub mod generate;
pub mod httpd;
pub mod judge;
pub mod known;
pub mod milepost;
pub mod near;
pub mod sample;
pub mod served;
pub mod shrink;
pub mod spec;
pub mod stage;
pub mod values;
mod world;

pub use answer::{Answer, Expected};
pub use case::{Ask, Case, Exchange, Scope};
pub use engine::{Engine, Verdict};
pub use judge::Judge;
pub use milepost::Milepost;
pub use served::Served;

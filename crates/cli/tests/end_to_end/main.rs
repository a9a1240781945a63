//! The product from the outside: the `milepost` binary beside real Apache, real clients, a real browser.
//!
//! What one command does by itself is tested in `../serve.rs`, `../load.rs` and `../lab.rs`; here stands
//! what needs two of them, or a program that is not ours. A program that is missing fails the test that
//! needs it: `make test` installs them.

mod apache;
mod browse;
mod certificates;
mod clients;
mod documented;
mod error_log;
mod failures;
mod help;
mod http2;
mod killed;
mod manual;
mod measured;
mod packaging;
mod page;
mod proxied;
mod requests;
mod support;
mod tls;
mod web_socket;

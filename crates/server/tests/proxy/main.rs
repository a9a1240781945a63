//! The reverse proxy, with backends that do what a test says: well, badly, and not at all.

mod backends;
mod content;
mod failures;
mod fields;
mod http2;
mod support;

//! The connection layer over real sockets, with a responder that knows nothing of configurations.

mod bounds;
mod content;
mod lane;
mod limits;
mod malformed;
mod persistence;
mod pipelining;
mod stop;
mod support;

//! Runs against a peer that answers from a script, well or badly.

mod ab;
mod answers;
mod chain;
mod desk;
mod failures;
mod http_load;
mod intervals;
mod misbehaviour;
mod misbehaviour_of_servers;
mod names;
mod observer;
mod open_loop;
mod peer;
mod persistence;
mod pipeline;
mod runs;
mod siege;
mod slots;
mod sockets;
mod stop;
mod tls;

use milepost_load::Io;

use crate::runs::{kinds, load, plan, target};

/// How sockets are reached: tests/epoll runs the same tests the other way.
const IO: Io = Io::Auto;

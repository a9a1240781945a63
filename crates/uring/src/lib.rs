//! Stream sockets through io_uring: many operations for one system call, behind a safe interface.
//!
//! A [`Ring`] owns its sockets, the memory that the kernel writes to and the memory that it reads
//! from, and gives none of it back before the kernel is done with it. That is what makes the interface
//! safe: whatever is called in whatever order, no memory is shared that somebody else may use.
//!
//! One thread uses a ring; the first that waits with it. Answers are received by multishot operations
//! into buffers that all sockets share, so a request costs one send and nothing for the receive, and
//! all requests of a turn go to the kernel with the wait for their answers.
//!
//! Linux only, 6.1 or newer ([`Ring::new`] says why not if something is missing); the crate is empty
//! elsewhere.
//!
//! Source: io_uring(7), io_uring_setup(2), io_uring_enter(2), io_uring_register(2);
//! io_uring_prep_recv_multishot(3).
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "shares memory with the kernel")]

mod buffers;
mod ring;

pub use ring::{Event, Ring};

//! The drop-ins beside the programs that they stand in for: one parser reads both outputs.
//!
//! Each command line runs twice, with the original from the system and with milepost, against real
//! Apache and real nginx. Labels and their order, counts and exit codes are the same; times are not
//! compared. A program that is missing fails the test that needs it: `make test` installs them.

mod ab;
mod http2;
mod http_load;
mod login;
mod program;
mod server;
mod servers;
mod siege;
mod tls;
mod verbatim;

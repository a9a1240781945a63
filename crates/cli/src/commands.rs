//! One module per command: its arguments, what they mean, and the run.

pub(crate) mod check;
mod configuration;
pub(crate) mod drop_in;
pub(crate) mod explain;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod serve;

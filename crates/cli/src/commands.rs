//! One module per command: its arguments, what they mean, and the run.

pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod serve;

//! Histograms, quantiles, intervals and comparisons.
//!
//! Numbers in, numbers out: no file, no clock, no thread. What is random takes a seed, so that a
//! report can be made again from its raw samples and comes out the same.

pub mod bootstrap;
pub mod compare;
pub mod hdr_log;
pub mod histogram;
mod normal;
pub mod quantile;

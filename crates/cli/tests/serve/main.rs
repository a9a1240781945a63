//! `milepost serve` from the outside: what it says, what it answers, and how it ends.

mod logs;
mod process;
mod reload;
mod start;
mod support;

//! Load: when to send, what to time, what to check, what to report.

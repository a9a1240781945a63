//! Experiments on real servers: raw samples, plots and the report.

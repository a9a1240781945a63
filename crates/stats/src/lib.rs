//! Histograms, quantiles, intervals and comparisons.

//! PCRE2 as Apache uses it: byte patterns, JIT, limits.

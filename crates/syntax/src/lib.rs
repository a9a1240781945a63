//! Apache configuration text to directives with positions, and back.
//!
//! The tree is what the text says, not what it means: `${NAME}` stands unexpanded, `<IfModule>` is
//! undecided, any name is a directive. Parsing never stops at an error: it returns the tree and what
//! is wrong with it.
//!
//! Source: httpd 2.4.71 `server/util.c` `ap_cfg_getline`, `ap_getword_conf`; `server/config.c`
//! `ap_build_config_sub`; `modules/mappers/mod_rewrite.c` `parseargline`.

mod lexer;
mod print;
mod tree;
mod words;

pub use print::print;
pub use tree::{Fault, FaultKind, Kind, Node, SOURCE_BYTES_MAX, Text, Tree};
pub use words::{RawWords, Word, Words};

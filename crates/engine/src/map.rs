//! The tables behind `RewriteMap`: files of keys and values, read whole and kept as one hash table.
//!
//! Whatever its format, a file becomes a [`Table`]: keys and values side by side in one buffer, and where each
//! pair stands. So a lookup costs the same in all of them, and a file of a million entries costs their bytes
//! and some thirty more for each.

mod berkeley;
mod dbm;
mod file;
mod gdbm;
mod sdbm;
mod table;
mod text;

pub(crate) use dbm::{DbmError, DbmType};
pub(crate) use file::{FileMap, Form, ReadError, Version};
pub(crate) use table::Table;

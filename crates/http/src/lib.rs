//! Request-targets, target URIs, fields and HTTP/1 heads: bytes in, values out.

pub mod bytes;
pub mod chunked;
pub mod method;
pub mod path;
pub mod request;
pub mod response;
pub mod uri;

//! The statuses that httpd knows; any other becomes a 500.

/// Whether httpd has a status line for the code.
///
/// Source: httpd 2.4.71 `modules/http/http_protocol.c`, `status_lines`.
pub(crate) fn is_known(code: u16) -> bool {
    matches!(code,
        100..=103 | 200..=208 | 226 | 300..=305 | 307 | 308 | 400..=417 | 421..=424 | 426 | 428 | 429 | 431 | 451
        | 500..=508 | 510 | 511)
}

//! The methods that httpd knows by name; any other is not implemented (501).

/// Whether httpd has a number for the method.
///
/// Source: httpd 2.4.71 `modules/http/http_protocol.c`, `lookup_builtin_method`.
pub fn is_known(method: &[u8]) -> bool {
    const KNOWN: &[&[u8]] = &[
        b"BASELINE-CONTROL",
        b"CHECKIN",
        b"CHECKOUT",
        b"CONNECT",
        b"COPY",
        b"DELETE",
        b"GET",
        b"HEAD",
        b"LABEL",
        b"LOCK",
        b"MERGE",
        b"MKACTIVITY",
        b"MKCOL",
        b"MKWORKSPACE",
        b"MOVE",
        b"OPTIONS",
        b"PATCH",
        b"POST",
        b"PROPFIND",
        b"PROPPATCH",
        b"PUT",
        b"REPORT",
        b"TRACE",
        b"UNCHECKOUT",
        b"UNLOCK",
        b"UPDATE",
        b"VERSION-CONTROL",
    ];
    KNOWN.contains(&method)
}

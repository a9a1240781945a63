//! Heads that cannot be read: the documents of their errors, and the fields that directives set.

use crate::support::{shown, start};

#[test]
fn errors_of_heads_have_documents_and_fields() {
    let long = "a".repeat(300);
    let requests: Vec<String> = [
        "BAD \x01\r\n\r\n",
        &format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
        &format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"),
        &format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(9)),
        "GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n",
    ]
    .map(str::to_owned)
    .to_vec();
    let requests: Vec<&[u8]> = requests.iter().map(String::as_bytes).collect();
    for documents in [
        "",
        "ErrorDocument 400 \"<!DOCTYPE bad\"\nErrorDocument 414 /e.html\nErrorDocument 408 \"<!DOCTYPE late\"\n",
        "ErrorDocument 400 http://t/bad\nErrorDocument 414 /none\nErrorDocument 408 /e.html\n",
        "ErrorDocument 400 /e.html\nRedirect /e.html http://t/moved\n",
    ] {
        let configuration = format!(
            "LimitRequestLine 200\nLimitRequestFieldSize 200\nLimitRequestFields 5\n\
             RequestReadTimeout header=1\nHeader set X-Set success\nHeader always set Vary always\n{documents}"
        );
        start(&configuration, &[("e.html", "document\n")]).compare_bytes(&requests, shown);
    }
}

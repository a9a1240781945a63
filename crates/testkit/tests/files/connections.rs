//! Limits and persistence that virtual hosts have of their own. A head is read before its host is known, so
//! the limits of heads are those of the first host of the address; the rest goes by the host.

use crate::support::start;

const HOSTS: &str = "KeepAliveTimeout 5\nMaxKeepAliveRequests 100\nLimitRequestLine 300\nLimitRequestFields 20\nLimitRequestFieldSize 300\n\
    <VirtualHost *>\nServerName first.test\nLimitRequestLine 200\nLimitRequestFields 5\n\
    LimitRequestFieldSize 200\nMaxKeepAliveRequests 3\n</VirtualHost>\n\
    <VirtualHost *>\nServerName off.test\nLimitRequestLine 1000\nLimitRequestFields 30\n\
    LimitRequestFieldSize 1000\nKeepAlive Off\n</VirtualHost>\n\
    <VirtualHost *>\nServerName third.test\nLimitRequestLine 1000\nKeepAliveTimeout 7\n\
    MaxKeepAliveRequests 2\n</VirtualHost>\n\
    <VirtualHost *>\nServerName plain.test\n</VirtualHost>\n";

/// The lines of all answers that say what became of the connection.
fn of_connection(head: &str, content: &str) -> String {
    let lines = head.lines().chain(content.lines());
    let names = ["HTTP/1.1 ", "Keep-Alive:", "Connection:"];
    let wanted = lines.filter(|line| names.iter().any(|name| line.starts_with(name)));
    // Phrases are each one's own.
    let shown = wanted.map(|line| if line.starts_with("HTTP") { &line[..12] } else { line });
    shown.collect::<Vec<_>>().join(" | ")
}

#[test]
fn virtual_hosts_have_their_own() {
    let mut requests = Vec::new();
    for host in ["first", "off", "third", "plain"] {
        let (long, end) = ("a".repeat(250), format!("Host: {host}.test\r\nConnection: close\r\n"));
        let asked =
            format!("GET /a.txt HTTP/1.1\r\nHost: {host}.test\r\nConnection: keep-alive\r\n\r\n");
        requests.extend([
            format!("GET /{long} HTTP/1.1\r\n{end}\r\n"),
            format!("GET /a.txt HTTP/1.1\r\n{end}X: {long}\r\n\r\n"),
            format!("GET /a.txt HTTP/1.1\r\n{end}{}\r\n", "A: b\r\n".repeat(9)),
            format!("{asked}{asked}{asked}GET /a.txt HTTP/1.1\r\n{end}\r\n"),
            // What the last request was for does not matter to the head of the next one.
            format!("{asked}GET /{long} HTTP/1.1\r\n{end}\r\n"),
            format!("{asked}GET /a.txt HTTP/1.1\r\nHost: off.test\r\n\r\n"),
        ]);
    }
    let requests: Vec<&[u8]> = requests.iter().map(String::as_bytes).collect();
    start(HOSTS, &[("a.txt", "success\n")]).compare_bytes(&requests, of_connection);
}

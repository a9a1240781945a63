//! ab's report as HTML tables (`-w`).

use std::fmt::Write as _;

use super::Outcome;
use super::text::{Columns, millis, rounded};
use crate::dropin::sample::Sample;

/// The table.
pub(super) fn report(outcome: &Outcome<'_>) -> String {
    let Outcome { options, taken, report, .. } = outcome;
    let [table, row, cell] = &options.attributes;
    let mut out = format!("\n\n<table {table}>\n");
    let mut line = |label: &str, value: &dyn std::fmt::Display| {
        let value = escaped(&value.to_string());
        let _ = writeln!(
            out,
            "<tr {row}><th colspan=2 {cell}>{label}:</th><td colspan=2 {cell}>{value}</td></tr>"
        );
    };
    line("Server Software", &taken.server);
    line("Server Hostname", &options.url.host());
    line("Server Port", &options.url.port());
    line("Document Path", &options.url.request_target());
    if options.accepts_any_length {
        line("Document Length", &"Variable");
    } else {
        let bytes = taken.document_bytes.unwrap_or_default();
        line("Document Length", &format_args!("{bytes} bytes"));
    }
    line("Concurrency Level", &options.concurrency);
    line("Time taken for tests", &format_args!("{:.3} seconds", report.seconds));
    line("Complete requests", &taken.done());
    line("Failed requests", &taken.failed.sum());
    if taken.not_2xx > 0 {
        line("Non-2xx responses", &taken.not_2xx);
    }
    if options.keep_alive {
        line("Keep-Alive requests", &taken.kept_alive);
    }
    line("Total transferred", &format_args!("{} bytes", report.bytes.received));
    if options.body.is_some() {
        line("Total body sent", &report.bytes.sent);
    }
    line("HTML transferred", &format_args!("{} bytes", report.bytes.content));
    if report.seconds > 0.0 {
        let rate = taken.done() as f64 / report.seconds;
        line("Requests per second", &format_args!("{rate:.2}"));
        let received = report.bytes.received as f64 / 1_024.0 / report.seconds;
        line("Transfer rate", &format_args!("{received:.2} kb/s received"));
    }
    if let Some(times) = Columns::of(&taken.rows) {
        let _ = writeln!(out, "<tr {row}><th {cell} colspan=4>Connection Times (ms)</th></tr>");
        let _ = writeln!(
            out,
            "<tr {row}><th {cell}>&nbsp;</th> <th {cell}>min</th>   <th {cell}>avg</th>   <th {cell}>max</th></tr>"
        );
        let mut line = |label: &str, column: &Sample| {
            let figures = [millis(column.min()), rounded(column.mean()), millis(column.max())];
            let cells = figures.map(|figure| format!("<td {cell}>{figure:5}</td>")).concat();
            let _ = writeln!(out, "<tr {row}><th {cell}>{label}</th>{cells}</tr>");
        };
        line("Connect:", &times.connect);
        line("Processing:", &times.processing);
        line("Total:", &times.total);
    }
    out.push_str("</table>\n");
    out
}

/// What a server or a user wrote must not become part of the page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

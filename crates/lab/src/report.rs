//! The report: one HTML file that needs nothing else, neither scripts nor fonts nor pictures.
//!
//! Every number and name in it comes from [`Results`]; `maud` escapes all of them. It is read on a
//! telephone, on paper, by night and by ear: the plots carry titles and descriptions, and every
//! number of a plot also stands in a table.

mod plot;

use std::fs;
use std::io;
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::analysis::{Answered, Cell, Figures, answers};
use crate::experiment::Metric;
use crate::layout::{
    Row, View, at, cell_at, columns, connections, control_text, count, listed, machine,
    metric_title, number, ratio_text, rows, size, summary, target_title, targets_on,
    unused_rules_view, version, views, whole, wrong_groups,
};
use crate::results::{RESULT_FILE, Results};
use crate::server::ServerKind;
use crate::site::write_file;

/// The file in the result directory.
pub const REPORT_FILE: &str = "report.html";

const STYLE: &str = include_str!("report/style.css");

/// Writes [`REPORT_FILE`] into `directory`.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write(results: &Results, directory: &Path) -> io::Result<()> {
    if !directory.is_dir() {
        fs::create_dir_all(directory)?;
    }
    write_file(&directory.join(REPORT_FILE), &render(results))
}

/// Writes the whole page.
pub fn render(results: &Results) -> String {
    let answered = answers(results);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (results.title) " – milepost lab" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(results))
                main {
                    (in_short(&answered))
                    (figures(results))
                    (ratios(results, &answered))
                    (wrong(results))
                    (all_cells(results))
                    (how(results))
                }
                footer {
                    p {
                        "Written by milepost " (results.environment.milepost_version)
                        ". The raw samples are in " code { (RESULT_FILE) } " beside this file."
                    }
                }
            }
        }
    };
    page.into_string()
}

fn head(results: &Results) -> Markup {
    let servers = columns(results);
    html! {
        header {
            p.kicker { "milepost lab · " (results.experiment) }
            h1 { (results.title) }
            p.question { (results.question) }
            ul.facts {
                li { (whole(results.rules.into())) " rules" }
                @for server in servers {
                    li { span.dot.(server.name()) {} (server.title()) " " (version(results, server)) }
                }
                li { (size(results)) }
            }
            @if !results.warnings.is_empty() || !results.missing_servers.is_empty() {
                ul.doubts {
                    @for warning in &results.warnings {
                        li { strong { "Doubt: " } (warning.message) "; " (warning.advice) "." }
                    }
                    @for missing in &results.missing_servers {
                        li { strong { "Not measured: " } (missing.server.title()) " (" (missing.reason) ")." }
                    }
                }
            }
        }
    }
}

fn in_short(answered: &[Answered<'_>]) -> Markup {
    html! {
        @if !answered.is_empty() {
            section.short aria-label="In short" {
                ul {
                    @for answered in answered {
                        li { strong { (answered.question.title) } ": " (summary(answered)) "." }
                    }
                }
            }
        }
    }
}

fn figures(results: &Results) -> Markup {
    html! {
        section.figures {
            @for (at, view) in views(results).into_iter().chain(unused_rules_view(results)).enumerate() {
                figure {
                    figcaption { (caption(results, view)) }
                    (plot::bars(results, view, at))
                }
            }
        }
        p.note {
            "Bars end at the median of " (count(results.rounds, "round")) "; the thin line is its 95 % "
            "interval. The scale is logarithmic: one step is a factor of ten. A method with a wrong "
            "answer has no bar, because how fast a wrong answer comes means nothing."
        }
    }
}

fn caption(results: &Results, view: View) -> Markup {
    let (what, hint) = match view.metric {
        Metric::TimePerRequestUs => ("Time per request", "µs, less is better"),
        Metric::ServerCpuUsPerRequest => ("Server CPU per request", "µs, less is better"),
        Metric::RequestsPerSecond => ("Requests per second", "more is better"),
    };
    html! {
        strong { (what) }
        span { (target_title(view.target, results.rules)) ", " (count(view.connections, "connection")) " · " (hint) }
    }
}

fn ratios(results: &Results, answered: &[Answered<'_>]) -> Markup {
    html! {
        @if !answered.is_empty() {
            section {
                h2 { "What the ratios say" }
                p.note {
                    "Each ratio is taken within a round and the median over rounds is shown with its "
                    "95 % bootstrap interval. A verdict needs an interval that excludes 1 and an effect "
                    "greater than that of the control, which compares one configuration with itself."
                }
                div.ratios {
                    @for (at, answered) in answered.iter().enumerate() {
                        (ratio(results, answered, at))
                    }
                }
            }
        }
    }
}

fn ratio(results: &Results, answered: &Answered<'_>, at: usize) -> Markup {
    let question = answered.question;
    html! {
        article {
            h3 { (question.title) }
            p.meta {
                (metric_title(question.metric)) " against " code { (question.against) } ", "
                (count(question.connections, "connection")) " · " (control_text(answered))
            }
            (plot::forest(answered, at))
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "alternative" }
                            th.number scope="col" { "ratio" }
                            th scope="col" { "verdict" }
                        }
                    }
                    tbody {
                        @for answer in &answered.answers {
                            @let (ratio, verdict) = ratio_text(answered, answer);
                            tr {
                                th scope="row" { (method_title(results, answer.of)) }
                                td.number { (ratio) }
                                td { (verdict) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The verdicts of one question share their server, so the method is enough.
fn method_title(results: &Results, alternative: &str) -> String {
    results
        .alternative(alternative)
        .map_or_else(|| alternative.to_owned(), |found| found.method_title.clone())
}

fn wrong(results: &Results) -> Markup {
    let groups = wrong_groups(results);
    html! {
        @if !groups.is_empty() || !results.error_examples.is_empty() {
            section {
                h2 { "Wrong answers" }
                @for group in &groups {
                    article.wrong {
                        h3 { (group.title) }
                        p {
                            "On " (listed(group.servers.iter().map(|server| server.title())))
                            ", for the target " (listed(group.targets.iter().map(|target| target.name())))
                            ". "
                            @if group.expected {
                                "The experiment expects this: it is a finding, not an accident."
                            } @else {
                                "The experiment does not expect this."
                            }
                        }
                        dl.example {
                            dt { "asked" } dd { code { (group.example.url) } }
                            dt { "expected" } dd { code { (group.example.expected) } }
                            dt { "got" } dd { code.bad { (group.example.got) } }
                        }
                    }
                }
                @for example in &results.error_examples {
                    article.wrong {
                        h3 { (example.alternative) ": requests without a complete answer" }
                        p {
                            (target_title(example.target, results.rules)) ", "
                            (count(example.connections, "connection")) ": " (example.message)
                        }
                    }
                }
            }
        }
    }
}

/// Every cell, in one table for each number of connections.
fn all_cells(results: &Results) -> Markup {
    let connections = connections(results);
    html! {
        section {
            h2 { "Every cell" }
            p.note {
                "Medians over rounds, by target. Time is from one request to the next on a connection, "
                "p99 the 99th percentile of service time, CPU that of the server; all in microseconds."
            }
            @for connections in &connections {
                @let speed = if *connections == 1 { Column::Time } else { Column::Rate };
                details open {
                    summary { (count(*connections, "connection")) }
                    div.scroll {
                        (cells(results, *connections, &[speed, Column::Cpu, Column::ServiceP99]))
                    }
                }
            }
            @for connections in &connections {
                details {
                    summary { "User and system CPU, " (count(*connections, "connection")) }
                    p.note {
                        "The sum is exact to the nanosecond. The split comes from clock ticks, "
                        "a sample, and is good to some per cent at best."
                    }
                    div.scroll { (cells(results, *connections, &[Column::User, Column::System])) }
                }
            }
        }
    }
}

/// What a group of columns shows for each target.
#[derive(Clone, Copy, Debug)]
enum Column {
    Time,
    Rate,
    Cpu,
    ServiceP99,
    User,
    System,
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Rate => "requests per second",
            Self::Cpu => "CPU",
            Self::ServiceP99 => "p99",
            Self::User => "user",
            Self::System => "system",
        }
    }

    fn of(self, figures: &Figures) -> f64 {
        match self {
            Self::Time => figures.time_per_request_us.median,
            Self::Rate => figures.requests_per_second.median,
            Self::Cpu => figures.server_cpu_us.median,
            Self::ServiceP99 => figures.service_us_p99,
            Self::User => figures.server_cpu_user_us,
            Self::System => figures.server_cpu_system_us,
        }
    }
}

fn cells(results: &Results, connections: u32, groups: &[Column]) -> Markup {
    let targets = targets_on(results, connections);
    html! {
        table.cells {
            thead {
                tr {
                    th scope="col" rowspan="2" { "method" }
                    th scope="col" rowspan="2" { "server" }
                    @for group in groups {
                        th.group scope="colgroup" colspan=(targets.len()) { (group.title()) }
                    }
                }
                tr {
                    @for _ in groups {
                        @for (at, target) in targets.iter().enumerate() {
                            th.number.first[at == 0] scope="col" { (target.name()) }
                        }
                    }
                }
            }
            @for row in rows(results) {
                @let servers = servers_of(results, row);
                tbody {
                    @for (line, server) in servers.iter().copied().enumerate() {
                        tr {
                            @if line == 0 {
                                th scope="rowgroup" rowspan=(servers.len()) { (row.title) }
                            }
                            th.plain scope="row" { (server.title()) }
                            @for group in groups {
                                @for (at, target) in targets.iter().enumerate() {
                                    (figure_cell(*group, at == 0, &cell_at(results, row, server, *target, connections)))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn servers_of(results: &Results, row: Row<'_>) -> Vec<ServerKind> {
    columns(results).into_iter().filter(|server| at(results, row, *server).is_some()).collect()
}

fn figure_cell(column: Column, first: bool, cell: &Cell) -> Markup {
    html! {
        @match cell {
            Cell::Absent => { td.number.first[first] { "–" } }
            Cell::Wrong { .. } => { td.number.bad.first[first] { "wrong" } }
            Cell::Failed { .. } => { td.number.bad.first[first] { "failed" } }
            Cell::Measured(figures) => { td.number.first[first] { (number(column.of(figures))) } }
        }
    }
}

fn how(results: &Results) -> Markup {
    let environment = &results.environment;
    let commit = environment.milepost_commit.as_ref().map(|commit| format!(", commit {commit}"));
    html! {
        section {
            h2 { "How it was measured" }
            dl.how {
                dt { "Command" } dd { code { (environment.command.join(" ")) } }
                dt { "Seed" } dd { (results.seed) " (order of the trials, intervals)" }
                dt { "Date" } dd { (environment.date) }
                dt { "Machine" } dd { (machine(environment)) }
                @if let Some(governor) = &environment.governor {
                    dt { "Frequency" } dd { "governor " (governor) }
                }
                dt { "Before" } dd { "load average " (format!("{:.2}", environment.load_average)) }
                @if let Some(steal) = environment.steal_percent {
                    dt { "Stolen" } dd { (format!("{steal:.1}")) " % of the time, by the host" }
                }
                dt { "Program" } dd {
                    "milepost " (environment.milepost_version) (commit.unwrap_or_default())
                }
                dt { "Load" } dd {
                    "closed loop on persistent connections, one request at a time on each; fresh "
                    "connections for every trial; one generator thread; "
                    (results.warm_up_ms) " ms of warm-up before each trial"
                }
                dt { "CPU" } dd {
                    "all processes and threads of the server, in nanoseconds from the scheduler’s "
                    "account; the split into user and system from clock ticks; opening and closing "
                    "the connections is in it"
                }
            }
            h3 { "The servers" }
            p.note {
                "Started by the lab from configurations of their own, which are kept in this directory. "
                "No access log, no limit on the requests of a connection. milepost and nginx use one "
                "worker, Apache one process with the event MPM, whose threads may use every core."
            }
            div.scroll {
                table.servers {
                    thead {
                        tr {
                            th scope="col" { "alternative" }
                            th.number scope="col" { "rules" }
                            th scope="col" { "command" }
                            th scope="col" { "rules in" }
                        }
                    }
                    tbody {
                        @for alternative in &results.alternatives {
                            tr {
                                th scope="row" {
                                    (alternative.name)
                                    @if alternative.control_of.is_some() { " (A/A)" }
                                }
                                td.number { (whole(alternative.rules.into())) }
                                td { code { (alternative.command.join(" ")) } }
                                td {
                                    @for file in &alternative.rule_files {
                                        code { (file) } " "
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn names_from_outside_are_escaped() {
        let mut results = sample::results();
        results.title = "<script>alert(1)</script>".to_owned();
        results.wrong_answer_examples[0].got = "301 Location: \"><img src=x>".to_owned();
        results.alternatives[1].method_title = "a & <b>".to_owned();
        let page = render(&results);
        assert!(!page.contains("<script"), "a script of somebody else");
        assert!(!page.contains("<img"), "an element of somebody else");
        assert!(!page.contains("<b>"), "an element of somebody else");
        assert!(page.contains("&amp; &lt;escaped&gt;"));
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = render(&sample::results());
        for outside in ["src=", "url(", "@import", "<link", "href=", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn every_plot_can_be_heard() {
        let page = render(&sample::results());
        let plots = page.matches("<svg").count();
        assert_eq!(plots, 4 + 2, "four figures and two questions");
        assert_eq!(page.matches("role=\"img\"").count(), plots);
        assert_eq!(page.matches("<desc id=").count(), plots);
    }

    #[test]
    fn wrong_answers_have_an_example_and_no_bar() {
        let page = render(&sample::results());
        assert!(page.contains("http://www.example.org/new/10000"));
        // Three of the figures are of the target that it answers wrongly.
        assert_eq!(page.matches("wrong answers</text>").count(), 3);
    }
}

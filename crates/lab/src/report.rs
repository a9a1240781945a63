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

use crate::analysis::{Answered, Cell, Figures, answers, cell};
use crate::experiment::Metric;
use crate::layout::{
    View, at, columns, connections, control_text, count, listed, machine, metric_title, number,
    ratio_text, rows, size, target_title, targets, version, views, wrong_groups,
};
use crate::results::{RESULT_FILE, Results};
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
                li { (number(results.rules.into())) " rules" }
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

fn figures(results: &Results) -> Markup {
    html! {
        section.figures {
            @for (at, view) in views(results).into_iter().enumerate() {
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
        Metric::ServerCpuUsPerRequest => {
            ("Server CPU per request", "µs, user + system, less is better")
        }
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
    html! {
        section {
            h2 { "Every cell" }
            p.note {
                "Medians over rounds: microseconds from one request to the next, the 99th percentile "
                "of service time, microseconds of the server’s CPU (user + system), requests per second."
            }
            @for connections in connections(results) {
                details open[connections == 1] {
                    summary { (count(connections, "connection")) }
                    div.scroll { (cells(results, connections)) }
                }
            }
        }
    }
}

fn cells(results: &Results, connections: u32) -> Markup {
    let targets = targets(results);
    html! {
        table.cells {
            thead {
                tr {
                    th scope="col" { "method" }
                    th scope="col" { "server" }
                    th scope="col" { "target" }
                    th.number scope="col" { "time" }
                    th.number scope="col" { "p99" }
                    th.number scope="col" { "CPU" }
                    th.number scope="col" { "requests/s" }
                }
            }
            @for row in rows(results) {
                tbody {
                    @for server in columns(results) {
                        @if let Some(alternative) = at(results, row, server) {
                            @for target in &targets {
                                (cell_row(
                                    [row.title, server.title(), target.name()],
                                    &cell(results, &alternative.name, *target, connections),
                                ))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell_row([method, server, target]: [&str; 3], cell: &Cell) -> Markup {
    let names = html! { th scope="row" { (method) } td { (server) } td { (target) } };
    match cell {
        Cell::Absent => html! {},
        Cell::Wrong { wrong_answers, requests } => html! {
            tr {
                (names)
                td.bad colspan="4" {
                    "WRONG: " (number(*wrong_answers as f64)) " of " (number(*requests as f64)) " answers"
                }
            }
        },
        Cell::Failed { errors } => html! {
            tr { (names) td.bad colspan="4" { "FAILED: " (number(*errors as f64)) " requests" } }
        },
        Cell::Measured(figures) => html! { tr { (names) (numbers(figures)) } },
    }
}

fn numbers(figures: &Figures) -> Markup {
    html! {
        td.number { (number(figures.time_per_request_us.median)) }
        td.number { (number(figures.service_us_p99)) }
        td.number {
            (number(figures.server_cpu_user_us)) " + " (number(figures.server_cpu_system_us))
        }
        td.number { (number(figures.requests_per_second.median)) }
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
                                td.number { (number(alternative.rules.into())) }
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
        assert_eq!(plots, 3 + 2, "three figures and two questions");
        assert_eq!(page.matches("role=\"img\"").count(), plots);
        assert_eq!(page.matches("<desc id=").count(), plots);
    }

    #[test]
    fn wrong_answers_have_an_example_and_no_bar() {
        let page = render(&sample::results());
        assert!(page.contains("http://www.example.org/new/10000"));
        assert!(page.contains("WRONG: "));
        // Three figures, one alternative with wrong answers in each.
        assert_eq!(page.matches("wrong answers</text>").count(), 3);
    }
}

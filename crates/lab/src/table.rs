//! What the terminal shows of a result: the tables, the ratios, the wrong answers, the doubts.
//!
//! Plain text that fits a hundred columns. The rows are methods and the columns servers, as in the
//! publications that this measures again; a method that answers wrongly has no number.

use std::fmt::Write;

use crate::analysis::{Answered, answers};
use crate::layout::{
    View, cell_at, columns, control_text, count, listed, machine, metric_title, ratio_text, rows,
    size, target_title, version, views, whole, wrong_groups,
};
use crate::results::Results;

/// Columns between two columns of a table.
const GAP: &str = "   ";

/// Writes `results` for a terminal.
pub fn render(results: &Results) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}, {} rules", results.title, whole(results.rules.into()));
    let _ = writeln!(text, "{}", machine(&results.environment));
    let _ = writeln!(text, "{}", size(results));
    let _ = writeln!(text, "seed {}, {}", results.seed, results.environment.date);
    for view in views(results) {
        text.push('\n');
        table(&mut text, results, view);
    }
    for answered in answers(results) {
        text.push('\n');
        ratios(&mut text, &answered);
    }
    wrong(&mut text, results);
    for example in &results.error_examples {
        let _ = writeln!(
            text,
            "\nFAILED: {}, {}, {}: {}",
            example.alternative,
            target_title(example.target, results.rules),
            count(example.connections, "connection"),
            example.message,
        );
    }
    doubts(&mut text, results);
    text
}

fn table(text: &mut String, results: &Results, view: View) {
    let columns = columns(results);
    let rows = rows(results);
    let head = columns.iter().map(|server| {
        // The version's first word: distributions append their own name.
        let version = version(results, *server).split(' ').next().unwrap_or_default();
        format!("{} {version}", server.title())
    });
    let mut cells: Vec<Vec<String>> = vec![std::iter::once(String::new()).chain(head).collect()];
    for row in rows {
        let figures = columns.iter().map(|server| {
            view.text(&cell_at(results, row, *server, view.target, view.connections))
        });
        cells.push(std::iter::once(format!("  {}", row.title)).chain(figures).collect());
    }
    let _ = writeln!(text, "{}", view.title(results));
    aligned(text, &cells);
}

/// Writes a table: the first column to the left, the others to the right.
fn aligned(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join(GAP);
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn ratios(text: &mut String, answered: &Answered<'_>) {
    let question = answered.question;
    let _ = writeln!(text, "{}", question.title);
    let _ = writeln!(
        text,
        "  {} against {}, target {}, {}; {}",
        metric_title(question.metric),
        question.against,
        question.target.name(),
        count(question.connections, "connection"),
        control_text(answered),
    );
    let rows = answered.answers.iter().map(|answer| {
        let (ratio, verdict) = ratio_text(answered, answer);
        [format!("    {}", answer.of), ratio, verdict]
    });
    let rows: Vec<[String; 3]> = rows.collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let (name, ratio) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
    for row in &rows {
        let _ = writeln!(text, "{:<name$}{GAP}{:<ratio$}{GAP}{}", row[0], row[1], row[2]);
    }
}

fn wrong(text: &mut String, results: &Results) {
    for group in wrong_groups(results) {
        let expected = if group.expected { " (as the experiment expects)" } else { "" };
        let _ = writeln!(
            text,
            "\nWRONG ANSWERS{expected}: {}\n  on {}, target {}",
            group.title,
            listed(group.servers.iter().map(|server| server.title())),
            listed(group.targets.iter().map(|target| target.name())),
        );
        let example = group.example;
        let _ = writeln!(text, "  {}", example.url);
        let _ = writeln!(text, "    expected {}", example.expected);
        let _ = writeln!(text, "    got      {}", example.got);
    }
}

fn doubts(text: &mut String, results: &Results) {
    if results.missing_servers.is_empty() && results.warnings.is_empty() {
        return;
    }
    text.push('\n');
    for missing in &results.missing_servers {
        let _ = writeln!(text, "not measured: {} ({})", missing.server.title(), missing.reason);
    }
    for warning in &results.warnings {
        let _ = writeln!(text, "doubt: {}; {}", warning.message, warning.advice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_terminal_shows_this() {
        insta::assert_snapshot!(render(&sample::results()));
    }

    #[test]
    fn a_wrong_answer_has_no_time() {
        let text = render(&sample::results());
        let row = text.lines().find(|line| line.starts_with("  RedirectMatch /test/N "));
        let cells: Vec<&str> = row.expect("a row").split_whitespace().skip(2).collect();
        assert_eq!(cells, ["–", "WRONG", "–"]);
    }
}

//! The commands in `README.md` and `docs/` work, and print what stands below them.
//!
//! `check`, `explain` and `lab list` give the same output anywhere, so they are run and compared.
//! Commands whose output is a measurement, or that serve, are at least understood: all their options
//! exist, which `--help` behind them tells.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::milepost;

/// Where the manual says that the repository lies.
const ROOT_IN_TEXT: &str = "/src/milepost";

/// Output that is left out.
const ELLIPSIS: &str = "…";

#[test]
fn printed_output_is_what_is_printed() {
    let (mut compared, mut understood) = (0, 0);
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for (command, output) in commands(&text) {
            let Some(words) = words(&command) else { continue };
            let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
            match arguments[..] {
                ["check" | "explain", ..] | ["lab", "list", ..] if !output.is_empty() => {
                    let here = root();
                    let moved = arguments.iter().map(|word| match word.strip_prefix("examples/") {
                        Some(_) => format!("{here}/{word}"),
                        None => (*word).to_owned(),
                    });
                    let moved: Vec<String> = moved.collect();
                    let finished = milepost(&moved.iter().map(String::as_str).collect::<Vec<_>>());
                    let printed = finished.stdout.replace(&here, ROOT_IN_TEXT);
                    assert_shows(&output, &printed, &format!("{}: {command}", page.display()));
                    compared += 1;
                }
                _ => {
                    let finished = milepost(&[&arguments[..], &["--help"]].concat());
                    let place = format!("{}: {command}", page.display());
                    assert_eq!(finished.code, Some(0), "{place}: {}", finished.stderr);
                    understood += 1;
                }
            }
        }
    }
    assert!(compared >= 2 && understood >= 8, "{compared} compared, {understood} understood");
}

/// Every link between pages leads somewhere.
#[test]
fn links_lead_somewhere() {
    let mut links = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            let file =
                page.parent().expect("a folder").join(target.split('#').next().expect("one"));
            assert!(file.exists(), "{}: {target}", page.display());
            links += 1;
        }
    }
    assert!(links > 10, "only {links} links");
}

fn root() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository").display().to_string()
}

/// Returns the pages of the manual, those at the top of the repository among them.
fn pages() -> Vec<PathBuf> {
    let root = PathBuf::from(root());
    let folders = [root.clone(), root.join("docs")];
    let entries =
        folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder").flatten());
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// Returns the commands that a page shows, each with the output below it: in fenced blocks after `$ `,
/// and indented without output.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut in_console = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_console) {
            found.push((command.to_owned(), String::new()));
        } else if in_console {
            let Some((command, output)) = found.last_mut() else { continue };
            match command.strip_suffix('\\') {
                Some(start) => *command = format!("{}{}", start, line.trim_start()),
                None => *output += &format!("{line}\n"),
            }
        } else if let Some(command) = line.strip_prefix("    ").filter(|l| l.contains("milepost "))
        {
            found.push((command.to_owned(), String::new()));
        }
    }
    found
}

/// Splits a command of milepost as a shell does, without its name; `None` for other commands.
fn words(command: &str) -> Option<Vec<String>> {
    let arguments = ["milepost ", "target/release/milepost "]
        .iter()
        .find_map(|name| command.strip_prefix(name))?;
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for character in arguments.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(character),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    Some(words)
}

/// Compares output with what was printed; a line with an ellipsis stands for any lines.
#[track_caller]
fn assert_shows(output: &str, printed: &str, place: &str) {
    let mut rest = printed;
    for (number, part) in output.split(&format!("{ELLIPSIS}\n")).enumerate() {
        let at = rest.find(part).unwrap_or_else(|| panic!("{place} prints:\n{printed}"));
        assert!(number > 0 || at == 0, "{place} begins with:\n{printed}");
        rest = &rest[at + part.len()..];
    }
    assert!(
        rest.is_empty() || output.ends_with(&format!("{ELLIPSIS}\n")),
        "{place} goes on:\n{rest}"
    );
}

//! Every dependency comes under a licence that `deny.toml` allows, and from the registry.
//!
//! `cargo deny check` reads the same list and looks at more; this needs nothing but cargo.

use std::fs;

use crate::metadata::{metadata, packages, root, text};

#[test]
fn every_licence_is_allowed() {
    let allowed = allowed();
    let host = host();
    let metadata = metadata(&["--filter-platform", &host]);
    assert!(packages(&metadata).len() > 50, "cargo names all dependencies");
    for package in packages(&metadata) {
        let (name, licence) = (text(package, "name"), text(package, "license"));
        assert!(is_satisfied(licence, &allowed), "{name} is under {licence}: see deny.toml");
        let source = package["source"].as_str();
        // Ours have no source.
        assert!(source.is_none_or(|source| source.starts_with("registry+")), "{name}: {source:?}");
    }
}

#[test]
fn expressions_are_read_as_spdx_has_them() {
    let allowed = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("MIT OR GPL-3.0 AND GPL-2.0", true),
        ("(MIT OR GPL-3.0) AND GPL-2.0", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
        ("", false),
        ("(MIT", false),
        ("MIT MIT", false),
    ] {
        assert_eq!(is_satisfied(expression, &allowed), expected, "{expression:?}");
    }
}

/// Reads the list of `deny.toml`.
#[track_caller]
fn allowed() -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let table: toml::Table = text.parse().expect("TOML");
    let allowed = table["licenses"]["allow"].as_array().expect("licenses.allow").iter();
    allowed.map(|licence| licence.as_str().expect("a text").to_owned()).collect()
}

/// Returns the platform that is built for; packages of others are not downloaded.
#[track_caller]
fn host() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc).arg("-vV").output().expect("rustc runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc names its host").to_owned()
}

/// Whether the allowed licences are enough for an expression. AND binds closer than OR; `/` is an old
/// way to write OR.
fn is_satisfied(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    either(&mut rest, allowed).is_some_and(|satisfied| satisfied && rest.is_empty())
}

fn either(words: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut satisfied = both(words, allowed)?;
    while words.first() == Some(&"OR") {
        *words = &words[1..];
        satisfied |= both(words, allowed)?;
    }
    Some(satisfied)
}

fn both(words: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut satisfied = one(words, allowed)?;
    while words.first() == Some(&"AND") {
        *words = &words[1..];
        satisfied &= one(words, allowed)?;
    }
    Some(satisfied)
}

fn one(words: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let (&first, rest) = words.split_first()?;
    *words = rest;
    if first == "(" {
        let satisfied = either(words, allowed)?;
        let (&last, rest) = words.split_first()?;
        *words = rest;
        return (last == ")").then_some(satisfied);
    }
    let mut licence = first.to_owned();
    if let [exception, rest @ ..] = *words
        && *exception == "WITH"
    {
        let (&name, rest) = rest.split_first()?;
        licence = format!("{first} WITH {name}");
        *words = rest;
    }
    Some(allowed.contains(&licence))
}

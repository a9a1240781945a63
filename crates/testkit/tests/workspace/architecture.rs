//! Dependencies point one way, and the crates that decide and compute do nothing else.
//!
//! `http`, `syntax`, `stats`, `pcre` and `engine` do no I/O, read no clock, start no thread and are not
//! async. So a decision is a function of configuration and request, it can be tested by the million,
//! and `explain` tells what `serve` does. What the engine needs of the world comes in through one trait.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::metadata::{metadata, packages, root, text};

/// The crates, by folder, and the crates of the workspace that each may use.
const ARROWS: [(&str, &[&str]); 11] = [
    ("cli", &["engine", "lab", "load", "server", "stats"]),
    ("server", &["engine", "http"]),
    ("engine", &["http", "pcre", "syntax"]),
    ("lab", &["load", "stats"]),
    ("load", &["http", "stats", "uring"]),
    ("http", &[]),
    ("pcre", &[]),
    ("stats", &[]),
    ("syntax", &[]),
    ("testkit", &["engine", "server"]),
    ("uring", &[]),
];

/// Only tests use it.
const TESTS_ONLY: &str = "testkit";

/// The pure crates, and what each may use that is not ours. None of these does I/O either; whoever adds
/// one has looked.
const PURE: [(&str, &[&str]); 5] = [
    (
        "engine",
        &["aho-corasick", "foldhash", "hashbrown", "md5", "memchr", "sha1_smol", "thiserror"],
    ),
    ("http", &["httparse", "memchr", "thiserror"]),
    ("pcre", &["pcre2-sys", "thiserror"]),
    ("stats", &["fastrand", "hdrhistogram"]),
    ("syntax", &["memchr"]),
];

/// What a pure crate does not say. A word with `::` behind it is a module or type in use, whatever its path.
const FORBIDDEN: [&str; 26] = [
    "File::",
    "Instant",
    "OpenOptions",
    "SystemTime",
    "TcpListener",
    "TcpStream",
    "ToSocketAddrs",
    "UdpSocket",
    "UnixListener",
    "UnixStream",
    "async",
    "await",
    "env::",
    "eprint!",
    "eprintln!",
    "fs::",
    "mio",
    "print!",
    "println!",
    "process::",
    "rustix",
    "stderr()",
    "stdin()",
    "stdout()",
    "thread::",
    "tokio",
];

/// The crates that do not forbid `unsafe`: one calls C, one shares memory with the kernel.
const UNSAFE: [&str; 2] = ["pcre", "uring"];

#[test]
fn dependencies_point_one_way() {
    let metadata = metadata(&["--no-deps"]);
    let mut seen = BTreeSet::new();
    for package in packages(&metadata) {
        let folder = folder(text(package, "manifest_path"));
        let (_, allowed) = ARROWS
            .iter()
            .find(|(name, _)| *name == folder)
            .unwrap_or_else(|| panic!("crates/{folder} is not in the picture: ARCHITECTURE.md"));
        seen.insert(folder);
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let Some(path) = dependency["path"].as_str() else { continue };
            let to = path.rsplit('/').next().unwrap_or_default();
            let for_tests = dependency["kind"] == "dev";
            assert!(for_tests || to != TESTS_ONLY, "{folder} ships {TESTS_ONLY}");
            assert!(
                allowed.contains(&to) || (for_tests && to == TESTS_ONLY),
                "{folder} may not depend on {to}"
            );
        }
    }
    let all: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(seen, all, "the picture has what is there");
}

#[test]
fn pure_crates_use_only_what_is_pure() {
    let metadata = metadata(&["--no-deps"]);
    for (folder_name, allowed) in PURE {
        let mut packages = packages(&metadata).iter();
        let package =
            packages.find(|package| folder(text(package, "manifest_path")) == folder_name);
        let package = package.unwrap_or_else(|| panic!("no crates/{folder_name}"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = text(dependency, "name");
            let ships = dependency["kind"] != "dev";
            let ours = name.starts_with("milepost-");
            assert!(!ships || ours || allowed.contains(&name), "{folder_name} uses {name}");
        }
    }
}

#[test]
fn pure_crates_touch_nothing_outside() {
    let mut files = 0;
    for (folder, _) in PURE {
        visit(&root().join("crates").join(folder).join("src"), &mut |path| {
            files += 1;
            let source = fs::read_to_string(path).expect("a source file");
            for (number, line) in source.lines().enumerate() {
                let found = forbidden(line);
                assert_eq!(found, None, "{}:{}: {line}", path.display(), number + 1);
            }
        });
    }
    assert!(files > 50, "only {files} files were read");
}

#[test]
fn every_dependency_says_why() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let section = page.split_once("\n## Dependencies\n").expect("the section").1;
    let (table, others) = section.split_once("\nFor tests only: ").expect("the two parts");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let rows = rows.filter(|names| *names != "crate").flat_map(|names| names.split(", "));
    let named = others.split("\n\n").next().unwrap_or_default().split('`').skip(1).step_by(2);
    let documented: BTreeSet<&str> = rows.chain(named).collect();

    let metadata = metadata(&["--no-deps"]);
    let dependencies = packages(&metadata).iter().flat_map(|package| {
        let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
        dependencies.filter(|dependency| dependency["path"].is_null())
    });
    let used: BTreeSet<&str> = dependencies.map(|found| text(found, "name")).collect();
    assert_eq!(documented, used, "what stands in ARCHITECTURE.md, and what is used");
}

#[test]
fn forbidden_words_are_found() {
    for (line, expected) in [
        ("let now = std::time::Instant::now();", Some("Instant")),
        ("use std::{fs, io};", None),
        ("    fs::read(path)", Some("fs::")),
        ("std::env::var(\"HOME\")", Some("env::")),
        ("use std::net::{IpAddr, TcpStream};", Some("TcpStream")),
        ("pub(crate) async fn run() {", Some("async")),
        ("println!(\"a\")", Some("println!")),
        ("io::stderr().write_all(b\"a\")", Some("stderr()")),
        ("    b\"file\" => File::open(path),", Some("File::")),
        // A word inside another, in a comment, or in a text is none.
        ("let offsets = subprocess::count();", None),
        ("Outcome::File { path } => path,", None),
        ("/// Like `std::fs::read`.", None),
        ("let a = 1; // no async here", None),
        ("b\"env\" => \"goes to stderr\",", None),
    ] {
        assert_eq!(forbidden(line), expected, "{line}");
    }
}

#[test]
fn unsafe_code_is_forbidden() {
    let manifest = |path: &Path| -> toml::Table {
        let text = fs::read_to_string(path).expect("a manifest");
        text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let workspace = manifest(&root().join("Cargo.toml"));
    assert_eq!(workspace["workspace"]["lints"]["rust"]["unsafe_code"].as_str(), Some("forbid"));
    for (folder, _) in ARROWS.into_iter().filter(|(folder, _)| !UNSAFE.contains(folder)) {
        let manifest = manifest(&root().join("crates").join(folder).join("Cargo.toml"));
        let inherits = manifest["lints"].get("workspace").and_then(toml::Value::as_bool);
        assert_eq!(inherits, Some(true), "crates/{folder} takes the lints of the workspace");
    }
}

/// Returns the first forbidden word of a line, without what stands in a comment.
fn forbidden(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    FORBIDDEN.into_iter().find(|word| {
        code.match_indices(word).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            let after = code[at + word.len()..].chars().next();
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            !before.is_some_and(is_part)
                && (word.ends_with([':', '!', ')']) || !after.is_some_and(is_part))
        })
    })
}

/// Returns the folder that a manifest stands in.
fn folder(manifest: &str) -> &str {
    let mut parts = manifest.rsplit('/').skip(1);
    parts.next().unwrap_or_default()
}

/// Shows every Rust file below `directory`.
fn visit(directory: &Path, show: &mut impl FnMut(&Path)) {
    let entries = fs::read_dir(directory).expect("a source folder");
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            visit(&path, show);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            show(&path);
        }
    }
}

//! The workspace as cargo sees it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Returns the root of the workspace.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the root of the workspace")
}

/// Runs `cargo metadata` without the network; whoever runs a test has all packages already.
#[track_caller]
pub(crate) fn metadata(options: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(options)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the packages in what `cargo metadata` printed.
#[track_caller]
pub(crate) fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().expect("packages")
}

/// Returns a text of a package.
#[track_caller]
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_else(|| panic!("no {name} in {object}"))
}

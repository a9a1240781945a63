//! milepost as a server of the lab: this very program, in Apache's language.

use std::path::Path;

use super::{Server, ServerKind, Setup, apache, output};

/// Asks `program` for its version.
pub(super) fn find(kind: ServerKind, program: &Path) -> Result<Server, String> {
    let text = output(program, &["--version"])?;
    let version = text.lines().next().and_then(|line| line.strip_prefix("milepost "));
    let version = version.ok_or_else(|| format!("{} is not milepost", program.display()))?;
    Ok(Server {
        kind,
        program: program.to_owned(),
        version: version.trim().to_owned(),
        modules: apache::Modules::default(),
    })
}

/// Writes the configuration: what Apache's says, less what only Apache needs.
pub(super) fn configuration(setup: &Setup<'_>) -> String {
    apache::common(setup)
}

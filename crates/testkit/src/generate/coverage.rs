//! What random configurations hold, and what they never hold.

use std::collections::BTreeMap;
use std::fmt;

use crate::case::Case;
use crate::values;

/// The modules whose directives decide where a request goes.
const MODULES: [&str; 16] = [
    "core.c",
    "mod_access_compat.c",
    "mod_alias.c",
    "mod_auth_basic.c",
    "mod_authn_core.c",
    "mod_authz_core.c",
    "mod_dir.c",
    "mod_env.c",
    "mod_headers.c",
    "mod_macro.c",
    "mod_mime.c",
    "mod_negotiation.c",
    "mod_proxy.c",
    "mod_rewrite.c",
    "mod_setenvif.c",
    "mod_version.c",
];
/// The flags of `RewriteRule`, in their short form where they have one.
const FLAGS: [&str; 30] = [
    "B",
    "BCTLS",
    "BNE",
    "BNP",
    "C",
    "CO",
    "DPI",
    "E",
    "END",
    "F",
    "G",
    "H",
    "L",
    "N",
    "NC",
    "NE",
    "NS",
    "P",
    "PT",
    "QSA",
    "QSD",
    "QSL",
    "R",
    "S",
    "T",
    "UNC",
    "UNSAFEALLOW3F",
    "UNSAFEPREFIXSTAT",
    "LAST",
    "PROXY",
];
/// Variables of conditions and substitutions.
const VARIABLES: [&str; 39] = [
    "API_VERSION",
    "CONN_REMOTE_ADDR",
    "CONTEXT_DOCUMENT_ROOT",
    "CONTEXT_PREFIX",
    "DOCUMENT_ROOT",
    "ENV",
    "HTTP",
    "HTTPS",
    "HTTP_ACCEPT",
    "HTTP_COOKIE",
    "HTTP_FORWARDED",
    "HTTP_HOST",
    "HTTP_REFERER",
    "HTTP_USER_AGENT",
    "IPV6",
    "IS_SUBREQ",
    "LA-F",
    "LA-U",
    "PATH_INFO",
    "QUERY_STRING",
    "REMOTE_ADDR",
    "REMOTE_HOST",
    "REMOTE_IDENT",
    "REMOTE_USER",
    "REQUEST_FILENAME",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_STATUS",
    "REQUEST_URI",
    "SCRIPT_FILENAME",
    "SCRIPT_GROUP",
    "SCRIPT_USER",
    "SERVER_ADDR",
    "SERVER_ADMIN",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SSL",
    "THE_REQUEST",
];

/// How often each directive, flag and variable was met.
#[derive(Debug, Default)]
pub struct Coverage {
    directives: BTreeMap<String, usize>,
    flags: BTreeMap<String, usize>,
    variables: BTreeMap<String, usize>,
}

impl Coverage {
    /// Counts what stands in `case`.
    pub fn add(&mut self, case: &Case) {
        let is_config = |path: &str| path.ends_with(".conf") || path.ends_with(".htaccess");
        let files = case.files.iter().filter(|(path, _)| is_config(path)).map(|(_, text)| text);
        for line in files.chain([&case.config]).flat_map(|text| text.lines()) {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        let count = |which: &mut BTreeMap<String, usize>, name: &str| {
            *which.entry(name.to_ascii_lowercase()).or_default() += 1;
        };
        let name = line.split_whitespace().next().unwrap_or_default().trim_end_matches('>');
        count(&mut self.directives, name);
        for piece in line.split("%{").skip(1) {
            count(&mut self.variables, piece.split(['}', ':']).next().unwrap_or_default());
        }
        let flags =
            line.rsplit_once(" [").and_then(|(_, flags)| flags.trim_end().strip_suffix(']'));
        if let Some(flags) = flags.filter(|_| name.eq_ignore_ascii_case("RewriteRule")) {
            for flag in flags.split(',') {
                count(&mut self.flags, flag.split('=').next().unwrap_or_default());
            }
        }
    }
}

/// Prints a paragraph on directives, one on flags, one on variables: those met, with numbers, and the others.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = values::table().map_err(|_| fmt::Error)?;
        let ours = table.iter().filter(|known| MODULES.contains(&known.module.as_str()));
        let names: Vec<&str> = ours.map(|known| known.name.as_str()).collect();
        paragraph(f, "directives", &names, &self.directives)?;
        paragraph(f, "flags", &FLAGS, &self.flags)?;
        paragraph(f, "variables", &VARIABLES, &self.variables)
    }
}

fn paragraph(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    names: &[&str],
    met: &BTreeMap<String, usize>,
) -> fmt::Result {
    let number = |name: &str| met.get(&name.to_ascii_lowercase()).copied().unwrap_or_default();
    let (some, none): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| number(name) > 0);
    let some: Vec<String> = some.iter().map(|name| format!("{name} {}", number(name))).collect();
    writeln!(f, "{what} that come up: {}", some.join(", "))?;
    writeln!(f, "{what} that never do: {}", none.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_up_is_counted() {
        let config =
            "RewriteEngine On\nRewriteRule ^ %{HTTP_HOST} [R=301,L]\n<If \"true\">\n</If>\n";
        let mut coverage = Coverage::default();
        coverage.add(&Case { config: config.to_owned(), ..Case::default() });
        let text = coverage.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("<If 1, ") && lines[0].contains("RewriteRule 1"), "{text}");
        assert!(lines[1].contains("RewriteCond"), "{text}");
        assert_eq!(lines[2], "flags that come up: L 1, R 1");
        assert_eq!(lines[4], "variables that come up: HTTP_HOST 1");
    }
}

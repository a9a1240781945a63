//! Apache httpd as a server of the lab: the event MPM, one process, and only the modules needed.
//!
//! Distributions build some modules in and ship others beside the program, in a directory that the
//! program does not tell. So we ask it what is built in, and look for the rest where it may be.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{Server, ServerKind, Setup, output, program};

/// The modules of the experiment: the source file of each, the name for `LoadModule`, the file.
const MODULES: [(&str, &str, &str); 5] = [
    ("event.c", "mpm_event_module", "mod_mpm_event.so"),
    ("mod_unixd.c", "unixd_module", "mod_unixd.so"),
    ("mod_authz_core.c", "authz_core_module", "mod_authz_core.so"),
    ("mod_alias.c", "alias_module", "mod_alias.so"),
    ("mod_rewrite.c", "rewrite_module", "mod_rewrite.so"),
];

/// Where modules may be, absolute or relative to HTTPD_ROOT: Debian, Fedora (by its symbolic link,
/// then directly), Alpine, a build from source, Homebrew and macOS.
const MODULE_DIRECTORIES: [&str; 7] = [
    "/usr/lib/apache2/modules",
    "modules",
    "/usr/lib64/httpd/modules",
    "/usr/lib/apache2",
    "/usr/lib/httpd/modules",
    "lib/httpd/modules",
    "/usr/libexec/apache2",
];

/// Threads of the one process: Apache's own default, and never fewer than connections.
const THREADS_MIN: u32 = 25;

/// The modules to load, by their name for `LoadModule` and their file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Modules(Vec<(&'static str, PathBuf)>);

/// Looks for Apache and its modules.
pub(super) fn find() -> Result<Server, String> {
    let path = program(&["apache2", "httpd"]).ok_or("neither apache2 nor httpd is on PATH")?;
    let version = parse_version(&output(&path, &["-v"])?)
        .ok_or_else(|| format!("{} is not Apache httpd", path.display()))?;
    let settings = output(&path, &["-V"])?;
    let built_in = output(&path, &["-l"])?;
    let modules = Modules::find(&built_in, parse_root(&settings).as_deref())?;
    Ok(Server { kind: ServerKind::Apache, program: path, version, modules })
}

/// Writes the configuration.
pub(super) fn configuration(setup: &Setup<'_>, modules: &Modules) -> String {
    let directory = setup.directory.display();
    let threads = setup.connections_max.max(THREADS_MIN);
    let mut text = format!(
        "ServerRoot \"{directory}\"\n\
         PidFile \"{directory}/httpd.pid\"\n\
         DefaultRuntimeDir \"{directory}\"\n\
         ErrorLog \"{directory}/error.log\"\n\
         LogLevel warn\n"
    );
    for (name, file) in &modules.0 {
        let _ = writeln!(text, "LoadModule {name} \"{}\"", file.display());
    }
    if let Some(account) = setup.account {
        let _ = write!(text, "User {}\nGroup {}\n", account.user, account.group);
    }
    let _ = write!(
        text,
        "StartServers 1\n\
         ServerLimit 1\n\
         ThreadLimit {threads}\n\
         ThreadsPerChild {threads}\n\
         MaxRequestWorkers {threads}\n\
         MinSpareThreads 1\n\
         MaxSpareThreads {}\n",
        threads + 1,
    );
    text + &common(setup)
}

/// Writes what Apache and milepost both read.
pub(super) fn common(setup: &Setup<'_>) -> String {
    let documents = setup.site.documents().display().to_string();
    format!(
        "Listen {address}\n\
         ServerName localhost\n\
         DocumentRoot \"{documents}\"\n\
         KeepAlive On\n\
         MaxKeepAliveRequests 0\n\
         KeepAliveTimeout 60\n\
         <Directory \"{documents}\">\n    Require all granted\n</Directory>\n\
         Include \"{rules}\"\n",
        address = setup.address,
        rules = setup.site.apache_rules().display(),
    )
}

impl Modules {
    /// Finds each module: built in, or a file. `built_in` is what `httpd -l` prints.
    fn find(built_in: &str, root: Option<&Path>) -> Result<Self, String> {
        let built_in: Vec<&str> = built_in.lines().map(str::trim).collect();
        if let Some(mpm) = ["prefork.c", "worker.c"].into_iter().find(|mpm| built_in.contains(mpm))
        {
            return Err(format!("its MPM is built in and is {mpm}, not event.c"));
        }
        let missing = MODULES.iter().filter(|(source, ..)| !built_in.contains(source));
        let load = missing.map(|&(_, name, file)| {
            let directories = MODULE_DIRECTORIES.iter().filter_map(|directory| match root {
                Some(root) => Some(root.join(directory)),
                None => Path::new(directory).is_absolute().then(|| directory.into()),
            });
            let found =
                directories.map(|directory| directory.join(file)).find(|path| path.is_file());
            found.map(|path| (name, path)).ok_or_else(|| format!("its module {file} was not found"))
        });
        load.collect::<Result<_, _>>().map(Self)
    }
}

/// Finds the version in what `httpd -v` prints.
fn parse_version(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("Server version: Apache/"))?;
    Some(line.trim().to_owned())
}

/// Finds HTTPD_ROOT in what `httpd -V` prints.
fn parse_root(text: &str) -> Option<PathBuf> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("-D HTTPD_ROOT=\""))?;
    Some(line.strip_suffix('"')?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_say_what_they_are() {
        let version = "Server version: Apache/2.4.71 (Debian)\nServer built:   2026-11-12\n";
        assert_eq!(parse_version(version).as_deref(), Some("2.4.71 (Debian)"));
        // Another program of the same name.
        assert_eq!(parse_version("BusyBox v1.36.1 multi-call binary.\n"), None);
        let settings = "Server compiled with....\n -D HTTPD_ROOT=\"/etc/apache2\"\n";
        assert_eq!(parse_root(settings), Some("/etc/apache2".into()));
    }

    #[test]
    fn modules_built_in_are_not_loaded() {
        let all = "  core.c\n  event.c\n  mod_unixd.c\n  mod_authz_core.c\n  mod_alias.c\n  mod_rewrite.c\n";
        assert_eq!(Modules::find(all, None), Ok(Modules::default()));
        let prefork = Modules::find("  core.c\n  prefork.c\n", None).expect_err("wrong MPM");
        assert!(prefork.contains("prefork.c"), "{prefork}");
    }
}

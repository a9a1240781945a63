//! Which configuration a command is about: the options that mean the same to `httpd`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use milepost_engine::{LoadOptions, Loaded, Lookup, Purpose, Site};
use milepost_server::FileSystem;

/// Options that name a configuration.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Configuration {
    /// Configuration file; relative to ROOT, if there is one
    #[arg(short = 'f', value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Server root, which relative paths in the configuration start from
    #[arg(short = 'd', value_name = "ROOT")]
    pub(crate) root: Option<PathBuf>,
    /// Directive to read before the configuration file
    #[arg(short = 'C', value_name = "DIRECTIVE")]
    pub(crate) before: Vec<String>,
    /// Directive to read after the configuration file
    #[arg(short = 'c', value_name = "DIRECTIVE")]
    pub(crate) after: Vec<String>,
    /// Name that <IfDefine> finds defined
    #[arg(short = 'D', value_name = "NAME")]
    pub(crate) defines: Vec<String>,
    /// Try rule after rule instead of using the index; for comparisons
    #[arg(long)]
    pub(crate) scan: bool,
}

impl Configuration {
    /// Loads it for something other than serving, and says what it is. Without `-f`, `path` is the configuration file, or a
    /// directory that is meant with its `.htaccess` files.
    pub(crate) fn load(self, path: &Path, purpose: Purpose) -> anyhow::Result<(Loaded, String)> {
        let (options, what) = self.options(path, None)?;
        let options = LoadOptions { purpose, ..options };
        Ok((Site::load(&options, &FileSystem), what))
    }

    /// What to load to serve it, and a name for it. `listen` says where, unless a directive does.
    pub(crate) fn options(
        self,
        path: &Path,
        listen: Option<&str>,
    ) -> anyhow::Result<(LoadOptions, String)> {
        let here = std::env::current_dir().context("there is no current directory")?;
        let server_root = here.join(self.root.unwrap_or_default());
        let file = self.file.or_else(|| {
            let is_directory = server_root.join(path).is_dir();
            (!is_directory && server_root.join(path).exists()).then(|| path.to_owned())
        });
        let mut after = self.after;
        let what = match &file {
            Some(file) => file.display().to_string(),
            None => {
                let path = server_root
                    .join(path)
                    .canonicalize()
                    // Only who may search a directory can look at what is in it.
                    .and_then(|path| path.join(".").metadata().map(|_| path))
                    .with_context(|| format!("cannot serve {}", path.display()))?;
                let listens =
                    self.before.iter().chain(&after).any(|directive| is_listen(directive));
                // What was given with -c comes after, and so has the last word.
                after.insert(0, directory_directives(&path, listen.filter(|_| !listens))?);
                path.display().to_string()
            }
        };
        let options = LoadOptions {
            server_root,
            file,
            defines: self.defines,
            before: self.before,
            after,
            lookup: if self.scan { Lookup::Scan } else { Lookup::Index },
            purpose: Purpose::Serve,
        };
        Ok((options, what))
    }
}

/// Whether a directive says where to listen.
fn is_listen(directive: &str) -> bool {
    let name = directive.split_ascii_whitespace().next();
    name.is_some_and(|name| name.eq_ignore_ascii_case("Listen"))
}

/// The configuration that serves one directory.
fn directory_directives(directory: &Path, listen: Option<&str>) -> anyhow::Result<String> {
    let name = directory.to_str().context("the name of the directory is not UTF-8")?;
    let quoted = format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let listen = listen.map(|address| format!("Listen {address}\n")).unwrap_or_default();
    Ok(format!(
        "{listen}\
         DocumentRoot {quoted}\n\
         <Directory {quoted}>\n\
         AllowOverride All\n\
         Require all granted\n\
         </Directory>\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_a_default_address_unless_one_is_given() {
        for (after, expected) in [
            (None, "Listen 127.0.0.1:8080\nDocumentRoot \"/"),
            (Some("Redirect /a http://b/"), "Listen 127.0.0.1:8080\nDocumentRoot \"/"),
            (Some("listen 127.0.0.1:9000"), "DocumentRoot \"/"),
        ] {
            let after = after.map(str::to_owned).into_iter().collect();
            let configuration = Configuration { after, ..Configuration::default() };
            let listen = Some("127.0.0.1:8080");
            let (options, what) = configuration.options(Path::new("/"), listen).unwrap();
            assert_eq!(what, "/");
            assert!(options.after[0].starts_with(expected), "{:?}", options.after);
        }
    }

    #[test]
    fn a_path_that_is_no_directory_is_the_configuration_file() {
        let directory = tempfile::tempdir().unwrap();
        let root = Some(directory.path().to_owned());
        std::fs::write(directory.path().join("site.conf"), "").unwrap();
        let file = |path: &str| {
            let configuration = Configuration { root: root.clone(), ..Configuration::default() };
            configuration.options(Path::new(path), None).map(|(options, _)| options.file)
        };
        assert_eq!(file("site.conf").unwrap(), Some("site.conf".into()));
        assert_eq!(file(".").unwrap(), None);
        let error = file("none.conf").unwrap_err().to_string();
        assert_eq!(error, "cannot serve none.conf");
    }

    #[test]
    fn a_directory_may_have_any_name() {
        let directives = directory_directives(Path::new("/a \"b\\c"), None).unwrap();
        assert!(directives.starts_with("DocumentRoot \"/a \\\"b\\\\c\"\n"), "{directives}");
    }
}

//! One `.htaccess` file by itself, for whoever wants to know what is wrong with it before a request does.
//!
//! Requests compile these files as they meet them (`eval/htaccess.rs`); `httpd -t` never reads them.

use std::path::Path;
use std::sync::Arc;

use crate::build::{self, path_to_bytes};
use crate::diagnostic::Diagnostic;
use crate::lint;
use crate::outside::Outside;
use crate::program::{DirConfig, Override, Program};
use crate::site::Site;

/// What came of reading a `.htaccess` file.
#[derive(Debug)]
pub struct Htaccess<'s> {
    program: &'s Program,
    /// `None` if a diagnostic is an error: requests below its directory end in a 500.
    config: Option<DirConfig>,
    /// All that was found while it was read, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Site {
    /// Compiles the text of a `.htaccess` file that may say everything (`AllowOverride All`).
    pub fn htaccess(&self, file: &Path, text: Vec<u8>, outside: &dyn Outside) -> Htaccess<'_> {
        let program = self.program();
        let mut directory = file.parent().map(path_to_bytes).unwrap_or_default().to_vec();
        if directory.last() != Some(&b'/') {
            directory.push(b'/');
        }
        let allowed = Arc::new(Override::all());
        let (config, diagnostics) = build::build_htaccess(
            program,
            path_to_bytes(file),
            text,
            &directory,
            &allowed,
            outside,
        );
        Htaccess { program, config, diagnostics }
    }
}

impl Htaccess<'_> {
    /// Looks for rules that load and do not do what was meant; none if the file does not load.
    pub fn lint(&self) -> Vec<Diagnostic> {
        let config = self.config.as_ref();
        config.map(|config| lint::lint_section(self.program, config)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::LoadOptions;
    use crate::diagnostic::Severity;

    struct Nothing;

    impl Outside for Nothing {
        fn random(&self) -> u64 {
            0
        }

        fn now(&self) -> (i64, i32) {
            (0, 0)
        }
    }

    #[test]
    fn faults_and_dead_rules_are_found() {
        check("Redirect /a /b\n", &[]);
        check("php_flag engine off\n", &[(Severity::Error, 1)]);
        check("<VirtualHost *>\n</VirtualHost>\n", &[(Severity::Error, 1)]);
        check("Redirect /a http://t/\nRedirect /a/b http://t/\n", &[(Severity::Warning, 2)]);
        check(
            "RewriteEngine on\nRewriteBase /\nRewriteRule ^a /b [L]\nRewriteRule ^a/c$ /d [R]\n",
            &[(Severity::Warning, 4)],
        );
    }

    #[track_caller]
    fn check(text: &str, expected: &[(Severity, u32)]) {
        let loaded = Site::load(&LoadOptions::default(), &Nothing);
        let site = loaded.site.expect("an empty configuration loads");
        let file = site.htaccess(Path::new("/www/.htaccess"), text.into(), &Nothing);
        let found = file
            .diagnostics
            .iter()
            .chain(&file.lint())
            .map(|it| (it.severity, it.line))
            .collect::<Vec<_>>();
        assert_eq!(found, expected, "{text}: {:?}", file.diagnostics);
    }
}

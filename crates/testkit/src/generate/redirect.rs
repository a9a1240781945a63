//! `Redirect`, `RedirectMatch` and their targets.

use super::{Context, DIRECTIVES_MAX, Maker, word};

impl Maker {
    /// Some redirects for one scope.
    pub(super) fn redirects(&mut self, context: Context) -> String {
        let count = self.rng.usize(1..=DIRECTIVES_MAX);
        (0..count).map(|_| self.redirect(context)).collect()
    }

    fn redirect(&mut self, context: Context) -> String {
        let status = self.status();
        match self.rng.u8(0..12) {
            0..4 => {
                let (path, target) = (self.path(), self.redirect_target());
                format!("Redirect {status}{} {}\n", word(&path), word(&target))
            }
            4..8 => {
                let (pattern, target) = (self.pattern(false), self.match_target());
                format!("RedirectMatch {status}{} {}\n", word(&pattern), word(&target))
            }
            8 => {
                let name = self.pick(&["RedirectPermanent", "RedirectTemp"]);
                let (path, target) = (self.path(), self.redirect_target());
                format!("{name} {} {}\n", word(&path), word(&target))
            }
            9 => {
                let code = self.pick(&["gone", "410", "404", "403", "503"]);
                let path = self.path();
                format!("Redirect {code} {}\n", word(&path))
            }
            10 => {
                let code = self.pick(&["gone", "404", "403"]);
                let pattern = self.pattern(false);
                format!("RedirectMatch {code} {}\n", word(&pattern))
            }
            // A status alone makes httpd crash in server context, and is for sections only.
            _ if context == Context::Section && self.one_in(3) => {
                let target = self.redirect_target();
                format!("Redirect {status}{}\n", word(&target))
            }
            _ => {
                let path = self.path();
                format!(
                    "Redirect {status}{} http://t{}\n",
                    word(&path),
                    word(&path).replace(' ', "%20").replace('"', "")
                )
            }
        }
    }

    fn status(&mut self) -> &'static str {
        self.pick(&["", "", "", "301 ", "permanent ", "temp ", "seeother ", "307 ", "308 ", "302 "])
    }

    /// A target of `Redirect`, which is taken as it is.
    fn redirect_target(&mut self) -> String {
        let path = self.path();
        match self.rng.u8(0..10) {
            0..5 => format!("http://t{path}"),
            5 => path,
            6 => format!("http://t{path}?q=1"),
            7 => format!("http://t{path}#f"),
            8 => self
                .pick(&[
                    "http://t",
                    "http://t/",
                    "foo:bar",
                    "//o/p",
                    "http://t/?",
                    "HTTPS://T:443/%20",
                ])
                .to_owned(),
            _ => format!("https://t:8443{path}/"),
        }
    }

    /// A target of `RedirectMatch`, which is expanded, parsed and escaped.
    fn match_target(&mut self) -> String {
        let mut target = self
            .pick(&[
                "http://t/",
                "http://t",
                "/",
                "http://t/x/",
                "http://$1/",
                "https://u@t:443/",
                "//o/",
                "foo:",
            ])
            .to_owned();
        for _ in 0..self.rng.usize(0..=2) {
            target.push_str(self.pick(&[
                "$1", "$0", "$2", "/", "a", "b c", "%20", "?q=$1", "#$1", r"\$1", "$", "&", "$9",
            ]));
        }
        target
    }
}

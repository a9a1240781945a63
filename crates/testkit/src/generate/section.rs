//! `<Location>` and `<Files>` with their kin, variables, and what stands in sections.

use super::{Area, Context, Maker, word};

impl Maker {
    /// Some sections with directives in them.
    pub(super) fn sections(&mut self) -> String {
        let count = self.rng.usize(1..=3);
        (0..count).map(|_| self.section()).collect()
    }

    fn section(&mut self) -> String {
        let path = self.path();
        let pattern = self.pattern(false);
        let (name, argument) = match self.rng.u8(0..10) {
            0..4 => ("Location", word(&path)),
            4 => ("Location", self.pick(&["/a/*", "/?", "/[ab]", "/*/x.html", "/"]).to_owned()),
            5..7 => ("LocationMatch", word(&pattern)),
            7 => ("Location", format!("~ {}", word(&pattern))),
            8 => ("Files", self.pick(&["x.html", "*.html", "index.html", "b", "none"]).to_owned()),
            _ => ("FilesMatch", self.pick(&["\"\\.html$\"", "^x", "."]).to_owned()),
        };
        let body = self.body(Context::Section);
        format!("<{name} {argument}>\n{body}</{name}>\n")
    }

    /// `<Files>` or `<If>` in another section, or an `<If>` in an `.htaccess` file.
    fn inner(&mut self, context: Context) -> String {
        let body = self.access(context) + &self.redirects(Context::Section);
        if self.may(Area::Expression) && self.one_in(2) {
            let expression = self.expression(1);
            return format!("<If \"{expression}\">\n{body}</If>\n");
        }
        let (name, argument) = self
            .rng
            .choice([
                ("Files", "x.html"),
                ("Files", "*.html"),
                ("FilesMatch", "^(index|b)"),
                ("Files", "b"),
            ])
            .unwrap_or_default();
        format!("<{name} {argument}>\n{body}</{name}>\n")
    }

    /// Directives that may stand in any section.
    pub(super) fn body(&mut self, context: Context) -> String {
        let mut writers: Vec<fn(&mut Maker, Context) -> String> = vec![Maker::access, Maker::inner];
        if self.may(Area::Alias) {
            writers.push(Maker::redirects);
            writers.push(Maker::redirects);
        }
        if self.may(Area::Rewrite) {
            writers.push(Maker::rewrites);
            writers.push(Maker::rewrites);
        }
        if self.may(Area::Files) {
            writers.push(Maker::file_directives);
        }
        if self.may(Area::Expression) {
            writers.push(Maker::conditionals);
        }
        if self.may(Area::Field) {
            writers.push(Maker::fields);
        }
        if self.may(Area::Proxy) {
            writers.push(Maker::proxies);
        }
        let mut text = String::new();
        for _ in 0..self.rng.usize(1..=2) {
            if let Some(write) = self.rng.choice(&writers).copied() {
                let lines = write(self, context);
                let wraps = self.may(Area::Syntax) && self.one_in(8);
                text.push_str(&if wraps { self.wrapped(&lines, context) } else { lines });
            }
        }
        text
    }

    /// `SetEnvIf` and its kin.
    pub(super) fn variables(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.rng.usize(1..=3) {
            let name = self.pick(&["SetEnvIf", "SetEnvIf", "SetEnvIfNoCase"]);
            let line = match self.rng.u8(0..8) {
                0..3 => {
                    let pattern = self.pattern(false);
                    let value = self.pick(&["V", "V=1", "V=$1", "!V", "V=x$0 W"]);
                    format!("{name} Request_URI {} {value}", word(&pattern))
                }
                3 => format!("{name} X-A {} V=$0", self.pick(&["1", "^(b)$", "B", "."])),
                4 => {
                    let name = self.pick(&["BrowserMatch", "BrowserMatchNoCase"]);
                    format!("{name} {} V=bot", self.pick(&["bot", "^BOT", "."]))
                }
                5 if self.one_in(3) => self.pick(&["UnsetEnv V", "PassEnv PATH V"]).to_owned(),
                5 => format!("SetEnv V {}", self.pick(&["set", "\"a b\"", ""])),
                6 => {
                    let (attribute, pattern) = self
                        .rng
                        .choice([
                            ("Remote_Addr", "^127"),
                            ("Request_Method", "GET|HEAD"),
                            ("Request_Protocol", "1\\.0$"),
                            ("^X-", "(.)"),
                            ("Host", "^(www)"),
                            ("Server_Addr", "^127\\."),
                            ("V", "1"),
                        ])
                        .unwrap_or_default();
                    format!("{name} {attribute} {pattern} V=$1 W")
                }
                _ => {
                    let expression = self.expression(1);
                    // Before any match `$0` is whatever lay on the stack of httpd.
                    let first = "%{REQUEST_URI} =~ /(.)(b)?/";
                    let values = self.pick(&["V", "!V", "V=$1 W=$2", "W=$0"]);
                    let operator = self.pick(&["&&", "||"]);
                    format!("SetEnvIfExpr \"{first} {operator} ({expression})\" {values}")
                }
            };
            text.push_str(&line);
            text.push('\n');
        }
        if self.may(Area::Rewrite) {
            let pattern = self.pattern(false);
            text.push_str(&format!(
                "RewriteEngine On\nRewriteRule {} http://t/v/%{{ENV:V}}/%{{ENV:W}} [R,L]\n",
                word(&pattern)
            ));
        }
        text
    }
}

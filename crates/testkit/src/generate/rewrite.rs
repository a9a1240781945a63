//! `RewriteRule`, `RewriteCond`, `RewriteMap`, `RewriteOptions`.

use super::{Area, Context, DIRECTIVES_MAX, Maker, word};

impl Maker {
    /// Rules for one scope, usually with the engine on.
    pub(super) fn rewrites(&mut self, context: Context) -> String {
        let mut text = String::new();
        if !self.one_in(12) {
            text.push_str("RewriteEngine On\n");
        }
        if self.one_in(8) {
            let option = self.pick(&[
                "Inherit",
                "InheritBefore",
                "InheritDown",
                "InheritDownBefore",
                "IgnoreInherit",
                "AllowNoSlash",
                "AllowAnyURI",
                "MergeBase",
                "IgnoreContextInfo",
                "UnsafePrefixStat",
                "UnsafeAllow3F",
                "LegacyPrefixDocRoot",
                "LongURLOptimization",
                "InheritBefore AllowNoSlash",
                "Inherit MergeBase",
                "MaxRedirects=5",
            ]);
            text.push_str(&format!("RewriteOptions {option}\n"));
        }
        if context != Context::Server && self.one_in(3) {
            let base = self.pick(&["/", "/a/", "/docs", "/other/"]);
            text.push_str(&format!("RewriteBase {base}\n"));
        }
        for _ in 0..self.rng.usize(1..=DIRECTIVES_MAX) {
            while self.one_in(3) {
                text.push_str(&self.condition());
            }
            text.push_str(&self.rule(context));
        }
        text
    }

    /// Definitions of maps, with their files.
    pub(super) fn map_definitions(&mut self) -> String {
        let mut text = String::new();
        for name in ["m", "n"] {
            if self.one_in(3) {
                continue;
            }
            let mut content = String::new();
            for _ in 0..self.rng.usize(1..8) {
                let key = self.pick(&[
                    "a",
                    "b",
                    "ab",
                    "/a",
                    "docs",
                    "/docs/x.html",
                    "1",
                    "A",
                    "#",
                    "a.b",
                ]);
                let value =
                    self.pick(&["1", "v", "/a/b.html", "http://t/v", "a b", "", "x#y", "%20", "é"]);
                content.push_str(&format!("{key} {value}\n"));
            }
            let file = format!("{name}.txt");
            let kind = self.pick(&["txt", "txt", "rnd"]);
            text.push_str(&format!("RewriteMap {name} {kind}:@ROOT@/{file}\n"));
            self.files.insert(file, content);
            self.maps.push(name);
        }
        for (name, function) in
            [("lower", "tolower"), ("upper", "toupper"), ("esc", "escape"), ("unesc", "unescape")]
        {
            if self.one_in(2) {
                text.push_str(&format!("RewriteMap {name} int:{function}\n"));
                self.maps.push(name);
            }
        }
        text
    }

    fn rule(&mut self, context: Context) -> String {
        let negated = if self.one_in(15) { "!" } else { "" };
        let pattern = self.pattern(context == Context::Htaccess);
        let substitution = self.substitution();
        let flags = self.flags();
        format!(
            "RewriteRule {} {}{flags}\n",
            word(&format!("{negated}{pattern}")),
            word(&substitution)
        )
    }

    fn substitution(&mut self) -> String {
        let mut text = match self.rng.u8(0..12) {
            0 => return "-".to_owned(),
            1 => String::new(),
            2..6 => "http://t/".to_owned(),
            6..9 => "/".to_owned(),
            9 => self.path(),
            10 => self
                .pick(&[
                    "https://t:8443/",
                    "http://www.test/",
                    "http://www.test:@PORT@/",
                    "//",
                    "ftp://t/",
                    "mailto:a@t",
                    "@ROOT@/htdocs/",
                    "%{DOCUMENT_ROOT}/",
                ])
                .to_owned(),
            _ => "docs/".to_owned(),
        };
        for _ in 0..self.rng.usize(0..=3) {
            let piece = self.expansion();
            text.push_str(&piece);
        }
        if self.one_in(4) {
            text.push('?');
            if !self.one_in(4) {
                text.push_str("q=");
                let piece = self.expansion();
                text.push_str(&piece);
            }
        }
        text
    }

    /// Something to be expanded, or that looks so.
    fn expansion(&mut self) -> String {
        const LITERALS: [&str; 14] = [
            "a", "b", "/", ".html", "x y", "%20", r"\%20", "#f", "&k=v", "$", "%", r"\$1", "é", "?",
        ];
        const VARIABLES: [&str; 30] = [
            "REQUEST_URI",
            "QUERY_STRING",
            "HTTP_HOST",
            "REQUEST_METHOD",
            "SERVER_NAME",
            "SERVER_PORT",
            "REQUEST_FILENAME",
            "HTTP:X-A",
            "ENV:V",
            "REQUEST_SCHEME",
            "HTTPS",
            "PATH_INFO",
            "DOCUMENT_ROOT",
            "NOPE",
            "HTTP_REFERER",
            "HTTP_COOKIE",
            "HTTP_ACCEPT",
            "HTTP_FORWARDED",
            "REMOTE_USER",
            "REMOTE_HOST",
            "REMOTE_IDENT",
            "SCRIPT_FILENAME",
            "SCRIPT_USER",
            "SERVER_ADDR",
            "SERVER_ADMIN",
            "SERVER_PROTOCOL",
            "API_VERSION",
            "CONTEXT_PREFIX",
            "CONTEXT_DOCUMENT_ROOT",
            "CONN_REMOTE_ADDR",
        ];
        match self.rng.u8(0..10) {
            0..4 => self.pick(&["$1", "$1", "$0", "$2", "$3"]).to_owned(),
            4 => self.pick(&["%1", "%0", "%2"]).to_owned(),
            5 => format!("%{{{}}}", self.pick(&VARIABLES)),
            6 if !self.maps.is_empty() => {
                let name = self.rng.choice(&self.maps).copied().unwrap_or_default();
                let key = self.pick(&["$1", "%1", "%{REQUEST_URI}", "a", "$1/$2", ""]);
                let default = self.pick(&["", "|", "|none", "|$1", "|${m:b|c}"]);
                format!("${{{name}:{key}{default}}}")
            }
            _ => self.pick(&LITERALS).to_owned(),
        }
    }

    fn flags(&mut self) -> String {
        const OFTEN: [&str; 6] = ["R", "R=301", "L", "NC", "QSA", "NE"];
        const SELDOM: [&str; 48] = [
            "C",
            "S=1",
            "S=2",
            "N=3",
            "N=2",
            "END",
            "PT",
            "F",
            "G",
            "B",
            "BNP",
            "BCTLS",
            "B=?/",
            "BNE=/",
            "NS",
            "DPI",
            "QSD",
            "QSL",
            "E=V:$1",
            "E=V:x%{ENV:V}",
            "E=!V",
            "E=W",
            "CO=n:v:t",
            "R=302",
            "R=303",
            "R=307",
            "R=308",
            "R=404",
            "R=410",
            "R=403",
            "UnsafeAllow3F",
            "UnsafePrefixStat",
            "UNC",
            "T=text/plain",
            "R=permanent",
            "last",
            "nocase",
            "redirect=temp",
            "H=none",
            "H=default-handler",
            "CO=n:v:t:60:/:secure:httponly:lax",
            "CO=;n;v:w;t",
            "forbidden",
            "chain",
            "skip=1",
            "env=V:1",
            "passthrough",
            "nosubreq",
        ];
        let mut flags: Vec<&str> = Vec::new();
        for _ in 0..self.rng.usize(0..=2) {
            flags.push(self.pick(&OFTEN));
        }
        if self.one_in(3) {
            flags.push(self.pick(&SELDOM));
        }
        if self.may(Area::Syntax) && self.one_in(40) {
            flags.push(
                self.pick(&["X", "R=999", "S=x", "N=x", "BNE", "Q=1", "", "R=99", "CO=x", "H="]),
            );
        }
        if flags.is_empty() { String::new() } else { format!(" [{}]", flags.join(",")) }
    }

    fn condition(&mut self) -> String {
        if self.may(Area::Expression) && self.one_in(6) {
            let expression = self.expression(2);
            // After an expression without a regular expression, what `%1` holds in httpd is whatever
            // lay on the stack.
            let text = format!("({expression}) && '/a' =~ /(.)(.)/");
            return format!("RewriteCond expr \"{text}\"{}\n", self.condition_flags());
        }
        let (test, pattern) = match self.rng.u8(0..12) {
            0..3 => {
                let pattern = self.pick(&[
                    "^www\\.test$",
                    "=old.test",
                    "^(.*)\\.old\\.test",
                    "!^www\\.",
                    "test",
                    "!=www.test",
                    "^([^.]+)\\.",
                ]);
                ("%{HTTP_HOST}".to_owned(), pattern.to_owned())
            }
            3..5 => {
                let pattern = self.pick(&[
                    "^$",
                    "a=1",
                    "^(.*)$",
                    "(\\w)=(\\w)",
                    "!.",
                    "=x",
                    "!^id=",
                    ".",
                    "(%|=)(.*)",
                ]);
                ("%{QUERY_STRING}".to_owned(), pattern.to_owned())
            }
            5..7 => {
                let pattern = self.pattern(false);
                let negated = if self.one_in(4) { "!" } else { "" };
                ("%{REQUEST_URI}".to_owned(), format!("{negated}{pattern}"))
            }
            7 => {
                let test = self.pick(&[
                    "%{REQUEST_FILENAME}",
                    "%{DOCUMENT_ROOT}%{REQUEST_URI}",
                    "%{DOCUMENT_ROOT}/$1",
                    "@ROOT@/htdocs/$1",
                    "%{LA-U:REQUEST_FILENAME}",
                    "%{LA-F:REQUEST_FILENAME}",
                    "%{REQUEST_URI}",
                    "/$1",
                ]);
                let pattern = self.pick(&[
                    "-f", "!-f", "-d", "!-d", "-s", "-l", "-e", "-F", "-U", "!-F", "!-U", "-x",
                    "-h", "-L",
                ]);
                (test.to_owned(), pattern.to_owned())
            }
            8 => {
                let test = self.pick(&[
                    "%{HTTP:X-A}",
                    "$1",
                    "%1",
                    "%{ENV:V}",
                    "%{REQUEST_METHOD}",
                    "%{HTTP_USER_AGENT}",
                    "%{THE_REQUEST}",
                ]);
                let pattern = self.pick(&[
                    "<b", ">a", "=1", "-eq1", "-gt5", "!-lt2", ">=b", "=\"\"", "^(.*)$", "bot",
                    "^GET", "!^POST$", "(\\d)", "-ne1", "<=ab",
                ]);
                (test.to_owned(), pattern.to_owned())
            }
            9 => {
                let test = self.expansion();
                let pattern = self.pattern(false);
                (if test.is_empty() { "x".to_owned() } else { test }, pattern)
            }
            10 if !self.maps.is_empty() => {
                let name = self.rng.choice(&self.maps).copied().unwrap_or_default();
                let pattern = self.pick(&["^(.+)$", "!^$", "=v", "!none"]);
                (format!("${{{name}:$1|none}}"), pattern.to_owned())
            }
            _ => {
                let test = self.pick(&[
                    "%{HTTPS}",
                    "%{IS_SUBREQ}",
                    "%{SERVER_PORT}",
                    "%{REQUEST_SCHEME}",
                    "%{SERVER_NAME}",
                    "%{REMOTE_ADDR}",
                    "%{PATH_INFO}",
                    "%{ENV:REDIRECT_STATUS}",
                    "%{CONTEXT_PREFIX}",
                    "%{HTTP_REFERER}",
                    "%{SERVER_ADMIN}",
                    "%{LA-U:REMOTE_USER}",
                    "%{SSL:SSL_PROTOCOL}",
                    "%{REQUEST_STATUS}",
                    "%{IPV6}",
                ]);
                let pattern = self
                    .pick(&["off", "!on", "=true", "^127\\.", "^$", "!^$", "http", "=80", "200"]);
                (test.to_owned(), pattern.to_owned())
            }
        };
        format!("RewriteCond {} {}{}\n", word(&test), word(&pattern), self.condition_flags())
    }

    fn condition_flags(&mut self) -> &'static str {
        self.pick(&["", "", "", "", " [NC]", " [OR]", " [OR]", " [NC,OR]", " [NV]"])
    }
}

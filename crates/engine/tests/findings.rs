//! What is said of a line that is most often not what was meant, and of one that httpd knows nothing of.

#[allow(dead_code, reason = "the other tests use more of it")]
mod support;

use milepost_engine::{Lookup, Severity};

use support::{Table, load};

/// The findings about `text`: severity, line, what is wrong, and what to write.
#[track_caller]
fn check(text: &str, expected: &[(Severity, u32, &str, &str)]) {
    let loaded = load(text, &Table::default(), Lookup::Index);
    let found: Vec<_> = loaded
        .diagnostics
        .iter()
        .map(|found| {
            let hint = found.hint.as_deref().unwrap_or_default();
            (found.severity, found.line, found.message.as_str(), hint)
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_host_without_a_slash_behind_it() {
    let found = |line, path, hint| (Severity::Warning, line, path, hint);
    check(
        "Redirect / https://new.example\nRedirect 301 /a/ http://b.example:8080",
        &[
            found(
                1,
                "`/a` goes to `https://new.examplea`",
                "end the URL as the path ends: `https://new.example/`",
            ),
            found(
                2,
                "`/a/a` goes to `http://b.example:8080a`",
                "end the URL as the path ends: `http://b.example:8080/`",
            ),
        ],
    );
    check(
        "Redirect / https://new.example/\nRedirect /a https://new.example\nRedirect /b/ /c\n\
         Redirect /d/ https://new.example?d=\nRedirect gone /e/",
        &[],
    );
}

#[test]
fn flags_without_a_blank_before_them() {
    check(
        "RewriteEngine On\nRewriteRule ^/a -[F]\nRewriteRule ^/b$ /c[R=301,L]\n\
         RewriteRule ^/d /e[0]\nRewriteRule ^/f http://[::1]\nRewriteRule ^/g /h[x] [L]",
        &[
            (
                Severity::Warning,
                2,
                "`[F]` is a part of the target",
                "write a blank before the flags: `- [F]`",
            ),
            (
                Severity::Warning,
                3,
                "`[R=301,L]` is a part of the target",
                "write a blank before the flags: `/c [R=301,L]`",
            ),
        ],
    );
}

#[test]
fn a_variable_in_a_pattern() {
    check(
        "RewriteEngine On\nRewriteRule %{QUERY_STRING} /a [L]\nRewriteRule ^/100%{2}$ /b\nRewriteRule %7B{ /c",
        &[(
            Severity::Warning,
            2,
            "`%{QUERY_STRING}` stands for itself in a pattern",
            "test it before the rule: `RewriteCond %{QUERY_STRING} pattern`",
        )],
    );
}

#[test]
fn a_comment_behind_a_directive() {
    let hint = "a comment is a line of its own";
    let message = "`#` begins no comment here: its words are arguments";
    check(
        "DirectoryIndex a.html # the first\nSetEnv COLOR #fff\nDirectoryIndex \"#\" b.html\n\
         RewriteEngine On\nRewriteRule ^/a /b [L] # a comment\nRedirect /a#b /c#d",
        &[(Severity::Warning, 1, message, hint)],
    );
}

#[test]
fn directives_of_another_time_or_house() {
    let error = |line, message, hint| (Severity::Error, line, message, hint);
    check(
        "RewriteLogLevel 3\nSSLMutex default\nWSGIScriptAlias / /app.wsgi\nphp_value a b\nRewriteRul a b",
        &[
            error(
                1,
                "unknown directive `RewriteLogLevel`",
                "Apache 2.4 does not have it: `LogLevel rewrite:trace3` writes to the `ErrorLog`",
            ),
            error(2, "unknown directive `SSLMutex`", "Apache 2.4 does not have it: write `Mutex`"),
            error(
                3,
                "unknown directive `WSGIScriptAlias`",
                "it belongs to mod_wsgi.c, which is not of httpd; `<IfModule mod_wsgi.c>` around it leaves it out",
            ),
            error(
                4,
                "unknown directive `php_value`",
                "it belongs to mod_php.c, which is not of httpd; `<IfModule mod_php.c>` around it leaves it out",
            ),
            error(5, "unknown directive `RewriteRul`", "did you mean `RewriteRule`?"),
        ],
    );
}

/// What is said of `x.so` in the first line.
const NO_LIBRARY: (Severity, u32, &str, &str) = (
    Severity::Note,
    1,
    "`x.so` is not on this machine, where httpd would not start",
    "here it counts as loaded, as all that `LoadModule` names",
);

#[test]
fn what_httpd_would_run_is_not_run_here() {
    let message = "no programs are run here: requests for such files get a 503";
    let hint = "send requests to a server that runs them, with `ProxyPass`, over HTTP/1.1";
    check(
        "<FilesMatch \\.php$>\nSetHandler application/x-httpd-php\n</FilesMatch>\n\
         AddHandler cgi-script .cgi\nAddType application/x-httpd-php .phtml\nAddLanguage php .x\n\
         AddHandler type-map .var",
        &[2, 4, 5].map(|line| (Severity::Warning, line, message, hint)),
    );
    check("LoadModule mime_module x.so\nAddHandler cgi-script .cgi", &[NO_LIBRARY]);
}

#[test]
fn health_checks_are_read() {
    check(
        "<Proxy balancer://b>\nBalancerMember http://a.example hcmethod=GET hcinterval=10 hcuri=/up\n\
         BalancerMember http://b.example hcmethod=TCP\nBalancerMember http://c.example hcmethod=cping\n\
         BalancerMember http://d.example hcinterval=1ms\nBalancerMember http://e.example hcnone=1\n</Proxy>",
        &[
            (
                Severity::Warning,
                2,
                "no health checks are made: members are judged by their answers",
                "`retry` says after how long one that has failed is asked again",
            ),
            (Severity::Error, 4, "`cping` is no value for `hcmethod`", ""),
            (Severity::Error, 5, "`1ms` is no value for `hcinterval`", ""),
            (Severity::Error, 6, "unknown parameter `hcnone`", ""),
        ],
    );
    let error = (
        Severity::Error,
        2,
        "unknown parameter `hcmethod`",
        "it is one of mod_proxy_hcheck, which is not loaded",
    );
    check(
        "LoadModule proxy_module x.so\nProxyPass / http://a.example/ hcmethod=TCP",
        &[NO_LIBRARY, error],
    );
}

#[test]
fn a_backend_with_a_sentence_behind_it() {
    let (proxy, usage) = (
        "see the manual of mod_proxy for the parameters of `ProxyPass`",
        "write `BalancerMember url [key=value ...]`",
    );
    check(
        "ProxyPass /a http://127.0.0.1:1/ a=1 b=2\n<Proxy balancer://c>\n\
         BalancerMember ajp://{{ host }}\n</Proxy>\nProxyPass /d ajp://a:b c d",
        &[
            (Severity::Error, 1, "unknown parameter `a`", proxy),
            (Severity::Error, 3, "`host` is no parameter", usage),
            (
                Severity::Error,
                5,
                "`c` is neither a parameter `key=value` nor `nocanon`, `interpolate` or `noquery`",
                "",
            ),
        ],
    );
    check(
        "ProxyPass /d ajp://a:b",
        &[(
            Severity::Error,
            1,
            "`ajp://a:b` is no URL of a backend",
            "write `http://host:port/path`",
        )],
    );
}

#[test]
fn a_section_on_one_line() {
    let text = "<Location /a>Require all granted</Location>\n</Location>";
    check(
        text,
        &[(Severity::Error, 1, "`<Location>` needs one argument", "end the line behind `>`")],
    );
}

#[test]
fn what_httpd_reads_at_once_is_read_in_an_unknown_section_too() {
    let loaded = load("<Perl>\nuse Sys;\n</Perl>", &Table::default(), Lookup::Index);
    let lines: Vec<_> = loaded.diagnostics.iter().map(|found| found.line).collect();
    assert_eq!(lines, [1, 2], "{:?}", loaded.diagnostics);
}

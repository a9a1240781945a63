//! The index and the scan decide alike, whatever the rules and the request.

mod support;

use milepost_engine::{Lookup, Scratch};
use proptest::prelude::*;

use support::{Table, ask, load};

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec("[ab]{1,2}|x", 1..4).prop_map(|parts| format!("/{}", parts.join("/")))
}

fn pattern() -> impl Strategy<Value = String> {
    (path(), 0..11_usize).prop_map(|(path, form)| match form {
        0 => format!("^{path}$"),
        1 => format!("^{path}/?$"),
        2 => format!("^{path}(/.*)?$"),
        3 => format!("^{path}/(.*)$"),
        4 => format!("^{path}"),
        5 => path,
        6 => "^(.*)$".to_owned(),
        7 => format!("^/(a|b|{})$", &path[1..]),
        8 => "([ab])/".to_owned(),
        9 => "(.+)".to_owned(),
        _ => format!("!^{path}"),
    })
}

fn flags() -> impl Strategy<Value = String> {
    let one = prop::sample::select(vec![
        "L", "R=301", "R", "NC", "C", "S=1", "S=2", "QSA", "NE", "PT", "END", "F", "G", "QSD",
    ]);
    prop::collection::vec(one, 0..3).prop_map(|mut flags| {
        flags.sort_unstable();
        flags.dedup();
        if flags.is_empty() { String::new() } else { format!("[{}]", flags.join(",")) }
    })
}

fn condition() -> impl Strategy<Value = String> {
    let one = (
        prop::sample::select(vec!["%{HTTP_HOST}", "%{REQUEST_URI}", "%{QUERY_STRING}"]),
        prop::sample::select(vec!["^a\\.test$", "=a.test", "!^a", "b", "^$", "^/a", "q=1"]),
        prop::sample::select(vec!["", " [OR]", " [NC]", " [NC,OR]"]),
    );
    one.prop_map(|(input, pattern, flags)| format!("RewriteCond {input} {pattern}{flags}\n"))
}

fn rewrite_rule() -> impl Strategy<Value = String> {
    let target = prop::sample::select(vec![
        "-",
        "/a",
        "/b/$1",
        "http://t/$1",
        "/x?y=$1",
        "http://t/%1?",
        "/a/b/x",
    ]);
    (prop::collection::vec(condition(), 0..3), pattern(), target, flags()).prop_map(
        |(conditions, pattern, target, flags)| {
            format!("{}RewriteRule {pattern} {target} {flags}\n", conditions.concat())
        },
    )
}

fn redirect() -> impl Strategy<Value = String> {
    let unnegated = pattern().prop_map(|pattern| pattern.trim_start_matches('!').to_owned());
    prop_oneof![
        (path(), any::<bool>()).prop_map(|(path, slash)| {
            format!("Redirect 301 {path}{} http://r/p\n", if slash { "/" } else { "" })
        }),
        unnegated.prop_map(|pattern| format!("RedirectMatch {pattern} http://r/m/$1\n")),
    ]
}

fn configuration() -> impl Strategy<Value = String> {
    let rules = prop::collection::vec(prop_oneof![rewrite_rule(), redirect()], 0..20);
    let local = prop::collection::vec(prop_oneof![rewrite_rule(), redirect()], 0..6);
    (rules, local, any::<bool>()).prop_map(|(rules, local, inherit)| {
        let inherit = if inherit { "RewriteOptions Inherit\n" } else { "" };
        format!(
            "DocumentRoot /www\nRewriteEngine On\n{}<VirtualHost *:80>\nServerName a.test\n\
             RewriteEngine On\n{inherit}{}</VirtualHost>\n\
             <Directory /www/a>\nRewriteEngine On\nRewriteBase /a\n{}</Directory>\n",
            rules.concat(),
            local.concat(),
            local.concat()
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn same_decisions(
        text in configuration(),
        targets in prop::collection::vec((path(), prop::sample::select(vec!["", "/", "?q=1", "?"])), 12),
        host in prop::sample::select(vec!["a.test", "b.test", "A.TEST"]),
    ) {
        let files = Table::with(&[("/www/a/b/x", "f"), ("/www/index.html", "i"), ("/www/a/a", "a")]);
        let index = load(&text, &files, Lookup::Index);
        let scan = load(&text, &files, Lookup::Scan);
        let (Some(index), Some(scan)) = (index.site, scan.site) else {
            panic!("does not load: {text}\n{:?}", index.diagnostics);
        };
        let mut scratch = Scratch::default();
        for (path, tail) in targets {
            let target = format!("{path}{tail}");
            let by_index = ask(&index, &files, host, &target, &mut scratch);
            let by_scan = ask(&scan, &files, host, &target, &mut Scratch::default());
            prop_assert_eq!(by_index, by_scan, "{} {} with\n{}", host, target, text);
        }
    }
}

/// Of long lists the index knows where the texts stand, up to the end of the file.
#[test]
fn same_decisions_in_long_lists() {
    let files = Table::default();
    let redirects = (0..10_000).map(|i| format!("Redirect /a/{i} http://r/{i}\n"));
    let rules = (0..10_000).map(|i| {
        format!("RewriteCond %{{HTTP_HOST}} =h{i}\nRewriteRule ^/b/([^/]+)$ http://r/{i}/$1 [R]\n")
    });
    let text = redirects.chain(["RewriteEngine On\n".to_owned()]).chain(rules).collect::<String>();
    let index = load(&text, &files, Lookup::Index).site.unwrap();
    let scan = load(&text, &files, Lookup::Scan).site.unwrap();
    let mut scratch = Scratch::default();
    for (host, target, expected) in [
        ("x", "/a/0", "302 http://r/0"),
        ("x", "/a/9999/x", "302 http://r/9999/x"),
        ("h0", "/b/x", "302 http://r/0/x"),
        ("h9999", "/b/x", "302 http://r/9999/x"),
        ("h10000", "/b/x", "404"),
    ] {
        assert_eq!(ask(&index, &files, host, target, &mut scratch), expected);
        assert_eq!(ask(&scan, &files, host, target, &mut scratch), expected);
    }
}

//! The rule sets that are measured.

use std::borrow::Cow;

/// A kind of rule set: its name, its text for N rules, and the path and host that rule `i` answers.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) text: fn(usize) -> String,
    pub(crate) path: fn(usize) -> String,
    pub(crate) host: fn(usize) -> Cow<'static, str>,
    pub(crate) floor: Floor,
}

/// What a decision is held against.
pub(crate) enum Floor {
    /// A lookup of the path in a hash map of all of them.
    Lookup,
    /// The same for the host, where that tells the rules apart.
    HostLookup,
    /// One match of the rule's own pattern.
    Match(fn(usize) -> String),
}

pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "Redirect /test/N",
        text: |n| lines(n, |i| format!("Redirect 301 /test/{i} http://new.example/{i}\n")),
        path: |i| format!("/test/{i}"),
        host: any_host,
        floor: Floor::Lookup,
    },
    Kind {
        name: "RedirectMatch ^/test/N$",
        text: |n| lines(n, |i| format!("RedirectMatch 301 ^/test/{i}$ http://new.example/{i}\n")),
        path: |i| format!("/test/{i}"),
        host: any_host,
        floor: Floor::Lookup,
    },
    Kind {
        name: "RewriteRule ^/test/N/([^/]+)/(.*)$, two captures",
        text: |n| {
            let rule =
                |i| format!("RewriteRule {} http://new.example/$2/$1 [R=301,L]\n", captures(i));
            format!("RewriteEngine On\n{}", lines(n, rule))
        },
        path: |i| format!("/test/{i}/abc/def"),
        host: any_host,
        floor: Floor::Match(captures),
    },
    Kind {
        name: "RewriteRule behind RewriteCond %{HTTP_HOST} =hostN",
        text: |n| {
            let rule = |i| {
                format!(
                    "RewriteCond %{{HTTP_HOST}} =host{i}.example\n\
                     RewriteRule ^/(.*)$ http://new.example/{i}/$1 [R=301,L]\n"
                )
            };
            format!("RewriteEngine On\n{}", lines(n, rule))
        },
        path: |_| "/a/b".to_owned(),
        host: |i| format!("host{i}.example").into(),
        floor: Floor::HostLookup,
    },
    Kind {
        name: "RewriteMap txt: and one rule",
        text: |_| {
            "RewriteEngine On\nRewriteMap m txt:/map.txt\nRewriteCond ${m:$1} (.+)\n\
             RewriteRule ^/test/(.*)$ %1 [R=301,L]\n"
                .to_owned()
        },
        path: |i| format!("/test/{i}"),
        host: any_host,
        floor: Floor::Lookup,
    },
    Kind {
        name: "a mix of all, 5 % without a literal",
        text: |n| {
            let rule = |i: usize| match i % 20 {
                0 => format!("RewriteRule \\d{{9}}x{}[0-9]$ http://new.example/d [R,L]\n", i % 7),
                1..=9 => format!("Redirect 301 /test/{i} http://new.example/{i}\n"),
                10..=14 => format!("RedirectMatch 301 ^/test/{i}$ http://new.example/{i}\n"),
                _ => format!("RewriteRule ^/test/{i}$ http://new.example/{i} [R=301,L]\n"),
            };
            format!("RewriteEngine On\n{}", lines(n, rule))
        },
        // A multiple of 20 has no rule of its own path.
        path: |i| format!("/test/{}", if i % 20 == 0 { i - 1 } else { i }),
        host: any_host,
        floor: Floor::Lookup,
    },
];

fn any_host(_: usize) -> Cow<'static, str> {
    "www.example".into()
}

fn captures(i: usize) -> String {
    format!("^/test/{i}/([^/]+)/(.*)$")
}

/// `n` lines, numbered from 1.
pub(crate) fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (1..=n).map(line).collect()
}

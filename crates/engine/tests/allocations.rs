//! A decision that ends in a redirect allocates nothing once its scratch is warm, nor one that no rule answers.

#[allow(dead_code, reason = "the other tests use more of it")]
mod support;

use std::alloc::System;

use milepost_engine::{Lookup, Outcome, Scratch};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use support::{Ask, Table, load};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// One test, so that no other thread allocates meanwhile.
#[test]
fn decisions_allocate_nothing() {
    let files = Table::with(&[("/map.txt", "key http://t/value\n"), ("/www/x", "")]);
    for (directives, target, location) in [
        ("Redirect 301 /a http://t/a", "/a/b%20c?q", "http://t/a/b%20c?q"),
        ("Redirect /a /b", "/a", "http://www.test/b"),
        ("RedirectMatch ^/a/(.*)$ http://t/$1?x", "/a/b", "http://t/b?x"),
        ("RedirectMatch ^/([a-z]+)/(\\d+)$ http://t/$2/$1", "/ab/12", "http://t/12/ab"),
        (
            "RewriteEngine On\nRewriteRule ^/a/(.*)$ /b/$1\nRewriteRule ^/b/(.*) http://t/$1 [R,L]",
            "/a/x",
            "http://t/x",
        ),
        (
            "RewriteEngine On\nRewriteCond %{HTTP_HOST} ^www\\.(.*)$ [NC]\nRewriteRule ^/(.*)$ http://%1/$1 [R,L]",
            "/x",
            "http://test/x",
        ),
        (
            "RewriteEngine On\nRewriteMap m txt:/map.txt\nRewriteRule ^/m/(.*)$ ${m:$1|http://t/none} [R,L]",
            "/m/key",
            "http://t/value",
        ),
        ("<Location /l>\nRedirect /l/x http://t/x\n</Location>", "/l/x", "http://t/x"),
        (
            "<Directory /www>\nRewriteEngine On\nRewriteRule ^p/(.*)$ http://t/$1 [R,L]\n</Directory>",
            "/p/x",
            "http://t/x",
        ),
    ] {
        let text = format!("ServerName www.test\nDocumentRoot /www\n{directives}");
        let loaded = load(&text, &files, Lookup::Index);
        let site = loaded.site.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
        let mut scratch = Scratch::default();
        let ask = Ask { host: "www.test", target };
        for _ in 0..3 {
            let outcome = ask.decide(&site, &files, &mut scratch).outcome;
            assert!(
                matches!(outcome, Outcome::Redirect { location: got, .. } if got == location.as_bytes()),
                "{directives}: {outcome:?}"
            );
        }
        let miss = Ask { host: "www.test", target: "/none" };
        miss.decide(&site, &files, &mut scratch);
        for ask in [ask, miss] {
            let region = Region::new(ALLOCATOR);
            ask.decide(&site, &files, &mut scratch);
            assert_eq!(region.change().allocations, 0, "{directives} {}", ask.target);
        }
    }
}

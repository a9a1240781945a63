//! mod_expires: clocks run while both are asked, so what is compared is what does not depend on them.

use milepost_testkit::beside::fields;

use crate::support::{get, start};

const FILES: [(&str, &str); 6] = [
    ("a.html", "html"),
    ("a.css", "css"),
    ("a.png", "png"),
    ("a.unknown", "unknown"),
    ("dir/a.html", "below"),
    ("e.html", "not there"),
];

/// Longer than any age here that is counted from the request.
const LONG_SECONDS: i64 = 10 * 365 * 86_400;

/// What a client would make of it: statuses, ages, whether the date agrees with the age.
fn shown(head: &str, _: &str) -> String {
    let status = head.get(9..12).unwrap_or("none");
    let cache = fields(head, &["Cache-Control"]);
    let age = cache.split("max-age=").nth(1).map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<i64>().unwrap()
    });
    let time = |name| {
        let value = fields(head, &[name]);
        let text = value.rsplit(": ").next().unwrap_or_default().to_owned();
        let time = httpdate::parse_http_date(&text).ok()?;
        Some(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs().cast_signed())
    };
    let (expires, date) = (time("Expires"), time("Date"));
    let agrees = match (age, expires, date) {
        (Some(age), Some(expires), Some(date)) => (expires - date - age).abs() <= 1,
        _ => false,
    };
    // Counted from the modification of a file, an age is less at every second.
    let (age, moment) = if age > Some(LONG_SECONDS) { (None, expires) } else { (age, None) };
    let rest: String = cache.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    format!("{status} age {age:?} {moment:?} {agrees} {} {rest}", expires.is_some())
}

#[track_caller]
fn check(configuration: &str) {
    let requests = [
        "/a.html",
        "/a.css",
        "/a.png",
        "/a.unknown",
        "/dir/a.html",
        "/dir/",
        "/dir",
        "/gone",
        "/none",
        "/r",
        "/rr",
        "HEAD /a.html HTTP/1.1\n",
        "POST /a.html HTTP/1.1\n",
        "OPTIONS /a.html HTTP/1.1\n",
        "/a.html\nIf-Modified-Since: Wed, 01 May 2024 12:00:00 GMT",
        "/a.html\nRange: bytes=0-1",
    ];
    let requests: Vec<String> = requests.iter().map(|request| get(request)).collect();
    let configuration = format!(
        "Redirect /r http://t/\nRedirect gone /gone\nErrorDocument 404 /e.html\nRewriteEngine On\n\
         RewriteRule ^/rr$ http://t/ [R=308]\n{configuration}"
    );
    start(&configuration, &FILES).compare(&requests, shown);
}

#[test]
fn a_default_is_for_everything_that_is_no_error() {
    check("ExpiresActive On\nExpiresDefault \"access plus 1 month 2 days\"\n");
    check("ExpiresActive Off\nExpiresDefault A600\n");
    check("ExpiresDefault A600\n");
}

#[test]
fn types_have_times_of_their_own() {
    check(
        "ExpiresActive On\nExpiresByType text/html A100\nExpiresByType text/* \"now plus 5 minutes\"\n\
         ExpiresByType image/PNG A-500\nExpiresDefault \"modification plus 60 years\"\n\
         AddDefaultCharset utf-8\n",
    );
    check("ExpiresActive On\nExpiresByType image/* A100\nExpiresByType text/css M600\n");
}

#[test]
fn sections_override() {
    check(
        "ExpiresActive On\nExpiresByType text/html A100\nExpiresDefault A200\n\
         <Directory @ROOT@/htdocs/dir>\nExpiresByType text/html A300\nOptions +Indexes\n</Directory>\n\
         <Files a.css>\nExpiresActive Off\n</Files>\n\
         <Location /r>\nExpiresDefault A400\nExpiresByType text/html A500\n</Location>\n",
    );
}

#[test]
fn header_comes_after_it() {
    check(
        "ExpiresActive On\nExpiresDefault A200\nHeader append Cache-Control public\n\
         <Files a.css>\nHeader set Cache-Control no-store\nHeader unset Expires\n</Files>\n\
         <Files a.png>\nHeader always set Cache-Control private\n</Files>\n\
         <Location /r>\nHeader always set Cache-Control no-cache\n</Location>\n\
         <Location /rr>\nHeader always merge Cache-Control max-age=200\nHeader always unset Expires\n\
         </Location>\n",
    );
}

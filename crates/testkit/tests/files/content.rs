//! What is said of a file's content: mod_mime in all its contexts.

use crate::support::check;

/// Files of many names.
const FILES: [(&str, &str); 23] = [
    ("a.html.png", "two types"),
    ("a.html", "html"),
    ("A.HTML", "upper"),
    ("a.txt", "text"),
    ("a.html.de", "german"),
    ("a.de.html", "german first"),
    ("a.en.html.fr", "two languages"),
    ("a.html.gz", "zipped"),
    ("a.gz.Z.html", "zipped twice"),
    ("a.tar.gz", "tar"),
    ("a.html.utf8", "charset"),
    ("a.utf8", "charset alone"),
    ("a.png", "png"),
    ("a.unknown", "unknown"),
    ("a.html.unknown", "unknown last"),
    ("noext", "none"),
    (".html", "hidden"),
    ("..a.html", "hidden too"),
    ("a..html", "two dots"),
    ("a.", "a dot"),
    ("a.x", "added"),
    ("dir/a.html", "below"),
    ("dir/a.x", "added below"),
];

fn targets() -> Vec<String> {
    FILES.iter().map(|(name, _)| format!("/{name}")).collect()
}

#[track_caller]
fn check_all(configuration: &str, more: &[(&str, &str)]) {
    let targets = targets();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let files: Vec<_> = FILES.iter().chain(more).copied().collect();
    check(configuration, &files, &targets);
}

#[test]
fn without_any_directive_the_types_of_the_file_hold() {
    check_all("", &[]);
}

#[test]
fn extensions_add_up() {
    check_all(
        "AddLanguage de .de\nAddLanguage en-GB en\nAddLanguage fr .fr\nAddEncoding x-gzip .gz .tgz\n\
         AddEncoding x-compress Z\nAddCharset UTF-8 .utf8\nAddType Text/X-Mine .x\n\
         AddType \"text/html; charset=koi8-r; a=b\" .unknown\n",
        &[],
    );
}

#[test]
fn defaults_fill_what_is_missing() {
    check_all(
        "AddDefaultCharset utf-8\nDefaultLanguage EN\nAddLanguage de .de\nAddCharset latin1 .utf8\n\
         DefaultType none\n",
        &[],
    );
    check_all("AddDefaultCharset On\n<Files *.txt>\nAddDefaultCharset Off\n</Files>\n", &[]);
}

#[test]
fn sections_override_and_remove() {
    check_all(
        "AddType a/b .x\nAddLanguage de .de\nAddEncoding x-gzip .gz\nAddCharset utf-8 .utf8\n\
         <Directory @ROOT@/htdocs>\nRemoveType .x png\nRemoveLanguage de\n</Directory>\n\
         <Directory @ROOT@/htdocs/dir>\nForceType text/forced\nAddType c/d .x\n</Directory>\n\
         <Location /a.html.utf8>\nRemoveCharset .utf8\n</Location>\n\
         <FilesMatch \"\\.gz$\">\nRemoveEncoding .gz\nForceType application/Forced\n</FilesMatch>\n\
         <Files noext>\nForceType text/plain\nAddDefaultCharset x\n</Files>\n\
         <If \"%{REQUEST_URI} == '/a.txt'\">\nForceType text/if\n</If>\n",
        &[],
    );
}

#[test]
fn htaccess_files_say_all_of_it() {
    let htaccess = "AddType text/mine .x\nAddDefaultCharset utf-8\nForceType text/plain\n\
         <Files a.x>\nForceType None\n</Files>\nDefaultLanguage de\n";
    let outer = "AddEncoding gzip .gz\nAddLanguage de .de\nRemoveType .png\nAddCharset x .utf8\n";
    check_all("AddType a/b .x\n", &[("dir/.htaccess", htaccess), (".htaccess", outer)]);
}

#[test]
fn header_changes_what_is_said_of_content() {
    check_all(
        "AddEncoding x-gzip .gz\nAddLanguage de .de\n\
         Header set Cache-Control \"max-age=60, public\"\nHeader append Vary Accept-Encoding\n\
         Header merge Vary User-Agent\nHeader set Content-Language fr\n\
         <Files *.txt>\nHeader set Content-Type text/other\nHeader unset ETag\n</Files>\n\
         <Files *.html>\nHeader unset Last-Modified\nHeader edit Content-Type html plain\n</Files>\n\
         <Files a.png>\nHeader set Content-Encoding br\nHeader unset Content-Type\n</Files>\n\
         <Files a.tar.gz>\nHeader unset Content-Encoding\nHeader set ETag \"\\\"mine\\\"\"\n</Files>\n\
         <Files noext>\nHeader always set Content-Type a/b\nHeader unset Accept-Ranges\n</Files>\n",
        &[],
    );
}

#[test]
fn files_that_are_compressed_beforehand_are_found() {
    check(
        "RewriteEngine On\n\
         RewriteCond %{HTTP:Accept-encoding} gzip\n\
         RewriteCond %{DOCUMENT_ROOT}%{REQUEST_FILENAME}\\.gz -s\n\
         RewriteRule ^(.*)\\.(css|js)$ $1.$2.gz [QSA]\n\
         RewriteRule \\.css\\.gz$ - [T=text/css,E=no-gzip:1]\n\
         RewriteRule \\.js\\.gz$ - [T=text/javascript,E=no-gzip:1]\n\
         <FilesMatch \"(\\.js\\.gz|\\.css\\.gz)$\">\n\
         Header append Content-Encoding gzip\nHeader append Vary Accept-Encoding\n</FilesMatch>\n\
         <Directory @ROOT@/htdocs/d>\nAddEncoding gzip .gz\nRewriteEngine On\n\
         RewriteCond %{HTTP:Accept-Encoding} gzip\nRewriteCond %{REQUEST_FILENAME}\\.gz -f\n\
         RewriteRule ^(.*)$ $1.gz [L]\n\
         <Files *.css.gz>\nForceType text/css\n</Files>\n</Directory>\n",
        &[
            ("a.css", "plain"),
            ("a.css.gz", "zipped"),
            ("b.js", "plain"),
            ("c.css", "plain"),
            ("c.css.gz", ""),
            ("d/a.css", "plain"),
            ("d/a.css.gz", "zipped"),
            ("d/b.txt", "plain"),
            ("d/b.txt.gz", "zipped"),
        ],
        &[
            "/a.css",
            "/a.css\nAccept-Encoding: gzip, br",
            "/a.css?v=1\nAccept-Encoding: gzip",
            "/b.js\nAccept-Encoding: gzip",
            "/c.css\nAccept-Encoding: gzip",
            "/d/a.css",
            "/d/a.css\nAccept-Encoding: gzip",
            "/d/b.txt\nAccept-Encoding: gzip",
            "/d/b.txt.gz",
        ],
    );
}

#[test]
fn documents_of_errors_are_files_too() {
    check(
        "ErrorDocument 404 /e.html\nErrorDocument 403 /e.txt.de\nAddLanguage de .de\n\
         AddDefaultCharset utf-8\nRedirect 403 /f\nFileETag Size\n",
        &[("e.html", "not there"), ("e.txt.de", "forbidden")],
        &[
            "/none",
            "/f",
            "/none\nRange: bytes=0-1",
            "/none\nIf-None-Match: *",
            "HEAD /none HTTP/1.1",
        ],
    );
}

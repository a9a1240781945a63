//! Lists of directories have httpd's pages, byte by byte.

use std::path::Path;
use std::time::{Duration, SystemTime};

use milepost_testkit::beside::{Beside, fields};

/// Options, each for a directory of its own that has the same files.
const OPTIONS: [&str; 20] = [
    "",
    "IndexOptions FancyIndexing",
    "IndexOptions FancyIndexing HTMLTable",
    "IndexOptions FancyIndexing HTMLTable VersionSort FoldersFirst NameWidth=* DescriptionWidth=* \
     IgnoreCase\nAddDescription \"GIF <b>x</b>\" *.gif sub\nAddIcon (IMG,/i/g.gif) .gif *.png\n\
     AddIconByType (TXT,/i/t.gif) text/*\nAddIconByEncoding (GZ,/i/z.gif) X-gzip\nAddIcon /i/b.gif ..\n\
     AddIcon (DIR,/i/d.gif) ^^DIRECTORY^^\nAddIcon /i/blank.gif ^^BLANKICON^^\nDefaultIcon /i/u.gif\n\
     IndexIgnore *~ HEADER* README* .??*\nReadmeName README.html\nHeaderName HEADER.html\n\
     IndexStyleSheet /s.css\nIndexHeadInsert \"<meta x>\"",
    "IndexOptions FancyIndexing SuppressSize SuppressLastModified SuppressDescription IconsAreLinks \
     IconWidth IconHeight=9 XHTML NameWidth=12\nAddIcon /i/b.gif ..\nDefaultIcon /i/u.gif\n\
     AddAlt \"alt\" *.txt\nAddAltByType PNG image/png\nAddAlt /up ..",
    "IndexOptions FancyIndexing SuppressRules SuppressColumnSorting ScanHTMLTitles ShowForbidden \
     DescriptionWidth=30 Charset=utf-8 Type=text/html UseOldDateFormat\n\
     AddDescription \"a long description which goes on and on and on\" a.txt\n\
     AddDescription \"<em>long</em> &amp; &lt;short&gt; and much more of it than fits\" @DIR@/t.html",
    "IndexOptions FancyIndexing SuppressHTMLPreamble\nHeaderName HEAD.txt\nReadmeName HEADER.html",
    "IndexOptions FancyIndexing SuppressHTMLPreamble\nHeaderName HEADER.html\nReadmeName HEAD.txt",
    "IndexOptions FancyIndexing HTMLTable SuppressIcon XHTML IconsAreLinks SuppressColumnSorting\n\
     HeaderName none.html\nIndexOrderDefault Descending Size",
    "IndexOptions HTMLTable SuppressSize SuppressLastModified SuppressDescription SuppressRules\n\
     IndexStyleSheet /x\nAddIcon /i/g.gif .gif\nIndexOrderDefault Ascending Date",
    "IndexOptions FancyIndexing SuppressIcon SuppressSize DescriptionWidth=12 NameWidth=5\n\
     AddDescription \"a description that is as long as it must be\" *",
    "IndexOptions FancyIndexing SuppressIcon SuppressSize\n\
     AddDescription \"a description that is as long as it must be to be cut\" *",
    "IndexOptions +FoldersFirst VersionSort\nReadmeName README.html",
    "IndexOptions FancyIndexing IgnoreClient NameWidth=*",
    "IndexOptions FancyIndexing FoldersFirst\nIndexOptions -FancyIndexing +HTMLTable",
    "IndexOptions None",
    "IndexOptions FancyIndexing VersionSort IgnoreCase\nIndexIgnore ?.txt *.gif\nIndexIgnoreReset ON\n\
     IndexIgnore ..",
    "IndexOptions -XHTML\n<Files *.txt>\nRequire all denied\n</Files>",
    "IndexOptions +ShowForbidden +FancyIndexing\n<Files *.txt>\nRequire all denied\n</Files>",
    "IndexOptions FancyIndexing\n<Files a.txt>\nForceType text/html\n</Files>\nHeaderName a.txt\n\
     ReadmeName B.png\nIndexHeadInsert \"x\"\nAddDefaultCharset utf-8",
];

/// Queries, and none.
const QUERIES: [&str; 20] = [
    "",
    "?C=N;O=D",
    "?C=M;O=A",
    "?C=S;O=D",
    "?C=S&O=A",
    "?C=D;O=A",
    "?C=D;O=D",
    "?C=X;O=D",
    "?F=0",
    "?F=1;C=S",
    "?F=2;C=S;O=D",
    "?F=3",
    "?V=1",
    "?V=0;F=1",
    "?P=*.gif",
    "?P=a*;C=N;O=D",
    "?F=1;P=*%26%22*;V=1",
    "?P=.*",
    "?P=",
    "?O=D;x;C=S",
];

fn prepare(root: &Path) {
    for number in 0..OPTIONS.len() {
        let directory = root.join(format!("htdocs/v{number}"));
        for name in ["sub", "Zed", "we<ird", "a:b"] {
            std::fs::create_dir_all(directory.join(name)).unwrap();
        }
        let files: [(&str, usize); 12] = [
            ("a.txt", 6),
            ("B.png", 3000),
            ("pic10.gif", 200_000),
            ("pic9.gif", 1_234_567),
            ("very_long_file_name_that_is_longer_than_23.tar.gz", 9999),
            ("c.txt~", 2),
            (".hid", 0),
            ("sp ace&é\".txt", 973),
            ("x:y.txt", 972),
            ("HEAD.txt", 0),
            ("b.txt", 0),
            ("none", 10_188),
        ];
        for (name, length) in files {
            std::fs::write(directory.join(name), vec![b'x'; length]).unwrap();
        }
        std::fs::write(directory.join("HEAD.txt"), "a <b> & c\n").unwrap();
        std::fs::write(directory.join("README.html"), "read me\n").unwrap();
        std::fs::write(directory.join("HEADER.html"), "<h1>head</h1>\n").unwrap();
        let title = "<html><TITLE>\nThe  Title\nof <b>it</b></title></html>";
        std::fs::write(directory.join("t.html"), title).unwrap();
        for (at, entry) in std::fs::read_dir(&directory).unwrap().enumerate() {
            let seconds = 1_583_298_367 + (at % 3) as u64 * 40_000_000;
            let file = std::fs::File::open(entry.unwrap().path()).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        }
    }
}

#[test]
fn pages_are_those_of_httpd() {
    let mut text =
        "<Directory @ROOT@/htdocs>\nOptions +Indexes\n</Directory>\nAddEncoding x-gzip .gz\n"
            .to_owned();
    for (number, options) in OPTIONS.iter().enumerate() {
        let directory = format!("@ROOT@/htdocs/v{number}");
        let options = options.replace("@DIR@", &format!("v{number}"));
        text.push_str(&format!("<Directory {directory}>\n{options}\n</Directory>\n"));
    }
    let servers = Beside::start(&["autoindex"], &text, prepare);
    let mut requests = vec!["GET / HTTP/1.1".to_owned(), "GET /?F=1 HTTP/1.1".to_owned()];
    for number in 0..OPTIONS.len() {
        requests.push(format!("HEAD /v{number}/ HTTP/1.1"));
        requests.extend(QUERIES.map(|query| format!("GET /v{number}/{query} HTTP/1.1")));
    }
    servers.compare(&requests, |head, content| {
        // httpd sends what it has not counted in chunks.
        let content = match head.contains("chunked") {
            true => unchunked(content),
            false => content.to_owned(),
        };
        let status = head.get(9..12).unwrap_or("none");
        format!("{status}{}\n{content}", fields(head, &["Content-Type"]))
    });
}

#[test]
fn tracked_lists_have_the_validators_of_their_directories() {
    let text = "<Directory @ROOT@/htdocs>\nOptions +Indexes\nIndexOptions TrackModified\n\
        ExpiresActive Off\n</Directory>\n<Location /all>\nFileETag All\n</Location>\n\
        <Location /none>\nFileETag None\n</Location>\n<Location /size>\nFileETag Size\n</Location>\n\
        <Location /off>\nIndexOptions -TrackModified\n</Location>\n";
    let names = ["plain", "all", "none", "size", "off"];
    let servers = Beside::start(&["autoindex", "expires"], text, |root| {
        for name in names {
            let directory = root.join(format!("htdocs/{name}"));
            std::fs::create_dir(&directory).unwrap();
            let changed = SystemTime::UNIX_EPOCH + Duration::from_micros(1_583_298_367_250_000);
            std::fs::File::open(directory).unwrap().set_modified(changed).unwrap();
        }
    });
    let conditions =
        ["", "\nIf-None-Match: *", "\nIf-Modified-Since: Wed, 01 May 2030 12:00:00 GMT"];
    let requests: Vec<String> = names
        .iter()
        .flat_map(|name| conditions.map(|condition| format!("GET /{name}/ HTTP/1.1{condition}")))
        .collect();
    servers.compare(&requests, |head, _| {
        let status = head.get(9..12).unwrap_or("none");
        format!("{status}{}", fields(head, &["Last-Modified", "ETag"]))
    });
}

/// The content of chunks.
fn unchunked(mut text: &str) -> String {
    let mut content = String::new();
    while let Some((length, rest)) = text.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            break;
        }
        content.push_str(&rest[..length]);
        text = &rest[length + 2..];
    }
    content
}

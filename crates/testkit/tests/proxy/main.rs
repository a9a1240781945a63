//! The proxy asks what mod_proxy asks, and makes of the answer what mod_proxy makes of it: real httpd and
//! milepost stand in front of one backend that records.

mod content;
mod support;
mod tls;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use milepost_testkit::directory::Directory;

use support::{Both, LOCAL};

/// What both must pass on alike. The rest is each one's own.
const COMPARED: [&str; 14] = [
    "Host",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Server",
    "Content-Length",
    "Transfer-Encoding",
    "Content-Type",
    "X-Sent",
    "X-Hop",
    "TE",
    "Cookie",
    "X-Set",
    "Upgrade",
    "Range",
];

/// Of answers.
const ANSWERED: [&str; 7] =
    ["Location", "Content-Location", "Set-Cookie", "X-Hop", "X-Edited", "Content-Length", "ETag"];

#[test]
fn paths_are_mapped_alike() {
    check(
        "ProxyPass /no !\n\
         ProxyPass /app http://@BACKEND@/back\n\
         ProxyPass /slash/ http://@BACKEND@/s/\n\
         ProxyPass /mixed/ http://@BACKEND@/m\n\
         ProxyPass /raw http://@BACKEND@/raw nocanon\n\
         ProxyPass /noquery http://@BACKEND@/nq noquery\n\
         ProxyPass /two//x http://@BACKEND@/two\n\
         ProxyPass /first http://@BACKEND@/first\n\
         ProxyPass /first/second http://@BACKEND@/never\n\
         ProxyPassMatch ^/match/(\\w+)/(.*)$ http://@BACKEND@/$2/$1\n\
         ProxyPassMatch \\.gif$ http://@BACKEND@/gif\n\
         ProxyPassMatch ^/not/ !\n\
         ProxyPass /not/x http://@BACKEND@/not\n",
        &[
            "/app",
            "/app/",
            "/app/x",
            "/apple",
            "/app//x",
            "/app/a%20b",
            "/app/%E4",
            "/app/a%2541",
            "/app/x?y=z",
            "/app/x?",
            "/app/x;p=1",
            "/app/~!$&'()*+,=:@",
            "/app/%22%3C%3E%5E%60%7B",
            "/app/a/../b",
            "/app/./c",
            "/app?a=%20b",
            "/slash",
            "/slash/",
            "/slash/x",
            "/mixed/x",
            "/raw/a%20b",
            "/raw/a%41b?x=y",
            "/raw//x",
            "/raw/%7e?%41",
            "/noquery/x?y",
            "/two/x/y",
            "/two//x/y",
            "/first/second/x",
            "/match/one/two/three",
            "/match/%41/b%20c",
            "/x/y.gif",
            "/x/y.gif?q",
            "/not/x",
            "/no/x",
            "/local.txt",
            "/app/a%2fb",
            "/app/%",
        ],
    );
}

#[test]
fn phases_come_in_the_same_order() {
    check(
        "Redirect /both http://t/redirect\n\
         ProxyPass /both http://@BACKEND@/both\n\
         Alias /alias @ROOT@/htdocs\n\
         ProxyPass /alias http://@BACKEND@/alias\n\
         ProxyPass /ruled http://@BACKEND@/never\n\
         ProxyPass /pass http://@BACKEND@/passed\n\
         ProxyPass /gone http://@BACKEND@/never\n\
         RewriteEngine On\n\
         RewriteRule ^/ruled/file$ @ROOT@/htdocs/local.txt\n\
         RewriteRule ^/ruled/redirect$ http://t/rule [R]\n\
         RewriteRule ^/pt$ /pass/x [PT]\n\
         RewriteRule ^/gone - [G]\n\
         RewriteRule ^/p/(.*)$ http://@BACKEND@/p/$1 [P]\n\
         RewriteRule ^/pne/(.*)$ http://@BACKEND@/pne/%20$1 [P,NE]\n\
         RewriteRule ^/pq/(.*)$ http://@BACKEND@/pq?x=$1 [P,QSA]\n\
         <Location /loc>\nProxyPass http://@BACKEND@/loc\n</Location>\n\
         <Location /loc/redirected>\nRedirect /loc/redirected http://t/loc\n</Location>\n\
         <Location /loc/denied>\nRequire all denied\n</Location>\n\
         <LocationMatch ^/lm/(.*)>\nProxyPassMatch http://@BACKEND@/lm/$1\n</LocationMatch>\n\
         <Location /both/sub>\nProxyPass http://@BACKEND@/sub\n</Location>\n\
         <Location /set>\nSetEnv no-proxy 1\nProxyPass http://@BACKEND@/set\n</Location>\n\
         SetEnvIf Request_URI ^/unless no-proxy\n\
         ProxyPass /unless http://@BACKEND@/unless\n\
         <Proxy http://@BACKEND@/closed>\nRequire all denied\n</Proxy>\n\
         ProxyPass /closed http://@BACKEND@/closed\n\
         <Directory @ROOT@/htdocs/dir>\n\
         RewriteEngine On\nRewriteRule ^(.*)\\.p$ http://@BACKEND@/dir/$1 [P]\n</Directory>\n",
        &[
            "/both/x",
            "/both/sub/x",
            "/alias/local.txt",
            "/ruled/file",
            "/ruled/redirect",
            "/pt",
            "/gone/x",
            "/p/a",
            "/p/a%20b?q=r",
            "/p/?x",
            "/pne/a?q",
            "/pq/a?b=c",
            "/loc",
            "/loc/x",
            "/loc/redirected/x",
            "/loc/denied/x",
            "/lm/a/b",
            "/set/x",
            "/unless/x",
            "/closed/x",
            "/dir/a.p",
            "/dir/a%20b.p?q=r",
            "/local.txt",
        ],
    );
}

/// mod_dir comes after the rules: a slash is missing all the same, and what rules make of the index counts.
#[test]
fn a_directory_that_rules_send_to_a_backend_is_one_still() {
    let targets = [
        "/dir",
        "/dir/",
        "/dir?x=y",
        "/dir/?x=y",
        "/dir/sub",
        "/dir/sub/",
        "/dir/index.html",
        "/dir/none",
    ];
    for more in
        ["", "DirectoryCheckHandler On\n", "DirectorySlash Off\n", "DirectoryIndex disabled\n"]
    {
        for flags in ["P", "P,QSA", "P,NS"] {
            let configuration = format!(
                "<Directory @ROOT@/htdocs/>\nRewriteEngine On\n\
                 RewriteRule ^dir(.*)$ http://@BACKEND@/b?q=$1 [{flags}]\n{more}</Directory>\n"
            );
            check(&configuration, &targets);
        }
    }
}

#[test]
fn answers_are_mapped_back_alike() {
    check(
        "ProxyPass /app http://@BACKEND@/back\n\
         ProxyPassReverse /app http://@BACKEND@/back\n\
         ProxyPassReverse /other http://other.example/\n\
         ProxyPassReverse /path /anyhost\n\
         ProxyPassReverseCookiePath /back /app\n\
         ProxyPassReverseCookiePath / /root/\n\
         ProxyPassReverseCookieDomain int.example www.test\n\
         Header edit Set-Cookie ^a= z=\n\
         Header set X-Edited \"%{SECRET}e\"\n\
         SetEnvIf Request_URI . SECRET=kept\n\
         <Location /app/status>\nErrorDocument 404 /local.txt\nErrorDocument 500 \"ours\"\n\
         ProxyErrorOverride On\n</Location>\n",
        &[
            "/app/location/http://@BACKEND@/back/x",
            "/app/location/http://@BACKEND@/backx",
            "/app/location/HTTP://@BACKEND@/back/x?y#z",
            "/app/location/http://other.example/y",
            "/app/location/http://third.example/anyhost/y",
            "/app/location//anyhost/y",
            "/app/location/relative",
            "/app/cookie/a=b;%20path=/back/x",
            "/app/cookie/a=b;%20Path=/elsewhere",
            "/app/cookie/a=b;%20Path=/back;%20Domain=int.example",
            "/app/cookie/a=b;%20domain=sub.int.example",
            "/app/cookie/a=b;%20Domain=INT.EXAMPLE;%20path=/back;%20Secure",
            "/app/status/404",
            "/app/status/500",
            "/app/status/503",
            "/app/status/304",
            "/app/status/200",
            "/app/x",
        ],
    );
}

#[test]
fn methods_and_fields_are_passed_on_alike() {
    let configuration = "ProxyPass /app http://@BACKEND@/back\n\
         ProxyPass /keep http://@BACKEND@/keep\n\
         <Location /keep>\nProxyPreserveHost On\nProxyAddHeaders Off\n</Location>\n\
         RequestHeader set X-Set \"%{REQUEST_METHOD}s\"\n";
    let requests: Vec<String> = [
        ("HEAD", "/app/x", "", ""),
        ("OPTIONS", "/app/x", "", ""),
        ("DELETE", "/app/x", "", ""),
        ("FOO", "/app/x", "", ""),
        ("POST", "/app/x", "Content-Length: 3\r\nContent-Type: a/b\r\n", "abc"),
        ("POST", "/app/x", "Content-Length: 0\r\n", ""),
        ("POST", "/app/x", "", ""),
        ("GET", "/app/x", "Content-Length: 2\r\n", "hi"),
        ("GET", "/keep/x", "X-Forwarded-For: 192.0.2.1\r\n", ""),
        ("GET", "/app/x", "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Host: a\r\n", ""),
        ("GET", "/app/x", "Connection: X-Hop\r\nX-Hop: 1\r\nX-Sent: 2\r\nTE: trailers\r\n", ""),
        ("GET", "/app/x", "Cookie: a=b\r\nX-Sent: 1\r\n", ""),
        ("GET", "/app/x", "Connection: Upgrade\r\nUpgrade: websocket\r\n", ""),
    ]
    .map(|(method, target, fields, content)| {
        format!("{method} {target} HTTP/1.1\r\nHost: www.test\r\n{fields}Connection: close\r\n\r\n{content}")
    })
    .to_vec();
    check_requests(configuration, &requests);
}

#[test]
fn balancers_answer_alike() {
    check(
        "<Proxy balancer://pool>\nBalancerMember http://@BACKEND@/one route=a\nProxySet stickysession=S\n</Proxy>\n\
         ProxyPass /b balancer://pool\n\
         ProxyPass /c/ balancer://pool/deep/\n\
         ProxyPassReverse /b balancer://pool\n\
         RewriteEngine On\nRewriteRule ^/r/(.*) balancer://pool/$1 [P]\n",
        &["/b", "/b/x?y", "/c/x", "/r/x", "/b/location/http://@BACKEND@/one/z"],
    );
}

/// Asks for each target with `GET`.
#[track_caller]
fn check(configuration: &str, targets: &[&str]) {
    let requests: Vec<String> = targets
        .iter()
        .map(|target| {
            format!("GET {target} HTTP/1.1\r\nHost: www.test\r\nConnection: close\r\n\r\n")
        })
        .collect();
    check_requests(configuration, &requests);
}

#[track_caller]
fn check_requests(configuration: &str, requests: &[String]) {
    let backend = Recorder::start();
    let directory = Directory::new().unwrap();
    let fill = |text: &str| text.replace("@BACKEND@", &backend.address.to_string());
    let both = Both::start(&directory, &fill(configuration));
    let mut wrong = String::new();
    for request in requests {
        let request = fill(request);
        let expected = ask(both.httpd, &request, &backend);
        let found = ask(both.milepost, &request, &backend);
        if expected != found {
            writeln!(wrong, "{request}  httpd:    {expected}\n  milepost: {found}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{configuration}\n{wrong}");
}

/// What the backend was asked and what came back, as far as both must agree.
fn ask(address: SocketAddr, request: &str, backend: &Recorder) -> String {
    backend.seen.lock().unwrap().clear();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // A reset after the answer is an end too.
    let _ = stream.read_to_end(&mut bytes);
    let answer = String::from_utf8_lossy(&bytes).into_owned();
    let (head, content) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let mut text = String::new();
    for seen in backend.seen.lock().unwrap().iter() {
        text.push_str(seen.lines().next().unwrap_or_default());
        text.push_str(&fields(seen, &COMPARED));
        text.push_str(" => ");
    }
    text.push_str(head.get(9..12).unwrap_or("no status"));
    let passed = !backend.seen.lock().unwrap().is_empty();
    let own_error = !content.starts_with("backend") && content != LOCAL;
    if passed && !own_error {
        text.push_str(&fields(head, &ANSWERED));
    } else {
        text.push_str(&fields(head, &["Location"]));
    }
    if content.starts_with("backend") || content == LOCAL || content == "ours" {
        text.push_str(content);
    }
    // The ports of both differ.
    text.replace(&format!(":{}", address.port()), "")
}

fn fields(head: &str, names: &[&str]) -> String {
    let mut text = String::new();
    for name in names {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        for (_, value) in lines.filter(|(other, _)| other.eq_ignore_ascii_case(name)) {
            write!(text, " | {name}: {value}").unwrap();
        }
    }
    text
}

/// A backend that records what it is asked, and answers as the path says.
struct Recorder {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn start() -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let seen = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &seen));
            }
        });
        Recorder { address, seen }
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>) {
    let mut ahead = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let end = loop {
            if let Some(end) = ahead.windows(4).position(|part| part == b"\r\n\r\n") {
                break end + 4;
            }
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => ahead.extend_from_slice(&buffer[..count]),
            }
        };
        let head = String::from_utf8_lossy(&ahead[..end]).into_owned();
        let length = fields(&head, &["Content-Length"]);
        let length = length.rsplit(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
        while ahead.len() < end + length {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => ahead.extend_from_slice(&buffer[..count]),
            }
        }
        ahead.drain(..end + length);
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_head = head.starts_with("HEAD ");
        seen.lock().unwrap().push(head);
        let after = |mark: &str| target.split_once(mark).map(|(_, rest)| rest.replace("%20", " "));
        let (status, field) = if let Some(location) = after("/location/") {
            (
                "302 Found".to_owned(),
                format!("Location: {location}\r\nContent-Location: {location}\r\n"),
            )
        } else if let Some(cookie) = after("/cookie/") {
            ("200 OK".to_owned(), format!("Set-Cookie: {cookie}\r\n"))
        } else if let Some(status) = after("/status/") {
            (format!("{status} Status"), "ETag: \"x\"\r\n".to_owned())
        } else {
            ("200 OK".to_owned(), String::new())
        };
        let content = if status.starts_with("304") || is_head { "" } else { "backend" };
        let length = if status.starts_with("304") { "" } else { "Content-Length: 7\r\n" };
        let answer = format!(
            "HTTP/1.1 {status}\r\n{field}Server: recorder\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\
             {length}\r\n{content}"
        );
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

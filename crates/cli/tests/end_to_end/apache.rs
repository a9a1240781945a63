//! milepost and real Apache, started on the same configuration file, give the same answers on a socket.
//!
//! The file is one that Apache takes, with its `LoadModule`, `User` and `PidFile`: nothing is changed
//! for milepost. Status, Location and the served content are compared, and held against what is right,
//! so that two wrong servers do not pass for a right one.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use milepost_testkit::client::Client;
use milepost_testkit::directory::Directory;
use milepost_testkit::httpd::{HttpdError, Program, free_port};
use serde_json::Value;

use crate::support::{Server, ask, lab, milepost, write};

/// Numbers of rules: the fewest of the experiment, an odd one, and one that no scan finds by luck.
const GENERATED_RULES: [u32; 3] = [20, 101, 1000];

/// Numbers of rules of the forms below: one rule is the first, the middle and the last.
const FORM_RULES: [u32; 4] = [1, 2, 10, 1000];

/// Ports tried; more than one only when somebody else takes it at that moment.
const PORTS_MAX: u32 = 5;

/// Status, Location and the content if it is a file's.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    target: String,
    status: u16,
    location: Option<String>,
    file: Option<String>,
}

#[test]
fn generated_configurations_are_served_unchanged() {
    let apache = apache();
    for rules in GENERATED_RULES {
        let directory = Directory::new().expect("a directory");
        let out = directory.path().join("out");
        let count = rules.to_string();
        let servers = "milepost,milepost-scan,apache,nginx";
        let sizes = ["--rules", &count, "--rounds", "1", "--requests", "1"];
        let result = lab(&out, &[&sizes[..], &["--servers", servers]].concat());

        let mut methods = Vec::new();
        for alternative in of_server(&result, "apache") {
            let file = out.join(text(&alternative["configuration"]));
            let method = text(&alternative["method"]);
            let address = listen_address(&file);
            let theirs = {
                let _httpd = apache.start(&file).unwrap_or_else(|e| panic!("{method}: {e}"));
                answers(address, rules)
            };
            let file = file.to_str().expect("a path in UTF-8");
            for options in [&["-f", file][..], &["--scan", "-f", file]] {
                let server = Server::start(options);
                assert_eq!(answers(server.address, rules), theirs, "{method}, {options:?}");
                server.stop();
            }
            assert_eq!(theirs, right_answers(method, rules), "{method}");
            methods.push(method.to_owned());
        }
        // What the experiment has in Apache's language; a method that got lost would not be missed.
        let all =
            "none file one redirect redirectmatch redirectmatch-unanchored rewriterule rewritemap";
        assert_eq!(methods.join(" "), all);
    }
}

/// A way to write redirects, as people publish it.
struct Form {
    name: &'static str,
    /// A line after `each ` stands once for every rule, with `@N` for its number.
    text: &'static str,
    right: Right,
}

const FORMS: [Form; 12] = [
    Form {
        name: "Redirect",
        text: "each Redirect 301 /test/@N http://www.example.org/new/@N",
        right: Right::Each,
    },
    Form {
        name: "Redirect with a word for the status",
        text: "each Redirect permanent /test/@N http://www.example.org/new/@N",
        right: Right::Each,
    },
    Form {
        name: "RedirectPermanent",
        text: "each RedirectPermanent /test/@N http://www.example.org/new/@N",
        right: Right::Each,
    },
    Form {
        name: "RedirectMatch",
        text: "each RedirectMatch 301 ^/test/@N$ http://www.example.org/new/@N",
        right: Right::Each,
    },
    Form {
        name: "RedirectMatch without anchors",
        text: "each RedirectMatch 301 /test/@N http://www.example.org/new/@N",
        right: Right::First,
    },
    Form {
        name: "RewriteRule",
        text: "RewriteEngine On\n\
               each RewriteRule ^/test/@N$ http://www.example.org/new/@N [R=301,L]",
        right: Right::Each,
    },
    Form {
        name: "RewriteMap",
        text: "RewriteEngine On\n\
               RewriteMap m \"txt:@ROOT/map.txt\"\n\
               RewriteCond ${m:$1|NONE} !=NONE\n\
               RewriteRule ^/test/(.*)$ ${m:$1} [R=301,L]",
        right: Right::Each,
    },
    Form {
        name: "a virtual host, with access in the words of Apache 2.2",
        text: "<VirtualHost *:@PORT>\n\
               ServerName www.example.org\n\
               DocumentRoot \"@ROOT/htdocs\"\n\
               <Directory />\n\
               Options FollowSymLinks\nAllowOverride None\nOrder deny,allow\nDeny from all\n\
               </Directory>\n\
               <Directory \"@ROOT/htdocs\">\n\
               Options None\nAllowOverride None\nOrder allow,deny\nAllow from all\n\
               </Directory>\n\
               each Redirect 301 /test/@N http://www.example.org/new/@N\n\
               </VirtualHost>",
        right: Right::Each,
    },
    Form {
        name: "Redirect in a directory",
        text: "<Directory \"@ROOT/htdocs\">\n\
               each Redirect 301 /test/@N http://www.example.org/new/@N\n\
               </Directory>",
        right: Right::Each,
    },
    Form {
        name: "RewriteRule in a directory",
        text: "<Directory \"@ROOT/htdocs\">\n\
               RewriteEngine On\n\
               each RewriteRule ^test/@N$ http://www.example.org/new/@N [R=301,L]\n\
               </Directory>",
        right: Right::Each,
    },
    Form {
        name: "RewriteRule in a directory, with the slash that is never there",
        text: "<Directory \"@ROOT/htdocs\">\n\
               RewriteEngine On\n\
               each RewriteRule /test/@N http://www.example.org/new/@N [R=301,L]\n\
               </Directory>",
        right: Right::None,
    },
    Form {
        name: "an included file of rules",
        text: "<IfModule mod_rewrite.c>\n\
               RewriteEngine On\n\
               Define new http://www.example.org/new\n\
               Include \"@ROOT/rules.conf\"\n\
               </IfModule>",
        right: Right::Each,
    },
];

/// What a form answers.
#[derive(Clone, Copy, Debug)]
enum Right {
    /// Each path its own redirect.
    Each,
    /// The first rule whose text the path begins with.
    First,
    /// No rule ever matches.
    None,
}

#[test]
fn published_forms_answer_as_apache_does() {
    let apache = apache();
    for Form { name, text, right } in FORMS {
        for rules in FORM_RULES {
            let directory = Directory::new().expect("a directory");
            let (file, theirs) = on_free_port(&apache, directory.path(), text, rules);
            for options in [&["-f", &*file][..], &["--scan", "-f", &file]] {
                let server = Server::start(options);
                assert_eq!(answers(server.address, rules), theirs, "{name}, {rules} rules");
                server.stop();
            }
            let expected = paths(rules).map(|(target, rule)| match (right, rule) {
                (Right::Each, Some(rule)) => redirect(target, &rule.to_string()),
                (Right::First, Some(rule)) => redirect(target, first_prefix(rule, rules)),
                _ => not_found(target),
            });
            assert_eq!(theirs, expected.collect::<Vec<_>>(), "{name}, {rules} rules");
        }
    }
}

/// The words in this order stood in a published test; both refuse them, at the same place.
#[test]
fn what_apache_refuses_milepost_refuses() {
    let apache = apache();
    let directory = Directory::new().expect("a directory");
    let text = "<Directory \"@ROOT/htdocs\">\n\
                Redirect /redir.bin http://www.example.org/f1k.bin permanent\n</Directory>\n";
    let file = configuration(&apache, directory.path(), 1, text, 1);
    let line = fs::read_to_string(&file).expect("our file");
    let line =
        line.lines().position(|line| line.starts_with("Redirect")).expect("the directive") + 1;

    let Err(HttpdError::Refused(refusal)) = apache.check(Path::new(&file)) else {
        panic!("Apache takes it")
    };
    let place = refusal.place.expect("a place");
    assert_eq!((place.0.to_str(), place.1 as usize), (Some(&*file), line));

    let finished = milepost(&["serve", "-f", &file]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains(&format!("{file}:{line}:10: error: ")), "{}", finished.stderr);
}

/// Writes the configuration and starts Apache on it; returns the file and Apache's answers.
#[track_caller]
fn on_free_port(
    apache: &Program,
    directory: &Path,
    form: &str,
    rules: u32,
) -> (String, Vec<Answer>) {
    for _ in 0..PORTS_MAX {
        let port = free_port().expect("a free port");
        let file = configuration(apache, directory, port, form, rules);
        match apache.start(Path::new(&file)) {
            Ok(_httpd) => return (file, answers(SocketAddr::from(([127, 0, 0, 1], port)), rules)),
            Err(HttpdError::PortInUse) => {}
            Err(error) => panic!("{form}: {error}"),
        }
    }
    panic!("{PORTS_MAX} ports in a row were taken");
}

/// Writes a whole configuration, as Apache wants it, and the files that `form` names.
fn configuration(apache: &Program, root: &Path, port: u16, form: &str, rules: u32) -> String {
    let numbers = 1..=rules;
    fs::create_dir_all(root.join("htdocs")).expect("a writable directory");
    write(root, "mime.types", "text/plain txt\n");
    let map = numbers.clone().map(|n| format!("{n} http://www.example.org/new/{n}\n"));
    write(root, "map.txt", &map.collect::<String>());
    let included =
        numbers.clone().map(|n| format!("RewriteRule ^/test/{n}$ ${{new}}/{n} [R=301,L]\n"));
    write(root, "rules.conf", &included.collect::<String>());

    let mut text = format!(
        "ServerRoot \"{root}\"\nListen 127.0.0.1:{port}\nServerName www.example.org\n{modules}{process}\
         DocumentRoot \"{root}/htdocs\"\n\
         <Directory \"{root}/htdocs\">\nRequire all granted\n</Directory>\n",
        root = root.display(),
        modules = apache.load_modules(),
        process = apache.process_directives(root),
    );
    for line in form.lines() {
        match line.strip_prefix("each ") {
            Some(each) => numbers.clone().for_each(|number| {
                text.push_str(&each.replace("@N", &number.to_string()));
                text.push('\n');
            }),
            None => {
                let line = line.replace("@ROOT", &root.display().to_string());
                text.push_str(&line.replace("@PORT", &port.to_string()));
                text.push('\n');
            }
        }
    }
    write(root, "httpd.conf", &text)
}

/// What is asked: first, middle and last rule, and paths that are nearly one; with the rule's number.
fn paths(rules: u32) -> impl Iterator<Item = (String, Option<u32>)> {
    let of_rules = [1, (rules / 2).max(1), rules].map(|n| (format!("/test/{n}"), Some(n)));
    let misses = ["/test/none", "/test/", "/tes/1"].map(|path| (path.to_owned(), None));
    of_rules.into_iter().chain(misses)
}

#[track_caller]
fn answers(address: SocketAddr, rules: u32) -> Vec<Answer> {
    let mut client = Client::new(address);
    let asked = paths(rules).map(|(target, _)| {
        let response = ask(&mut client, &target);
        let location = response.value("Location").map(|v| String::from_utf8_lossy(v).into_owned());
        let content = String::from_utf8_lossy(&response.content).into_owned();
        let file = (response.status == 200).then_some(content);
        Answer { target, status: response.status, location, file }
    });
    asked.collect()
}

/// What each method of the experiment should answer, and where it is known to be wrong, does.
fn right_answers(method: &str, rules: u32) -> Vec<Answer> {
    let right = paths(rules).map(|(target, rule)| match (method, rule) {
        ("none", _) | (_, None) => not_found(target),
        ("file", Some(_)) => {
            Answer { target, status: 200, location: None, file: Some("success\n".to_owned()) }
        }
        ("one", Some(rule)) if rule != rules => not_found(target),
        ("redirectmatch-unanchored", Some(rule)) => redirect(target, first_prefix(rule, rules)),
        (_, Some(rule)) => redirect(target, &rule.to_string()),
    });
    right.collect()
}

/// Returns the smallest number up to `rules` that the digits of `rule` begin with.
fn first_prefix(rule: u32, rules: u32) -> &'static str {
    const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let first = rule.to_string().as_bytes()[0] - b'0';
    assert!(u32::from(first) <= rules, "one digit is always a rule");
    DIGITS[usize::from(first)]
}

fn redirect(target: String, number: &str) -> Answer {
    let location = Some(format!("http://www.example.org/new/{number}"));
    Answer { target, status: 301, location, file: None }
}

fn not_found(target: String) -> Answer {
    Answer { target, status: 404, location: None, file: None }
}

fn of_server<'a>(result: &'a Value, server: &str) -> impl Iterator<Item = &'a Value> {
    let alternatives = result["alternatives"].as_array().expect("alternatives");
    alternatives.iter().filter(move |alternative| alternative["server"] == server)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// Reads where a configuration listens.
fn listen_address(file: &Path) -> SocketAddr {
    let text = fs::read_to_string(file).expect("a configuration");
    let address = text.lines().find_map(|line| line.strip_prefix("Listen "));
    address.and_then(|address| address.parse().ok()).expect("a Listen with address and port")
}

fn apache() -> Program {
    Program::find().expect("this test needs Apache; `make test` installs it")
}

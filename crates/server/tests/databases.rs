//! Maps of type `dbd:` against real PostgreSQL and MariaDB, on Unix sockets of their own.
#![cfg(feature = "dbd")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use milepost_engine::{Database, Driver};
use milepost_server::Helpers;
use tempfile::TempDir;

/// How long a database may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(60);

/// What is asked of both; their tables are made by the connection itself.
const QUERY: &str = "SELECT target FROM moved WHERE path = %s";

#[test]
fn postgresql_answers() {
    let server = Server::postgresql();
    let connection = format!("host={} user=milepost dbname=postgres", server.socket.display());
    // Like libpq, it takes a URL too.
    let url = format!(
        "postgres://milepost@{}/postgres",
        server.socket.display().to_string().replace('/', "%2F")
    );
    let types = "SELECT 7 FROM moved WHERE path = %s";
    let tables = [
        "CREATE TEMPORARY TABLE moved (path text, target text)",
        "INSERT INTO moved VALUES ('/a', 'http://new.example/a'), ('/null', NULL)",
        "CREATE TEMPORARY TABLE numbered (id integer, target text)",
        "INSERT INTO numbered VALUES (12, 'twelve')",
    ];
    let by_number = "SELECT target FROM numbered WHERE id = %d";
    for params in [connection, url] {
        let database = database(Driver::Pgsql, &params, &tables, &[QUERY, by_number, types]);
        let helpers = server.wait(&database);
        check(&helpers, &database);
        let ask = |sql: &str, key: &str| helpers.query(&database, sql, key.as_bytes());
        assert_eq!(ask(by_number, "12"), Some(b"twelve".to_vec()));
        assert_eq!(ask(types, "/a"), Some(b"7".to_vec()));
        // The server takes neither of these, and the connection outlives them: its tables are still there.
        assert_eq!(ask(by_number, "no number"), None);
        assert_eq!(helpers.query(&database, QUERY, b"/\xff"), None);
        check(&helpers, &database);
    }
}

#[test]
fn a_type_that_is_not_read_is_said() {
    let server = Server::postgresql();
    let params = format!("host={} user=milepost dbname=postgres", server.socket.display());
    let plain = database(Driver::Pgsql, &params, &[], &["SELECT 'x' WHERE 'k' = %s"]);
    server.wait(&plain);
    let other = database(Driver::Pgsql, &params, &[], &["SELECT now() WHERE 'k' = %s"]);
    assert_eq!(Helpers::default().query(&other, &other.statements[0], b"k"), None);
    let cast = database(Driver::Pgsql, &params, &[], &["SELECT CAST(1.50 AS text) WHERE 'k' = %s"]);
    let value = Helpers::default().query(&cast, &cast.statements[0], b"k");
    assert_eq!(value, Some(b"1.50".to_vec()));
}

#[test]
fn mariadb_answers() {
    let server = Server::mariadb();
    let params = format!("sock={},user=root,dbname=test", server.socket.display());
    let tables = [
        "CREATE TEMPORARY TABLE moved (path varchar(99) COLLATE utf8mb4_bin, target text)",
        "INSERT INTO moved VALUES ('/a', 'http://new.example/a'), ('/null', NULL)",
    ];
    let number = "SELECT 7 FROM moved WHERE path = %s";
    let database = database(Driver::Mysql, &params, &tables, &[QUERY, number]);
    let helpers = server.wait(&database);
    check(&helpers, &database);
    assert_eq!(helpers.query(&database, number, b"/a"), Some(b"7".to_vec()));
}

/// A database that has gone is asked anew by each request, and found again when it is back.
#[test]
fn a_connection_that_breaks_is_opened_again() {
    let mut server = Server::mariadb();
    let params = format!("sock={},user=root,dbname=test", server.socket.display());
    let database = database(Driver::Mysql, &params, &[], &["SELECT 'x' FROM DUAL WHERE 'k' = %s"]);
    let helpers = server.wait(&database);
    server.stop();
    assert_eq!(helpers.query(&database, &database.statements[0], b"k"), None);
    server.start();
    server.wait(&database);
    let value = helpers.query(&database, &database.statements[0], b"k");
    assert_eq!(value, Some(b"x".to_vec()));
}

#[track_caller]
fn check(helpers: &Helpers, database: &Database) {
    let ask = |key: &str| helpers.query(database, QUERY, key.as_bytes());
    assert_eq!(ask("/a"), Some(b"http://new.example/a".to_vec()));
    for absent in ["/b", "/A", "/null", "/a' OR '1'='1", ""] {
        assert_eq!(ask(absent), None, "{absent}");
    }
}

fn database(driver: Driver, params: &str, init: &[&str], statements: &[&str]) -> Database {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Database {
        driver: Some(driver),
        params: params.as_bytes().to_vec(),
        init: texts(init),
        statements: texts(statements),
        ..Database::default()
    }
}

/// A database server that ends with this value.
struct Server {
    command: Command,
    child: Option<Child>,
    socket: PathBuf,
    /// The user whom root runs it as.
    _directory: TempDir,
}

impl Server {
    fn postgresql() -> Server {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let program = |name: &str| {
            let program = newest("/usr/lib/postgresql").join("bin").join(name);
            // It does not run as root.
            if !rustix::process::getuid().is_root() {
                return Command::new(program);
            }
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
            command
        };
        if rustix::process::getuid().is_root() {
            run(Command::new("chown").arg("postgres").arg(at));
        }
        let data = at.join("data");
        run(program("initdb")
            .args(["--no-sync", "--auth=trust", "--username=milepost", "--encoding=UTF8"])
            .args(["--locale=C", "--pgdata"])
            .arg(&data)
            .current_dir("/"));
        let mut command = program("postgres");
        command.arg("-D").arg(&data).arg("-k").arg(at);
        command.args(["-c", "listen_addresses=", "-c", "fsync=off"]).current_dir("/");
        Server::started(command, at.to_owned(), directory)
    }

    fn mariadb() -> Server {
        let directory = tempfile::tempdir().unwrap();
        let (data, socket) = (directory.path().join("data"), directory.path().join("socket"));
        let is_root = rustix::process::getuid().is_root();
        let mut install = Command::new("mariadb-install-db");
        install.arg("--no-defaults").arg(option("--datadir", &data));
        install.arg("--auth-root-authentication-method=normal");
        let mut command = Command::new(which("mariadbd"));
        command
            .arg("--no-defaults")
            .arg(option("--datadir", &data))
            .arg(option("--socket", &socket));
        command.args(["--skip-networking", "--innodb-flush-log-at-trx-commit=0"]);
        if is_root {
            install.arg("--user=root");
            command.arg("--user=root");
        }
        run(&mut install);
        Server::started(command, socket, directory)
    }

    fn started(command: Command, socket: PathBuf, directory: TempDir) -> Server {
        let mut server = Server { command, child: None, socket, _directory: directory };
        server.start();
        server
    }

    fn start(&mut self) {
        let command = self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")));
    }

    /// Waits until the database answers, and returns who has asked it.
    #[track_caller]
    fn wait(&self, database: &Database) -> Helpers {
        let helpers = Helpers::default();
        let probe = database_without_tables(database);
        let end = Instant::now() + START_TIME_MAX;
        while Helpers::default().query(&probe, &probe.statements[0], b"k").is_none() {
            assert!(Instant::now() < end, "the database does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        helpers
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // SIGINT to PostgreSQL and SIGTERM to both end it in order.
            let id = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            let _ = rustix::process::kill_process(id, rustix::process::Signal::INT);
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn database_without_tables(database: &Database) -> Database {
    Database {
        init: Vec::new(),
        statements: vec!["SELECT 'up' WHERE 'k' = %s".to_owned()],
        ..database.clone()
    }
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

/// A program of root's, which is not on every path.
fn which(name: &str) -> PathBuf {
    let found = ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map(|at| Path::new(at).join(name));
    found.into_iter().find(|path| path.exists()).unwrap_or_else(|| name.into())
}

/// The directory below `at` that sorts last: those of PostgreSQL are called after its versions.
fn newest(at: &str) -> PathBuf {
    let entries = std::fs::read_dir(at).unwrap_or_else(|error| panic!("{at}: {error}"));
    entries.map(|entry| entry.unwrap().path()).max().unwrap_or_else(|| panic!("{at} is empty"))
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

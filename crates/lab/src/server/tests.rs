//! The configurations of the built-in experiment: as text, and as the real servers read them.

use std::net::SocketAddr;
use std::path::Path;

use super::*;
use crate::experiment::{BUILT_IN, Experiment};
use crate::site::write_file;

/// Where the servers of these tests would listen; none is started.
const ADDRESS: &str = "127.0.0.1:10001";

#[test]
fn configurations_are_these() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut text = String::new();
    for kind in ServerKind::ALL {
        let file = write(&Server::for_test(kind), "none", 2, directory.path());
        text += &format!("== {}\n{}", kind.name(), read(&file));
    }
    insta::assert_snapshot!(text.replace(&directory.path().display().to_string(), "DIR"));
}

#[test]
fn rules_are_these() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut text = String::new();
    for method in experiment().methods {
        let site = Site::new(directory.path(), &method);
        site.write(&experiment(), &method, 2).expect("a writable directory");
        let data = method.files.iter().map(|file| site.documents().with_file_name(&file.name));
        let files = [site.apache_rules(), site.nginx_http(), site.nginx_server()];
        for file in files.into_iter().chain(data).filter(|file| file.exists()) {
            let name = file.strip_prefix(directory.path()).expect("a file of the site");
            text += &format!("== {}\n{}", name.display(), read(&file));
        }
    }
    insta::assert_snapshot!(text.replace(&directory.path().display().to_string(), "DIR"));
}

#[test]
fn documents_stand_where_targets_point() {
    let directory = tempfile::tempdir().expect("a directory");
    let experiment = experiment();
    let method = experiment.method("file").expect("the method");
    let site = Site::new(directory.path(), method);
    site.write(&experiment, method, 20).expect("a writable directory");
    for path in ["test/1", "test/10", "test/20"] {
        assert_eq!(read(&site.documents().join(path)), "success\n");
    }
    assert!(!site.documents().join("test/none").exists());
}

#[test]
fn apache_reads_every_configuration() {
    check_reading(ServerKind::Apache, "apt-get install apache2-bin");
}

#[test]
fn nginx_reads_every_configuration() {
    check_reading(ServerKind::Nginx, "apt-get install nginx");
}

/// Has the real server read its configurations, with a path that needs its quotes.
#[track_caller]
fn check_reading(kind: ServerKind, install: &str) {
    let server = Server::find(kind, Path::new("milepost"))
        .unwrap_or_else(|missing| panic!("this test needs {install}: {}", missing.reason));
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("with a space");
    let mut read = 0;
    for method in experiment().methods.iter().filter(|method| kind.can_run(method)) {
        let file = write(&server, &method.name, 20, &directory);
        let output = server.command(&file).arg("-t").output().expect("the server runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {message}", method.name);
        assert!(!message.contains("warn"), "{}: {message}", method.name);
        read += 1;
    }
    assert!(read >= 5, "{read} methods");
}

/// Writes a method and the configuration of `server` for it, and returns that file.
fn write(server: &Server, method: &str, rules: u32, root: &Path) -> PathBuf {
    let experiment = experiment();
    let method = experiment.method(method).expect("a method of the experiment");
    let site = Site::new(root, method);
    site.write(&experiment, method, rules).expect("a writable directory");
    let directory = root.join(format!("{}-{}", server.kind.name(), method.name));
    std::fs::create_dir_all(&directory).expect("a writable directory");
    let account = Account { user: "www-data".to_owned(), group: "www-data".to_owned() };
    let setup = Setup {
        directory: &directory,
        address: ADDRESS.parse::<SocketAddr>().expect("an address"),
        site: &site,
        account: Some(&account),
        connections_max: 10,
    };
    let file = directory.join(server.configuration_name());
    write_file(&file, &server.configuration(&setup)).expect("a writable directory");
    file
}

fn experiment() -> Experiment {
    Experiment::parse(BUILT_IN[0].1).expect("a valid experiment")
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

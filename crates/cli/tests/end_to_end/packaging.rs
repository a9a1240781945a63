//! What packages are made of: `make install`, the configuration of the Debian package, its systemd unit.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Finished, MILEPOST, Server, milepost, run};

/// The root of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).expect("a file of the workspace")
}

#[test]
fn the_unit_serves_the_configuration_that_comes_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().to_str().expect("UTF-8");
    fs::create_dir_all(directory.path().join("conf.d")).expect("a directory");
    let text = read("packaging/etc/httpd.conf")
        .replace("Listen 80\n", "Listen 127.0.0.1:0\n")
        .replace("/var/log/milepost", root)
        .replace("/var/www/html", root);
    fs::write(directory.path().join("httpd.conf"), text).expect("written");
    fs::write(directory.path().join("conf.d/a.conf"), "Redirect 301 /a http://b.example/\n")
        .expect("written");
    let unit = read("packaging/systemd/milepost.service");
    let line =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/milepost serve "));
    let line = line.expect("a command").replace("/etc/milepost", root);
    let arguments: Vec<&str> = line.split(' ').collect();
    let server = Server::start(&arguments);
    let answer = run("curl", &["-si", &server.url("/a")], &[]).stdout;
    assert!(answer.starts_with("HTTP/1.1 301 "), "{answer}");
    server.stop();
    assert!(directory.path().join("access.log").exists());
    let checked = milepost(&[&["check"], &arguments[..]].concat());
    assert_eq!((checked.code, &*checked.stdout), (Some(0), "nothing found\n"));
}

#[test]
fn what_is_installed_can_be_uninstalled() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    // As after a release build.
    fs::create_dir_all(path("target/release")).expect("a directory");
    fs::copy(MILEPOST, path("target/release/milepost")).expect("copied");
    let make = |task: &str, links: &str| {
        let workspace = workspace();
        let root = directory.path().to_str().expect("UTF-8");
        let arguments = [
            "-C",
            workspace.to_str().expect("UTF-8"),
            "-o",
            "release",
            task,
            &format!("TARGET={root}/target"),
            &format!("DESTDIR={root}/root"),
            "PREFIX=/usr",
            &format!("LINKS={links}"),
        ];
        let finished = run("make", &arguments, &[]);
        (finished.code, finished.stderr)
    };
    assert_eq!(make("install", "ab siege"), (Some(0), String::new()));
    // Once more, as for the next version.
    assert_eq!(make("install", "ab siege"), (Some(0), String::new()));
    let bin = path("root/usr/bin");
    let Finished { code, stdout, .. } = run(bin.join("ab").to_str().expect("UTF-8"), &["-V"], &[]);
    assert_eq!(code, Some(0), "{stdout}");
    let man = path("root/usr/share/man/man1");
    assert!(man.join("milepost-serve.1").exists());
    // Neither is anybody else's program touched.
    fs::remove_file(bin.join("ab")).expect("removed");
    fs::write(bin.join("ab"), "another one").expect("written");
    assert_eq!(make("install", "ab").0, Some(2));
    assert_eq!(make("uninstall", ""), (Some(0), String::new()));
    let left: Vec<_> = fs::read_dir(&bin).expect("a directory").flatten().collect();
    assert_eq!(left.iter().map(fs::DirEntry::file_name).collect::<Vec<_>>(), ["ab"]);
    assert_eq!(fs::read_to_string(bin.join("ab")).expect("a file"), "another one");
    assert_eq!(fs::read_dir(&man).expect("a directory").count(), 0);
}

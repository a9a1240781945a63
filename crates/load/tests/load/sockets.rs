//! Other sockets than TCP over IPv4.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use milepost_load::{FailureKind, Persistence, Plan, RunError, Stop, Target, run};

use crate::peer::OK;
use crate::{kinds, load};

#[test]
fn a_unix_socket_is_as_good_as_an_address() {
    let path = path("good");
    serve(&path);
    for persistence in [Persistence::KeepAlive, Persistence::Close] {
        let mut plan = Plan::new(vec![Target::new(path.clone(), "localhost", "/a")]);
        plan.io = crate::IO;
        plan.connections = 3;
        plan.persistence = persistence;
        plan.stop = Stop::Requests(100);
        let report = load(&plan);
        assert_eq!((report.requests, report.errors, report.wrong_answers), (100, 0, 0));
        assert_eq!(kinds(&report), [] as [(FailureKind, u64); 0]);
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_unix_socket_that_is_not_there_is_no_run() {
    let mut plan = Plan::new(vec![Target::new(path("absent"), "localhost", "/a")]);
    plan.io = crate::IO;
    plan.stop = Stop::Requests(100);
    let error = run(&plan, &milepost_load::Control::new()).unwrap_err();
    assert!(matches!(error, RunError::Connect { .. }), "{error}");
    assert!(error.to_string().starts_with("cannot connect to unix:/"), "{error}");
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("milepost-load-{}-{name}.sock", std::process::id()))
}

/// Answers every request.
fn serve(path: &PathBuf) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                // One read is one request: the client waits for each answer.
                while socket.read(&mut buffer).is_ok_and(|length| length > 0) {
                    socket.write_all(OK.as_bytes()).unwrap();
                }
            });
        }
    });
}

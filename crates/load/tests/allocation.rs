//! A request allocates nothing: a long run allocates as often as a short one.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use milepost_load::{Control, Expectation, Persistence, Plan, Stop, Target, Variables, run};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Answers of three shapes, so that no head is like the one before it on the same target.
const ANSWERS: [&[u8]; 3] = [
    b"HTTP/1.1 301 Moved\r\nDate: Sat, 21 Nov 2026 05:00:00 GMT\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 301 Moved\r\nLocation: /b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 301 Moved\r\nLocation: /b\r\nContent-Length: 2\r\n\r\nok",
];

#[test]
fn requests_do_not_allocate() {
    let address = serve();
    let allocations = |requests, location, is_template: bool| {
        let mut target = Target::new(address, "localhost", "/a");
        if is_template {
            target.request_target = "/{{counter}}?{{random:1..1000}}&{{a}}".to_owned();
            target.content = b"{{uuid}}"[..].into();
        }
        let mut plan = Plan::new(vec![target.expect(Expectation::redirect(301, location))]);
        plan.connections = 4;
        plan.variables = is_template.then(|| Arc::new(Variables::parse("a\n1\n2").unwrap()));
        plan.persistence = Persistence::KeepAlive;
        plan.stop = Stop::Requests(requests);
        let before = ALLOCATOR.stats().allocations;
        let report = run(&plan, &Control::new()).unwrap();
        let wrong = if location == "/b" { 0 } else { requests };
        assert_eq!((report.requests, report.wrong_answers, report.errors), (requests, wrong, 0));
        ALLOCATOR.stats().allocations - before
    };
    for (location, is_template) in [("/b", false), ("/c", false), ("/b", true)] {
        let allocations = |requests| allocations(requests, location, is_template);
        allocations(1_000);
        let (short, long) = (allocations(1_000), allocations(31_000));
        // The peer starts a thread for each connection; that and buffers that grow once more or
        // less make a difference of a few.
        assert!(long.abs_diff(short) < 50, "{short} allocations, {long} for 30,000 more requests");
    }
}

/// Answers every request from a stack buffer.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                let mut answers = ANSWERS.iter().cycle();
                // One read is one request: the client waits for each answer.
                while socket.read(&mut buffer).is_ok_and(|length| length > 0) {
                    let answer = answers.next().expect("the cycle has no end");
                    socket.write_all(answer).unwrap();
                }
            });
        }
    });
    address
}

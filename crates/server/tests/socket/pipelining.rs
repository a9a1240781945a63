//! Many requests in one write, one request in many, and answers that are larger than any buffer.

use milepost_engine::Settings;

use crate::support::{LARGE_BYTES, TestServer};

#[test]
fn all_answers_arrive_in_order() {
    let settings = Settings { keep_alive_requests_max: None, ..Settings::default() };
    let server = TestServer::start(settings);
    // Enough for several input buffers and several writes.
    let count = 2000;
    let requests: String =
        (0..count).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    let mut client = server.connect();
    client.send(requests.as_bytes());
    for number in 0..count {
        let expected = format!("http://other.example/{number}");
        assert_eq!(client.answer().field("Location"), Some(&*expected));
    }
}

#[test]
fn requests_after_the_last_are_not_answered() {
    let server = TestServer::start(Settings::default());
    let answers = server.ask(
        b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n\
          GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n\
          GET /c HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[1].field("Location"), Some("http://other.example/b"));
}

#[test]
fn head_has_the_fields_of_get_and_no_content() {
    let server = TestServer::start(Settings::default());
    let mut client = server.connect();
    client.send(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let get = client.answer();
    // The next answer begins at once after the head.
    client.send(b"HEAD /a HTTP/1.1\r\nHost: a\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.answer_to_head();
    assert_eq!(client.answer().content, get.content);
    for name in ["Location", "Content-Type", "Content-Length"] {
        assert_eq!(head.field(name), get.field(name), "{name}");
    }
    let length: usize = get.field("Content-Length").unwrap().parse().unwrap();
    assert_eq!(get.content.len(), length);
}

#[test]
fn a_head_that_arrives_byte_by_byte_is_answered_once() {
    let server = TestServer::start(Settings::default());
    let mut client = server.connect();
    for byte in b"\r\nGET /a HTTP/1.1\r\nHost: a\r\nX-B: c\r\n\r\n".chunks(1) {
        client.send(byte);
        std::thread::yield_now();
    }
    assert_eq!(client.answer().status, 301);
    client.send(b"GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.answers_to_end().len(), 1);
}

#[test]
fn a_head_in_two_parts_is_the_same_wherever_it_is_cut() {
    let settings = Settings { keep_alive_requests_max: None, ..Settings::default() };
    let server = TestServer::start(settings);
    let request = b"GET /a?b=c HTTP/1.1\r\nHost: a\r\nX-B:  c \r\n\r\n";
    let mut client = server.connect();
    for cut in 1..request.len() {
        client.send(&request[..cut]);
        std::thread::sleep(std::time::Duration::from_micros(200));
        client.send(&request[cut..]);
        assert_eq!(client.answer().field("Location"), Some("http://other.example/a?b=c"), "{cut}");
    }
}

#[test]
fn an_answer_larger_than_the_socket_holds_arrives_whole() {
    let server = TestServer::start(Settings::default());
    let mut client = server.connect();
    client.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let answer = client.answer();
    assert_eq!(answer.content.len(), LARGE_BYTES);
    assert!(answer.content.iter().all(|&byte| byte == b'x'));
    assert_eq!(client.answer().status, 301);
}

//! Clients that speak HTTP/2: what a backend gets of their requests, and they of its answers.

use std::future::poll_fn;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::support::{Backend, Proxy, SOON, eventually, field};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Runs `client` on one connection to a proxy.
fn with(backend: &Backend, more: &str, client: impl AsyncFnOnce(SendRequest<Bytes>)) {
    let proxy = Proxy::start(&format!(
        "Protocols h2c http/1.1\nProxyPass / http://{}/ retry=0\n{more}",
        backend.address
    ));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = TcpStream::connect(proxy.address).await.unwrap();
        // The window of the connection holds those of several streams.
        let mut builder = client::Builder::new();
        builder.initial_connection_window_size(1 << 20);
        let (requests, connection) = builder.handshake(stream).await.unwrap();
        tokio::spawn(connection);
        timeout(2 * SOON, client(requests)).await.expect("an end in time");
    });
}

fn head(method: &str, path: &str) -> Request<()> {
    let uri = format!("http://www.example{path}");
    Request::builder().method(method).uri(uri).body(()).unwrap()
}

/// All of an answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    fields: HeaderMap,
    content: Vec<u8>,
    trailers: Option<HeaderMap>,
}

async fn read(response: Response<RecvStream>) -> Result<Answer, h2::Error> {
    let (head, mut stream) = response.into_parts();
    let mut content = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        stream.flow_control().release_capacity(piece.len()).unwrap();
        content.extend_from_slice(&piece);
    }
    let trailers = stream.trailers().await?;
    Ok(Answer { status: head.status.as_u16(), fields: head.headers, content, trailers })
}

async fn ask(requests: &mut SendRequest<Bytes>, head: Request<()>) -> Result<Answer, h2::Error> {
    let (response, _) = requests.send_request(head, true).unwrap();
    read(response.await?).await
}

/// Sends as the window allows.
async fn send(stream: &mut SendStream<Bytes>, mut content: &[u8], ends: bool) {
    while !content.is_empty() {
        stream.reserve_capacity(content.len());
        let granted = match stream.capacity() {
            0 => poll_fn(|context| stream.poll_capacity(context)).await.unwrap().unwrap(),
            granted => granted,
        };
        let (piece, rest) = content.split_at(granted.min(content.len()));
        content = rest;
        stream.send_data(Bytes::copy_from_slice(piece), ends && rest.is_empty()).unwrap();
    }
}

fn numbers(length: usize) -> Vec<u8> {
    (0..length).map(|number| (number % 251) as u8).collect()
}

#[test]
fn heads_pass_without_what_belongs_to_a_connection() {
    let backend = Backend::start(|link| {
        while let Some(request) = link.request() {
            let answer = match request.head.split(' ').nth(1).unwrap() {
                "/304" => "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
                "/hints" => {
                    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
                }
                "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
                "/empty" => "HTTP/1.1 204 No Content\r\n\r\n",
                _ => {
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive, X-One\r\n\
                     X-One: 1\r\nX-Two: 2\r\nKeep-Alive: timeout=5\r\nServer: theirs\r\nTrailer: X-T\r\n\r\n\
                     3\r\nabc\r\n0\r\nX-T: end\r\nContent-Length: 9\r\n\r\n"
                }
            };
            link.say(answer);
        }
    });
    with(&backend, "", async |mut requests| {
        let mut get = head("GET", "/a?b");
        for (name, value) in [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x", "y")]
        {
            get.headers_mut().append(name, value.parse().unwrap());
        }
        let answer = ask(&mut requests, get).await.unwrap();
        assert_eq!((answer.status, &answer.content[..]), (200, &b"abc"[..]));
        let fields: Vec<_> = answer.fields.keys().map(|name| name.as_str()).collect();
        assert_eq!(answer.fields["server"], "theirs");
        assert_eq!(answer.fields["x-two"], "2");
        assert!(answer.fields.contains_key("date") && fields.len() == 3, "{fields:?}");
        let trailers = answer.trailers.unwrap();
        assert_eq!((&trailers["x-t"], trailers.len()), (&"end".parse().unwrap(), 1));

        let answer = ask(&mut requests, head("HEAD", "/head")).await.unwrap();
        assert_eq!((answer.status, answer.content.len()), (200, 0));
        assert_eq!(answer.fields["content-length"], "7");
        let answer = ask(&mut requests, head("GET", "/304")).await.unwrap();
        assert_eq!((answer.status, &answer.fields["etag"]), (304, &"\"a\"".parse().unwrap()));
        assert_eq!(ask(&mut requests, head("GET", "/empty")).await.unwrap().status, 204);
        let (mut response, _) = requests.send_request(head("GET", "/hints"), true).unwrap();
        let hints = poll_fn(|context| response.poll_informational(context)).await;
        let hints = hints.unwrap().unwrap();
        assert_eq!(
            (hints.status().as_u16(), &hints.headers()["link"]),
            (103, &"</a>".parse().unwrap())
        );
        assert_eq!(read(response.await.unwrap()).await.unwrap().content, b"x");
    });
    let sent = &backend.requests()[0].head;
    assert!(sent.starts_with("GET /a?b HTTP/1.1\r\nHost: 127.0.0.1"), "{sent}");
    assert_eq!(field(sent, "Cookie"), Some("a=1; b=2"), "{sent}");
    assert_eq!(field(sent, "X-Forwarded-Host"), Some("www.example"), "{sent}");
    assert_eq!((field(sent, "x"), field(sent, "te")), (Some("y"), None), "{sent}");
    assert_eq!(backend.connections(), 1, "all in turn on one connection");
}

#[test]
fn content_is_kept_until_it_is_complete() {
    let backend = Backend::answering(OK);
    let content = numbers(1_000_000);
    with(&backend, "", async |mut requests| {
        let (response, mut stream) = requests.send_request(head("PUT", "/"), false).unwrap();
        // More than any window: it opens as content is taken.
        send(&mut stream, &content, false).await;
        sleep(Duration::from_millis(100)).await;
        assert_eq!(backend.connections(), 0);
        stream.send_data(Bytes::from_static(b"end"), true).unwrap();
        assert_eq!(read(response.await.unwrap()).await.unwrap().content, b"ok");
    });
    let request = &backend.requests()[0];
    assert!(request.content == [&content[..], b"end"].concat());
    assert_eq!(field(&request.head, "Content-Length"), Some("1000003"));
}

#[test]
fn content_may_be_passed_on_while_it_comes() {
    let backend = Backend::answering(OK);
    with(&backend, "SetEnv proxy-request-buffering off", async |mut requests| {
        let (response, mut stream) = requests.send_request(head("POST", "/"), false).unwrap();
        sleep(Duration::from_millis(100)).await;
        assert_eq!(backend.connections(), 0, "nothing to send, no connection");
        stream.send_data(Bytes::from_static(b"abc"), false).unwrap();
        while backend.connections() == 0 {
            yield_now().await;
            thread::sleep(Duration::from_millis(5));
        }
        stream.send_data(Bytes::from_static(b"de"), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-t", "1".parse().unwrap());
        stream.send_trailers(trailers).unwrap();
        assert_eq!(read(response.await.unwrap()).await.unwrap().status, 200);
    });
    let request = &backend.requests()[0];
    assert_eq!((&request.content[..], &*request.trailers), (&b"abcde"[..], "x-t: 1\n"));
    assert_eq!(field(&request.head, "Transfer-Encoding"), Some("chunked"));
}

#[test]
fn large_answers_pass_as_the_client_takes_them() {
    let content = numbers(3_000_000);
    let sent = content.clone();
    let backend = Backend::start(move |link| {
        while let Some(request) = link.request() {
            if request.head.starts_with("GET /large ") {
                link.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sent.len()));
                let _ = std::io::Write::write_all(&mut link.stream, &sent);
            } else {
                link.say(OK);
            }
        }
    });
    with(&backend, "", async |mut requests| {
        let (large, _) = requests.send_request(head("GET", "/large"), true).unwrap();
        let large = large.await.unwrap();
        assert_eq!(large.headers()["content-length"], "3000000");
        // The window of that one is full by now, and others pass it by.
        for _ in 0..20 {
            assert_eq!(ask(&mut requests, head("GET", "/")).await.unwrap().content, b"ok");
        }
        assert!(read(large).await.unwrap().content == content);
    });
}

#[test]
fn a_reset_ends_the_request_to_the_backend() {
    let (over, ended) = std::sync::mpsc::channel();
    let backend = Backend::start(move |link| {
        let request = link.request().unwrap();
        if request.head.starts_with("GET /begun ") {
            link.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun");
        }
        // The proxy says no more, and closes.
        over.send(link.more().is_none()).unwrap();
    });
    with(&backend, "", async |mut requests| {
        let (response, mut stream) = requests.send_request(head("GET", "/waits"), true).unwrap();
        while backend.requests().is_empty() {
            yield_now().await;
            sleep(Duration::from_millis(5)).await;
        }
        stream.send_reset(Reason::CANCEL);
        assert!(response.await.is_err());
        let (response, mut stream) = requests.send_request(head("GET", "/begun"), true).unwrap();
        assert_eq!(response.await.unwrap().status().as_u16(), 200);
        stream.send_reset(Reason::CANCEL);
        sleep(Duration::from_millis(100)).await;
    });
    for _ in 0..2 {
        assert!(ended.recv_timeout(SOON).unwrap());
    }
}

#[test]
fn content_beyond_the_limit_reaches_no_backend() {
    let backend = Backend::answering(OK);
    let more = "LimitRequestBody 10\n<Location /moved>\nRedirect http://t/\n</Location>";
    with(&backend, more, async |mut requests| {
        let mut post = async |path: &str, content: &[u8], is_stated: bool| {
            let mut post = head("POST", path);
            if is_stated {
                post.headers_mut().insert("content-length", content.len().into());
            }
            let (response, mut stream) = requests.send_request(post, false).unwrap();
            send(&mut stream, content, true).await;
            read(response.await.unwrap()).await.unwrap().status
        };
        for (path, accepted) in [("/", 200), ("/moved", 302)] {
            assert_eq!(post(path, b"0123456789", true).await, accepted);
            assert_eq!(post(path, b"0123456789a", true).await, 413);
            assert_eq!(post(path, b"0123456789a", false).await, 413);
        }
    });
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_client_that_waits_to_be_asked_is_asked() {
    let backend = Backend::answering(OK);
    with(&backend, "", async |mut requests| {
        let mut post = head("POST", "/");
        post.headers_mut().insert("expect", "100-continue".parse().unwrap());
        let (mut response, mut stream) = requests.send_request(post, false).unwrap();
        let asked = poll_fn(|context| response.poll_informational(context)).await;
        assert_eq!(asked.unwrap().unwrap().status().as_u16(), 100);
        stream.send_data(Bytes::from_static(b"abc"), true).unwrap();
        assert_eq!(read(response.await.unwrap()).await.unwrap().status, 200);
    });
    assert_eq!(backend.requests()[0].content, b"abc");
}

#[test]
fn what_goes_wrong_is_told() {
    let backend = Backend::start(|link| {
        while let Some(request) = link.request() {
            match request.head.split(' ').nth(1).unwrap() {
                "/silent" => thread::sleep(2 * SOON),
                "/cut" => {
                    link.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut");
                    return;
                }
                _ => return link.say("nonsense\r\n\r\n"),
            }
        }
    });
    with(&backend, "ProxyTimeout 1\nErrorDocument 502 \"sorry\"", async |mut requests| {
        let answer = ask(&mut requests, head("GET", "/")).await.unwrap();
        assert_eq!((answer.status, &answer.content[..]), (502, &b"sorry"[..]));
        assert_eq!(ask(&mut requests, head("GET", "/silent")).await.unwrap().status, 504);
        let error = ask(&mut requests, head("GET", "/cut")).await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
        let (_kept, mut stream) = requests.send_request(head("POST", "/"), false).unwrap();
        stream.send_data(Bytes::from_static(b"abc"), false).unwrap();
    });
}

#[test]
fn a_backend_may_take_longer_than_a_connection_may_be_silent() {
    let backend = Backend::start(|link| {
        while link.request().is_some() {
            thread::sleep(Duration::from_secs(3));
            link.say(OK);
        }
    });
    with(&backend, "Timeout 1\nProxyTimeout 60\nKeepAliveTimeout 60", async |mut requests| {
        for _ in 0..2 {
            assert_eq!(ask(&mut requests, head("GET", "/")).await.unwrap().content, b"ok");
        }
        let (response, mut stream) = requests.send_request(head("POST", "/"), false).unwrap();
        stream.send_data(Bytes::from_static(b"abc"), false).unwrap();
        assert_eq!(read(response.await.unwrap()).await.unwrap().status, 408);
    });
    eventually("the connections are closed", || backend.connections() == 1);
}

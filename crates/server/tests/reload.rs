//! Reloading: no request fails, and every answer is that of a configuration that was in force while the
//! request was under way.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use milepost_engine::{Listen, LoadOptions, Settings, Site};
use milepost_server::{FileSystem, Reloader, Running, Server, SiteResponder};

const RELOADS: u64 = 1_000;
const CLIENTS: usize = 6;
const WORKERS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

#[test]
fn every_answer_is_that_of_a_configuration_in_force() {
    let (running, address) = start(&site(0));
    let reloader = running.reloader();
    // The newest configuration that is surely in force, and the newest that may be.
    let done = Arc::new(AtomicU64::new(0));
    let begun = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (done, begun, stop) = (Arc::clone(&done), Arc::clone(&begun), Arc::clone(&stop));
            // A third of them opens a connection for each request, a third sends four at once.
            let (per_connection, depth) = [(1, 1), (90, 1), (90, 4)][number % 3];
            thread::spawn(move || {
                let mut answers = 0;
                while !stop.load(Ordering::SeqCst) {
                    let mut client = Client::connect(address);
                    for _ in 0..per_connection / depth {
                        let oldest = done.load(Ordering::SeqCst);
                        let seen = client.ask(depth);
                        let newest = begun.load(Ordering::SeqCst);
                        for number in seen {
                            let allowed = oldest..=newest;
                            assert!(allowed.contains(&number), "{number} is not in {allowed:?}");
                            answers += 1;
                        }
                    }
                }
                answers
            })
        })
        .collect();
    for number in 1..=RELOADS {
        begun.store(number, Ordering::SeqCst);
        reload(&reloader, &site(number), &[address]);
        done.store(number, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(2));
    }
    stop.store(true, Ordering::SeqCst);
    let answers: Vec<usize> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert!(answers.iter().all(|&answers| answers > 100), "{answers:?}");
    running.stopper().stop();
    running.join().unwrap();
}

#[test]
fn listeners_come_and_go_and_connections_stay() {
    let (running, first) = start(&site(1));
    let reloader = running.reloader();
    let mut client = Client::connect(first);
    assert_eq!(client.ask(1), [1]);

    let second = free_address();
    reload(&reloader, &site(2), &[first, second]);
    assert_eq!(Client::connect(first).ask(1), [2]);
    assert_eq!(Client::connect(second).ask(1), [2]);

    reload(&reloader, &site(3), &[second]);
    assert!(TcpStream::connect(first).is_err());
    assert_eq!(Client::connect(second).ask(1), [3]);
    // The connection outlives the listener that it came through.
    assert_eq!(client.ask(1), [3]);
    assert_eq!(reloader.addresses(), [second]);
}

#[test]
fn a_wildcard_can_take_the_place_of_an_address() {
    let (running, first) = start(&site(1));
    let any = SocketAddr::from(([0, 0, 0, 0], first.port()));
    reload(&running.reloader(), &site(2), &[any]);
    assert_eq!(Client::connect(first).ask(1), [2]);
}

#[test]
fn an_address_that_cannot_be_had_changes_nothing() {
    let (running, address) = start(&site(1));
    let reloader = running.reloader();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let free = free_address();
    let next = site(2);
    let settings = listening(&next, &[free, taken.local_addr().unwrap()]);
    let error = reloader.reload(&settings, move || SiteResponder::new(Arc::clone(&next)));
    let message = error.unwrap_err().to_string();
    assert!(message.ends_with("the port is in use"), "{message}");
    assert_eq!(Client::connect(address).ask(1), [1]);
    assert!(TcpStream::connect(free).is_err());
}

#[test]
fn limits_are_reloaded_too() {
    let (running, address) = start(&site(1));
    let next = site(2);
    let mut settings = listening(&next, &[address]);
    settings.keep_alive = false;
    let mut client = Client::connect(address);
    assert_eq!(client.ask(1), [1]);
    running.reloader().reload(&settings, move || SiteResponder::new(Arc::clone(&next))).unwrap();
    assert_eq!(client.ask(1), [2]);
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_stopped_server_does_not_reload() {
    let (running, address) = start(&site(1));
    let reloader = running.reloader();
    running.stopper().stop();
    running.join().unwrap();
    let next = site(2);
    let settings = listening(&next, &[address]);
    let error = reloader.reload(&settings, move || SiteResponder::new(Arc::clone(&next)));
    assert_eq!(error.unwrap_err().to_string(), "the server is stopping");
}

/// A site whose redirects carry `number`, and whose rules change in kind and count with it.
fn site(number: u64) -> Arc<Site> {
    let mut after: Vec<_> = (0..number % 7)
        .map(|rule| format!("RedirectMatch ^/other/{rule}$ http://b.example/"))
        .collect();
    after.push(match number % 3 {
        0 => format!("Redirect 301 /a http://b.example/{number}"),
        1 => format!("RedirectMatch 301 ^/a$ http://b.example/{number}"),
        _ => format!("RewriteEngine On\nRewriteRule ^/a$ http://b.example/{number} [R=301,L]"),
    });
    let options = LoadOptions { server_root: PathBuf::from("/"), after, ..LoadOptions::default() };
    let loaded = Site::load(&options, &FileSystem);
    Arc::new(loaded.site.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics)))
}

fn listening(site: &Site, addresses: &[SocketAddr]) -> Settings {
    let listen =
        Listen { addresses: addresses.to_vec(), place: "test:1".to_owned(), ..Listen::default() };
    Settings { listens: vec![listen], ..site.settings().clone() }
}

/// Starts a server on a port that nobody uses, and that stays the same when it is reloaded.
fn start(site: &Arc<Site>) -> (Running, SocketAddr) {
    let address = free_address();
    let server = Server::bind(&listening(site, &[address]), WORKERS).unwrap();
    let site = Arc::clone(site);
    (server.start(move || SiteResponder::new(Arc::clone(&site))).unwrap(), address)
}

fn reload(reloader: &Reloader, site: &Arc<Site>, addresses: &[SocketAddr]) {
    let settings = listening(site, addresses);
    let site = Arc::clone(site);
    reloader.reload(&settings, move || SiteResponder::new(Arc::clone(&site))).unwrap();
}

fn free_address() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap()
}

/// A client that reads the number out of the redirects.
struct Client {
    stream: TcpStream,
}

impl Client {
    fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Client { stream }
    }

    /// Sends `depth` requests at once; returns the numbers in their answers.
    fn ask(&mut self, depth: usize) -> Vec<u64> {
        self.stream.write_all(&b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(depth)).unwrap();
        let mut text = String::new();
        let mut buffer = [0; 16 * 1024];
        while text.matches("</html>\n").count() < depth {
            let count = self.stream.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "closed after {text:?}");
            text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        assert_eq!(text.matches("HTTP/1.1 301 ").count(), depth, "{text}");
        let numbers = text.split("\r\nLocation: http://b.example/").skip(1);
        numbers.map(|rest| rest.split_once("\r\n").unwrap().0.parse().unwrap()).collect()
    }
}

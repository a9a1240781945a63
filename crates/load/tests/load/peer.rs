//! A TCP peer that does to each connection what a script says.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

/// A script that waits for ever must not keep the test from ending.
const PATIENCE: Duration = Duration::from_secs(20);

/// A right answer that keeps the connection.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Listens on a free port of the loopback interface until it is dropped.
pub(crate) struct Peer {
    address: SocketAddr,
    state: Arc<PeerState>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct PeerState {
    stopped: AtomicBool,
    connections: AtomicU64,
    requests: Mutex<Vec<String>>,
    sockets: Mutex<Vec<TcpStream>>,
}

/// One accepted connection.
pub(crate) struct Conversation {
    /// Number of the connection, from 0.
    pub(crate) number: u64,
    socket: TcpStream,
    read: Vec<u8>,
    resets: bool,
    state: Arc<PeerState>,
}

impl Peer {
    /// Follows `script` on each connection and closes it afterwards.
    pub(crate) fn start(script: impl Fn(&mut Conversation) + Send + Sync + 'static) -> Self {
        Self::start_at(0, script)
    }

    /// The same on a given port.
    pub(crate) fn start_at(
        port: u16,
        script: impl Fn(&mut Conversation) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let state = Arc::new(PeerState::default());
        let accepting = std::thread::spawn({
            let (state, script) = (state.clone(), Arc::new(script));
            move || accept(&listener, &state, &script)
        });
        Self { address, state, accepting: Some(accepting) }
    }

    /// Sends `answer` to every request.
    pub(crate) fn answering(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::start(move |it| {
            while it.request().is_some() {
                it.send(&answer);
            }
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> u64 {
        self.state.connections.load(SeqCst)
    }

    /// Heads of all requests read so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Stops listening and cuts all connections, as the kernel does for a killed process.
    pub(crate) fn kill(&mut self) {
        self.state.stopped.store(true, SeqCst);
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
        for socket in self.state.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn accept<S>(listener: &TcpListener, state: &Arc<PeerState>, script: &Arc<S>)
where
    S: Fn(&mut Conversation) + Send + Sync + 'static,
{
    for socket in listener.incoming() {
        let socket = socket.expect("accepting works");
        if state.stopped.load(SeqCst) {
            return;
        }
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        state.sockets.lock().unwrap().push(socket.try_clone().unwrap());
        let number = state.connections.fetch_add(1, SeqCst);
        let (script, state) = (script.clone(), state.clone());
        std::thread::spawn(move || {
            let mut conversation =
                Conversation { number, socket, read: Vec::new(), resets: false, state };
            script(&mut conversation);
            if !conversation.resets {
                let _ = conversation.socket.shutdown(Shutdown::Both);
            }
        });
    }
}

impl Conversation {
    /// Reads the next request and returns its head; `None` when the client has closed.
    pub(crate) fn request(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let rest = self.read.split_off(end + 4);
                let head = std::mem::replace(&mut self.read, rest);
                let head = String::from_utf8(head).expect("requests are text");
                self.state.requests.lock().unwrap().push(head.clone());
                return Some(head);
            }
            let mut buffer = [0; 4096];
            match self.socket.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.read.extend_from_slice(&buffer[..length]),
            }
        }
    }

    /// Reads as many bytes of content.
    pub(crate) fn content(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = [0; 4096];
        while self.read.len() < length {
            match self.socket.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(got) => self.read.extend_from_slice(&buffer[..got]),
            }
        }
        let rest = self.read.split_off(length.min(self.read.len()));
        std::mem::replace(&mut self.read, rest)
    }

    /// Where the client is.
    pub(crate) fn client(&self) -> SocketAddr {
        self.socket.peer_addr().expect("the socket is connected")
    }

    /// Sends it all at once. That the client has gone is no matter.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.socket.write_all(bytes.as_ref());
    }

    /// Sends byte by byte, with `pause` before each.
    pub(crate) fn drip(&mut self, bytes: &str, pause: Duration) {
        for byte in bytes.bytes() {
            std::thread::sleep(pause);
            self.send([byte]);
        }
    }

    #[allow(dead_code, reason = "not every suite has a proxy")]
    /// Passes bytes on, both ways, until one side closes.
    pub(crate) fn forward(&mut self, mut upstream: TcpStream) {
        let (mut client, mut server) =
            (self.socket.try_clone().unwrap(), upstream.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut server, &mut client);
            let _ = client.shutdown(Shutdown::Both);
        });
        let _ = std::io::copy(&mut self.socket, &mut upstream);
        let _ = upstream.shutdown(Shutdown::Both);
    }

    /// Waits until the client closes.
    pub(crate) fn wait(&mut self) {
        while self.request().is_some() {}
    }

    /// Closes with a reset instead of an end.
    pub(crate) fn reset(&mut self) {
        set_socket_linger(&self.socket, Some(Duration::ZERO)).unwrap();
        self.resets = true;
        // The socket is closed when its last copy is.
        let address = self.socket.peer_addr().unwrap();
        let mut sockets = self.state.sockets.lock().unwrap();
        sockets.retain(|socket| socket.peer_addr().is_ok_and(|other| other != address));
    }
}

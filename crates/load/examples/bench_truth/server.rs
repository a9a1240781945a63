//! A server that answers each request a known time after it came.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use milepost_stats::histogram::Histogram;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const LISTENER: Token = Token(usize::MAX);
const EVENTS_MAX: usize = 256;
const READ_BYTES: usize = 4096;

/// How long a request is served, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Service {
    Constant(f64),
    /// With this mean.
    Exponential(f64),
    /// The second for one request in as many.
    Bimodal(f64, f64, u64),
    /// The first, but from so many seconds after the first request on, for as many as the third says,
    /// nothing is answered.
    Stall(f64, f64, f64),
}

impl Service {
    /// What arithmetic says, where it says anything.
    pub(crate) fn quantile(self, q: f64) -> Option<f64> {
        match self {
            Self::Constant(time) => Some(time),
            Self::Exponential(mean) => Some(-(1.0 - q).ln() * mean),
            Self::Bimodal(usual, rare, one_in) => {
                Some(if 1.0 - q < 1.0 / one_in as f64 { rare } else { usual })
            }
            Self::Stall(..) => None,
        }
    }

    fn time(self, k: u64, came: Duration, random: &mut fastrand::Rng) -> Duration {
        let nanos = match self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => -(1.0 - random.f64()).ln() * mean,
            Self::Bimodal(usual, rare, one_in) => {
                if k.is_multiple_of(one_in) {
                    rare
                } else {
                    usual
                }
            }
            // One second of warm-up comes first.
            Self::Stall(time, after, length) => {
                let (came, from) = (came.as_secs_f64(), after + 1.0);
                let rest =
                    if (from..from + length).contains(&came) { from + length - came } else { 0.0 };
                rest * 1e9 + time
            }
        };
        Duration::from_nanos(nanos as u64)
    }
}

/// The server, and the thread that it has.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Histogram>>>,
}

impl Server {
    pub(crate) fn start(service: Service) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || serve(listener, service, &is_stopped));
        Ok(Self { address, stop, thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it, and says how long it took from the request to the answer each time.
    pub(crate) fn stop(mut self) -> Histogram {
        self.join().unwrap_or_default()
    }

    fn join(&mut self) -> Option<Histogram> {
        self.stop.store(true, Relaxed);
        self.thread.take()?.join().ok()?.ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.join();
    }
}

fn serve(mut listener: TcpListener, service: Service, stop: &AtomicBool) -> io::Result<Histogram> {
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(EVENTS_MAX);
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    // When which connection is to be answered, and when its request came.
    let mut due = BinaryHeap::new();
    let mut made = Histogram::new();
    let mut random = fastrand::Rng::with_seed(7);
    let (mut began, mut count) = (None, 0);
    let mut buffer = [0; READ_BYTES];
    while !stop.load(Relaxed) {
        // It spins: a thread that sleeps is woken late.
        match poll.poll(&mut events, Some(Duration::ZERO)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut socket, _)) = listener.accept() {
                    socket.set_nodelay(true)?;
                    let token = Token(connections.len());
                    poll.registry().register(&mut socket, token, Interest::READABLE)?;
                    connections.push(Some(socket));
                }
                continue;
            }
            let Token(at) = event.token();
            let Some(socket) = &mut connections[at] else { continue };
            match socket.read(&mut buffer) {
                Ok(0) => connections[at] = None,
                Ok(_) => {
                    let now = Instant::now();
                    let came = now - *began.get_or_insert(now);
                    due.push(Reverse((now + service.time(count, came, &mut random), now, at)));
                    count += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => connections[at] = None,
            }
        }
        while let Some(&Reverse((when, came, at))) = due.peek()
            && when <= Instant::now()
        {
            due.pop();
            if let Some(socket) = &mut connections[at] {
                // A short answer fits; a client that is gone is seen when it is read from.
                let _ = socket.write(ANSWER);
                made.record(u64::try_from(came.elapsed().as_nanos()).unwrap_or(u64::MAX));
            }
        }
    }
    Ok(made)
}

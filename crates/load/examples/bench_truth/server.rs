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
use rustix::thread::{CpuSet, sched_setaffinity};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const LISTENER: Token = Token(usize::MAX);
const EVENTS_MAX: usize = 256;
const READ_BYTES: usize = 4096;

/// The processor of the server.
const CPU: usize = 0;

/// The generator loads for so long before it measures.
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);

/// Multiples of it, without their whole parts, are spread evenly, however many are taken from wherever.
///
/// Source: Kuipers and Niederreiter, "Uniform Distribution of Sequences" (1974), chapter 2, section 3.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

/// How long a request is served, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Service {
    Constant(f64),
    /// With this mean.
    Exponential(f64),
    /// The second for one request in as many.
    Bimodal(f64, f64, u64),
    /// `usual`; but from `after` seconds of what is measured on, for `stall` seconds, nothing is answered. The
    /// whole takes `length` seconds.
    Stall {
        usual: f64,
        after: f64,
        stall: f64,
        length: f64,
    },
}

impl Service {
    /// What arithmetic says of response times at a rate.
    pub(crate) fn quantile(self, q: f64) -> Option<f64> {
        match self {
            Self::Constant(time) => Some(time),
            Self::Exponential(mean) => Some(-(1.0 - q).ln() * mean),
            Self::Bimodal(usual, rare, one_in) => {
                Some(if 1.0 - q < 1.0 / one_in as f64 { rare } else { usual })
            }
            // What comes in the stall waits for its end: all times up to its length are as frequent.
            Self::Stall { usual, stall, length, .. } => {
                Some((stall - (1.0 - q) * length).max(0.0) * 1e9 + usual)
            }
        }
    }

    /// The quantiles that its samples can show.
    pub(crate) fn quantiles(self) -> &'static [f64] {
        match self {
            Self::Constant(_) | Self::Exponential(_) => &[0.5, 0.9, 0.99],
            Self::Bimodal(..) => &[0.5, 0.9, 0.99, 0.998, 0.999_5],
            Self::Stall { .. } => &[0.5, 0.9, 0.95, 0.99],
        }
    }

    /// How long request number `k` is served that came that long after the first.
    fn time(self, k: u64, came: Duration) -> Duration {
        let nanos = match self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => -(1.0 - (k as f64 * GOLDEN_RATIO).fract()).ln() * mean,
            Self::Bimodal(usual, rare, one_in) => {
                if k.is_multiple_of(one_in) {
                    rare
                } else {
                    usual
                }
            }
            Self::Stall { usual, after, stall, .. } => {
                let (came, from) = (came.as_secs_f64(), after + WARM_UP.as_secs_f64());
                let rest =
                    if (from..from + stall).contains(&came) { from + stall - came } else { 0.0 };
                rest * 1e9 + usual
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
    let mut cpus = CpuSet::new();
    cpus.set(CPU);
    sched_setaffinity(None, &cpus)?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(EVENTS_MAX);
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    // When which connection is to be answered, and when its request came.
    let mut due = BinaryHeap::new();
    let mut made = Histogram::new();
    let (mut began, mut count) = (None, 0);
    let mut buffer = [0; READ_BYTES];
    while !stop.load(Relaxed) {
        // It spins: a thread that sleeps is woken late.
        match poll.poll(&mut events, Some(Duration::ZERO)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        let now = Instant::now();
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
                    let came = now - *began.get_or_insert(now);
                    due.push(Reverse((now + service.time(count, came), now, at)));
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
                made.record(u64::try_from(came.elapsed().as_nanos()).unwrap_or(u64::MAX));
                // A short answer fits; a client that is gone is seen when it is read from.
                let _ = socket.write(ANSWER);
            }
        }
    }
    Ok(made)
}

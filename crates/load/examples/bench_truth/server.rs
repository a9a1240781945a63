//! A server that answers each request a known time after it came.
//!
//! A request has come when the kernel has it: the time is the one that the kernel notes with what is read
//! (`SO_TIMESTAMPNS`, socket(7)), however late the thread learns of it. It is answered when the kernel has
//! delivered the answer, which on the loopback it has when the call returns: so each begins a little early, by
//! what the calls before it took.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, IoSliceMut, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use milepost_stats::histogram::Histogram;
use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::processor::{self, Awake};
use crate::service::Service;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const LISTENER: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
const EVENTS_MAX: usize = 256;
const READ_BYTES: usize = 4096;

/// The processor of the server.
const CPU: usize = 0;

/// It wakes so long before an answer is due, and spins from then on: a thread that sleeps is woken late.
const EARLY: Duration = Duration::from_micros(30);

/// A call that took longer was interrupted, and says nothing of the next.
const WRITE_MAX: Duration = Duration::from_micros(20);

/// How many of the last calls tell what the next will take.
const WRITES: u32 = 16;

/// It looks so often whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The server, and the thread that it has.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Served>>>,
    _awake: Awake,
}

/// What it did.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// How long it took from the request to the answer each time, in nanoseconds.
    pub(crate) times: Histogram,
    /// It had a real-time priority.
    pub(crate) went_first: bool,
}

impl Server {
    pub(crate) fn start(service: Service) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            processor::pin(CPU)?;
            let went_first = processor::go_first();
            let times = Serving::new(listener, service)?.serve(&is_stopped)?;
            Ok(Served { times, went_first })
        });
        Ok(Self { address, stop, thread: Some(thread), _awake: Awake::keep(CPU) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it, and says what it did.
    pub(crate) fn stop(mut self) -> Served {
        self.join().unwrap_or_default()
    }

    fn join(&mut self) -> Option<Served> {
        self.stop.store(true, Relaxed);
        self.thread.take()?.join().ok()?.ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.join();
    }
}

/// An answer that is to be given.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    /// When its request came, and on which connection.
    came: Instant,
    connection: usize,
}

struct Serving {
    listener: TcpListener,
    service: Service,
    poll: Poll,
    timer: rustix::fd::OwnedFd,
    connections: Vec<Option<TcpStream>>,
    due: BinaryHeap<Reverse<Due>>,
    /// When the first request came, and how many came since.
    began: Option<Instant>,
    count: u64,
    times: Histogram,
    /// What it takes to write an answer.
    write: Duration,
}

impl Serving {
    fn new(mut listener: TcpListener, service: Service) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        Ok(Self {
            listener,
            service,
            poll,
            timer,
            connections: Vec::new(),
            due: BinaryHeap::new(),
            began: None,
            count: 0,
            times: Histogram::new(),
            write: Duration::ZERO,
        })
    }

    fn serve(mut self, stop: &AtomicBool) -> io::Result<Histogram> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !stop.load(Relaxed) {
            let wait = self.wait()?;
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    // Setting it anew makes it silent.
                    TIMER => {}
                    Token(connection) => self.read(connection),
                }
            }
            self.answer();
        }
        Ok(self.times)
    }

    /// How long to wait for events: not at all, or until the timer.
    fn wait(&self) -> io::Result<Option<Duration>> {
        let sleep = match self.due.peek() {
            None => LOOK,
            Some(Reverse(due)) => match due.at.checked_duration_since(Instant::now() + EARLY) {
                None | Some(Duration::ZERO) => return Ok(Some(Duration::ZERO)),
                Some(sleep) => sleep.min(LOOK),
            },
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        // It is far below a second.
        let it_value = Timespec { tv_sec: 0, tv_nsec: sleep.subsec_nanos().into() };
        timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval, it_value },
        )?;
        Ok(None)
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Ok((mut socket, _)) = self.listener.accept() {
            socket.set_nodelay(true)?;
            setsockopt(&socket.as_fd(), sockopt::ReceiveTimestampns, &true)?;
            let token = Token(self.connections.len());
            self.poll.registry().register(&mut socket, token, Interest::READABLE)?;
            self.connections.push(Some(socket));
        }
        Ok(())
    }

    fn read(&mut self, connection: usize) {
        let Some(socket) = &self.connections[connection] else { return };
        match receive(socket) {
            Ok(Some(came)) => {
                let after = came.saturating_duration_since(*self.began.get_or_insert(came));
                let at = came + self.service.time(self.count, after);
                self.due.push(Reverse(Due { at, came, connection }));
                self.count += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(None) | Err(_) => self.connections[connection] = None,
        }
    }

    /// Gives all answers that are due.
    fn answer(&mut self) {
        while let Some(Reverse(due)) = self.due.peek() {
            let began = Instant::now();
            if due.at > began + self.write {
                break;
            }
            if let Some(socket) = &mut self.connections[due.connection] {
                // A short answer fits; a client that is gone is seen when it is read from.
                let _ = socket.write(ANSWER);
                let ended = Instant::now();
                let nanos = (ended - due.came).as_nanos();
                self.times.record(u64::try_from(nanos).unwrap_or(u64::MAX));
                let took = (ended - began).min(WRITE_MAX);
                self.write = (self.write * (WRITES - 1) + took) / WRITES;
            }
            self.due.pop();
        }
    }
}

/// Reads a request, and says when it came; nothing at the end.
fn receive(socket: &TcpStream) -> io::Result<Option<Instant>> {
    let mut buffer = [0; READ_BYTES];
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let mut space = nix::cmsg_space!(TimeSpec);
    let flags = MsgFlags::empty();
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    if message.bytes == 0 {
        return Ok(None);
    }
    let came = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    let ago = came
        .and_then(|came| SystemTime::now().checked_sub(came))
        .and_then(|rest| rest.duration_since(SystemTime::UNIX_EPOCH).ok())
        .unwrap_or_default();
    Ok(Some(Instant::now() - ago))
}

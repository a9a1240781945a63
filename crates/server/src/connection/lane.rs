//! The lane of a worker: connections that wait for nothing but their next request.
//!
//! A connection that sends requests without content, and takes its answers at once, needs no task and no timer: only
//! somebody who reads when there is something, answers and writes. The lane does so for all of them, with an epoll of
//! its own that the runtime waits for as for one connection. A connection that has to wait for anything else (the rest
//! of a head, content, a backend, room to write, the end of a client that still sends) leaves the lane for a task, for
//! good.
//!
//! This costs a system call for each time the worker wakes, and saves what tasks, wakers and readiness take of a
//! request: some 800 of 6,300 instructions in user space (callgrind). An idle connection has no task.
//!
//! Source: epoll(7), on edge-triggered use: all is read when less is read than there was room for, unless the end is
//! there as well.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use slab::Slab;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::{spawn_local, yield_now};

use super::talk::{Closing, Talk, Turn, Wait};
use super::{Connection, serve_from};
use crate::limits::{LANE_EVENTS_MAX, LANE_READS_MAX};
use crate::respond::{Peer, Respond};
use crate::socket::{Bare, Socket};
use crate::worker::{Presence, Worker};

/// The connections of one worker that wait for their next request.
pub(crate) struct Lane<R: Respond> {
    worker: Rc<Worker<R>>,
    poll: AsyncFd<OwnedFd>,
    members: RefCell<Slab<Box<Member<R>>>>,
}

struct Member<R: Respond> {
    stream: Bare,
    talk: Talk<R>,
    presence: Presence<R>,
}

/// What comes of a connection that has been looked at.
enum Fate {
    /// It waits for its next request.
    Waits,
    Ends,
    /// It has to wait for something else.
    Leaves(Turn),
}

impl<R: Respond + 'static> Lane<R> {
    /// An empty lane, in the runtime of the worker.
    ///
    /// # Errors
    /// When the system has no room for one more descriptor.
    pub(crate) fn new(worker: Rc<Worker<R>>) -> io::Result<Lane<R>> {
        let poll = epoll::create(CreateFlags::CLOEXEC)?;
        #[expect(
            deprecated,
            reason = "it is unsound for owners of nothing, and this one owns; the other is unsafe"
        )]
        let poll = AsyncFd::with_interest(poll, Interest::READABLE)?;
        Ok(Lane { worker, poll, members: RefCell::default() })
    }

    pub(crate) fn worker(&self) -> &Rc<Worker<R>> {
        &self.worker
    }

    /// Serves a connection that has just been accepted.
    pub(crate) fn enter(&self, stream: Bare, peer: Peer) {
        let presence = self.worker.enter();
        // The deadline is looked at with the lane's own.
        let slot = Rc::default();
        let talk = Talk::new(peer, Rc::clone(&self.worker), slot);
        let mut member = Member { stream, talk, presence };
        match member.proceed(false) {
            Fate::Waits => self.keep(member),
            fate => member.part(fate),
        }
    }

    fn keep(&self, member: Member<R>) {
        let mut members = self.members.borrow_mut();
        let entry = members.vacant_entry();
        let key = EventData::new_u64(entry.key() as u64);
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        // No room to wait for it: as if it had not been accepted.
        if epoll::add(self.poll.get_ref(), &member.stream, key, flags).is_ok() {
            entry.insert(Box::new(member));
        }
    }

    /// Answers whoever sends something, for as long as the worker lives.
    pub(crate) async fn drive(self: Rc<Self>) {
        let mut events = Vec::with_capacity(LANE_EVENTS_MAX);
        loop {
            // An error means that the runtime is at its end.
            let Ok(mut ready) = self.poll.readable().await else { return };
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            // Being interrupted is the only error.
            let _ = epoll::wait(self.poll.get_ref(), spare_capacity(&mut events), Some(&at_once));
            let is_full = events.len() == events.capacity();
            if !is_full {
                ready.clear_ready();
            }
            for event in events.drain(..) {
                let Event { flags, data } = event;
                let ends = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
                self.look(data.u64() as usize, |member| member.proceed(ends));
            }
            if is_full {
                yield_now().await;
            }
        }
    }

    /// Looks at the deadlines, and whether others wait for room.
    pub(crate) fn sweep(&self) {
        let now = self.worker.clock.now();
        let is_over = |member: &Member<R>| member.talk.slot.is_over(now);
        let over: Vec<_> = self.find(is_over);
        for key in over {
            self.look(key, Member::proceed_or_end);
        }
        if self.worker.is_crowded() {
            self.call_last();
        }
    }

    /// Lets the connections go that are to leave now, after one more look at what they send.
    pub(crate) fn call_last(&self) {
        for key in self.find(|member| member.talk.is_to_leave()) {
            self.look(key, |member| {
                member.leave_soon();
                Fate::Waits
            });
        }
    }

    fn find(&self, is_meant: impl Fn(&Member<R>) -> bool) -> Vec<usize> {
        let members = self.members.borrow();
        members.iter().filter(|(_, member)| is_meant(member)).map(|(key, _)| key).collect()
    }

    fn look(&self, key: usize, at: impl FnOnce(&mut Member<R>) -> Fate) {
        let mut members = self.members.borrow_mut();
        let Some(member) = members.get_mut(key) else { return };
        match at(member) {
            Fate::Waits => {}
            fate => {
                let member = members.remove(key);
                if let Fate::Leaves(_) = fate {
                    // The only error is that it is not there.
                    let _ = epoll::delete(self.poll.get_ref(), &member.stream);
                }
                member.part(fate);
            }
        }
    }
}

impl<R: Respond + 'static> Member<R> {
    /// Ends, or goes on in a task.
    fn part(self, fate: Fate) {
        let Member { stream, mut talk, presence } = self;
        match fate {
            Fate::Waits | Fate::Ends => talk.give_back(),
            Fate::Leaves(turn) => {
                // No room to wait for it: as if it had not been accepted.
                let Ok(stream) = Socket::try_from(stream) else { return };
                talk.worker.deadlines.add(&talk.slot);
                spawn_local(async move {
                    serve_from(turn, Connection { stream, talk }).await;
                    drop(presence);
                });
            }
        }
    }
}

impl<R: Respond> Member<R> {
    /// Reads what is there, and answers it. `ends`: the client sends nothing after it.
    fn proceed(&mut self, ends: bool) -> Fate {
        for _ in 0..LANE_READS_MAX {
            let spare = self.talk.input.spare(&self.talk.worker.pool);
            let room = spare.len();
            let count = match self.stream.receive(spare) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.rest(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => return Fate::Ends,
                Ok(count) => count,
            };
            self.talk.input.advance(count);
            self.talk.received += count as u64;
            let turn = self.talk.answer();
            match turn {
                Turn::Read(Wait::Request) => {}
                Turn::Close(Closing::Now) => self.stream.expect_end(),
                _ => return Fate::Leaves(turn),
            }
            match self.send_output() {
                Ok(true) => {}
                Ok(false) => return Fate::Leaves(turn),
                Err(_) => return Fate::Ends,
            }
            if matches!(turn, Turn::Close(_)) {
                return Fate::Ends;
            }
            if count < room && !ends {
                return self.rest();
            }
        }
        // Others want to be read as well.
        Fate::Leaves(Turn::Read(Wait::Request))
    }

    /// The last look at a connection whose deadline has passed.
    fn proceed_or_end(&mut self) -> Fate {
        let before = self.talk.received;
        match self.proceed(false) {
            Fate::Waits if self.talk.received == before => Fate::Ends,
            fate => fate,
        }
    }

    /// Ends the wait for a request that is not here by the next look.
    fn leave_soon(&self) {
        self.talk.slot.hasten(self.talk.worker.clock.after(Duration::ZERO));
    }

    /// Waits, without a buffer.
    fn rest(&mut self) -> Fate {
        self.talk.input.rest(&self.talk.worker.pool);
        let deadline = self.talk.deadline(Wait::Request);
        self.talk.slot.arm(deadline);
        if self.talk.worker.is_stopping() {
            self.leave_soon();
        }
        Fate::Waits
    }

    /// Sends what is in the output buffer; `false` if there is no room for all of it.
    fn send_output(&mut self) -> io::Result<bool> {
        if self.talk.output.is_empty() {
            return Ok(true);
        }
        let count = match self.stream.send(&self.talk.output) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            result => result?,
        };
        if count < self.talk.output.len() {
            self.talk.output.drain(..count);
            return Ok(false);
        }
        self.talk.worker.pool.give_output(std::mem::take(&mut self.talk.output));
        Ok(true)
    }
}

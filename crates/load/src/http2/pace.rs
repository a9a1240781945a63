//! What a worker of HTTP/2 does by the clock: gives out requests that are due, and asks for news instead of
//! sleeping where the plan wants that.
//!
//! It waits as the other workers do ([`Idle`](crate::idle::Idle)). The runtime's own timers know milliseconds
//! only, so there is one of ours beside them.

use std::future::pending;

#[cfg(target_os = "linux")]
use tokio::net::unix::pipe;
use tokio::task::yield_now;
use tokio::time::sleep_until;

use super::{Http2Worker, Running};
use crate::idle::Pause;
#[cfg(target_os = "linux")]
use crate::pacer::Timer;

/// Bytes that are asked of a timer, more than the eight that it has: reading fewer tells the runtime that there
/// are no more.
#[cfg(target_os = "linux")]
const RING_BYTES: usize = 16;

/// Wakes at a time.
enum Alarm {
    /// A timer and the same file as the runtime reads it: as a pipe, which any file can be to it.
    #[cfg(target_os = "linux")]
    Precise(Timer, pipe::Receiver),
    /// To the millisecond.
    Runtime,
}

impl Http2Worker<'_> {
    /// Gives out requests of an open loop when they are due, and keeps the worker awake if it is to poll.
    /// Does not end.
    pub(super) async fn pace(&self, running: &Running<'_>) {
        let alarm = Alarm::new(self);
        loop {
            let next = if running.is_open_loop { self.give_out(running) } else { None };
            let now = self.shared.clock.now();
            let pause = self.idle.borrow().pause(next, now);
            match pause {
                Pause::Poll => {
                    let noticed = self.noticed.get();
                    yield_now().await;
                    let mut idle = self.idle.borrow_mut();
                    if self.noticed.get() == noticed {
                        idle.polled(now, self.shared.clock.now(), noticed);
                    } else {
                        idle.found(now, self.shared.clock.now());
                    }
                }
                Pause::Sleep(at) => {
                    self.idle.borrow_mut().found(now, self.shared.clock.now());
                    match at {
                        Some(at) => alarm.wait(at, self).await,
                        None => pending().await,
                    }
                }
            }
        }
    }

    /// Gives out the requests that are due. Returns when the next one is.
    fn give_out(&self, running: &Running<'_>) -> Option<u64> {
        let now = self.shared.clock.now();
        let mut schedule = running.schedule.borrow_mut();
        while let Some(due) = schedule.take(now) {
            running.due.borrow_mut().push_back(due);
            running.permits.add_permits(1);
        }
        let next = schedule.next_at();
        if next.is_none() {
            // Whoever waits for more learns that there is none.
            running.permits.close();
        }
        next
    }
}

impl Alarm {
    fn new(worker: &Http2Worker<'_>) -> Self {
        #[cfg(target_os = "linux")]
        if let Ok(timer) = Timer::new(worker.shared.clock)
            && let Ok(rings) = timer.file().and_then(pipe::Receiver::from_owned_fd_unchecked)
        {
            return Self::Precise(timer, rings);
        }
        let _ = worker;
        Self::Runtime
    }

    /// Returns at `at`, or a little later.
    async fn wait(&self, at: u64, worker: &Http2Worker<'_>) {
        #[cfg(target_os = "linux")]
        if let Self::Precise(timer, rings) = self
            && timer.set(at).is_ok()
            && rings.readable().await.is_ok()
        {
            // How often it rang is of no interest; that it was read is.
            let _ = rings.try_read(&mut [0; RING_BYTES]);
            return;
        }
        sleep_until(worker.instant(at)).await;
    }
}

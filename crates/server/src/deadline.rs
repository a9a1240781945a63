//! Deadlines of all connections of a worker, checked by one sweep instead of one timer each.
//!
//! Arming a deadline is a store to a cell; a timer in the runtime's wheel would be moved with every
//! request. The price is that a deadline is noticed up to two ticks of the clock late, never early.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;

use crate::clock::Clock;

/// The deadline of one connection. The connection holds it, the sweep looks at it.
#[derive(Default)]
pub(crate) struct Slot {
    deadline: Cell<Option<Instant>>,
    waker: RefCell<Option<Waker>>,
}

impl Slot {
    /// Sets the deadline, in place of the one before.
    pub(crate) fn arm(&self, deadline: Instant) {
        self.deadline.set(Some(deadline));
    }

    /// Sets the deadline, if the one before is not earlier.
    pub(crate) fn hasten(&self, deadline: Instant) {
        let before = self.deadline.get();
        self.deadline.set(Some(before.map_or(deadline, |before| before.min(deadline))));
    }

    /// Takes the deadline away.
    pub(crate) fn disarm(&self) {
        self.deadline.set(None);
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.deadline.get().is_some_and(|deadline| deadline <= now)
    }

    /// Has the task woken when the deadline has passed, or when all are woken.
    pub(crate) fn watch(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

/// Runs `future` until the deadline of `slot`; `None` when it has passed.
pub(crate) async fn before<F: Future>(slot: &Slot, clock: &Clock, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if slot.is_over(clock.now()) => Poll::Ready(None),
        Poll::Pending => {
            slot.watch(context);
            Poll::Pending
        }
    })
    .await
}

/// The deadlines of one worker.
#[derive(Default)]
pub(crate) struct Deadlines {
    slots: RefCell<Vec<Weak<Slot>>>,
}

impl Deadlines {
    /// Returns a new slot. Dropping it is enough to give it back.
    pub(crate) fn slot(&self) -> Rc<Slot> {
        let slot = Rc::new(Slot::default());
        self.add(&slot);
        slot
    }

    /// Has the sweep look at a slot.
    pub(crate) fn add(&self, slot: &Rc<Slot>) {
        self.slots.borrow_mut().push(Rc::downgrade(slot));
    }

    /// Wakes the connections whose deadline has passed, and forgets those that have ended.
    pub(crate) fn sweep(&self, now: Instant) {
        self.visit(|slot| {
            if slot.is_over(now) {
                slot.wake();
            }
        });
    }

    /// Wakes all connections: there is something other than time to look at.
    pub(crate) fn wake_all(&self) {
        self.visit(Slot::wake);
    }

    fn visit(&self, look: impl Fn(&Slot)) {
        self.slots.borrow_mut().retain(|slot| match slot.upgrade() {
            Some(slot) => {
                look(&slot);
                true
            }
            None => false,
        });
    }
}

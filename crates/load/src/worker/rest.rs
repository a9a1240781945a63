//! What a slot does between two requests: takes the next, rests, or is finished.

use std::cmp::Reverse;

use super::Worker;
use crate::schedule::Schedule;

impl Worker<'_> {
    /// A slot has nothing to do any more: it takes the next request, unless it is to rest.
    #[inline]
    pub(super) fn next(&mut self, slot: usize, schedule: &mut Schedule<'_>) {
        if self.rests(slot) {
            return;
        }
        match schedule.take(self.core.now) {
            Some(due) => self.begin_request(slot, due, self.core.now),
            None => self.free.push_back((slot, self.core.now)),
        }
    }

    /// Puts the slot to rest if it has sent all its requests or is to pause before the next.
    #[inline]
    pub(super) fn rests(&mut self, slot: usize) -> bool {
        if self.slots[slot].sent >= self.slots[slot].sent_end {
            self.finished += 1;
            return true;
        }
        if self.pause_max_ns > 0 {
            let pause = self.random.u64(..=self.pause_max_ns);
            self.resting.push(Reverse((self.core.now.saturating_add(pause), slot)));
            return true;
        }
        false
    }

    /// Frees the slots that have rested.
    pub(super) fn rouse(&mut self) {
        while let Some(&Reverse((at, slot))) = self.resting.peek()
            && at <= self.core.now
        {
            self.resting.pop();
            self.free.push_back((slot, at));
        }
    }

    /// The place that a slot has come to on its own way through the list.
    pub(super) fn place_of(&self, slot: usize) -> usize {
        let targets = self.core.shared.choice.places() as u128;
        let number = (self.first_slot + slot) as u128;
        let start = number * targets / self.core.shared.plan.connections as u128;
        // Less than the number of places, so it fits.
        ((start + u128::from(self.slots[slot].sent)) % targets) as usize
    }
}

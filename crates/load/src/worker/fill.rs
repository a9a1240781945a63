//! What a worker does before it sends a request that is not the same each time.

use super::Worker;
use crate::part::Shared;
use crate::plan::Arrival;
use crate::schedule::Due;
use crate::template::Values;

impl<'a> Shared<'a> {
    /// What the places of a request are filled from, if the plan fills any.
    pub(crate) fn values(&self, due: Due) -> Option<Values<'a>> {
        let variables = self.plan.variables.as_ref()?;
        let share = self.plan.share;
        let number = match self.plan.arrival {
            // Each process counts its own, so they take turns.
            Arrival::Closed => due.number * share.of as u64 + share.index as u64,
            Arrival::Open { .. } => due.number,
        };
        Some(Values { variables, seed: self.plan.seed, number })
    }
}

impl Worker<'_> {
    /// Fills the places of the request on a connection, if it has any.
    pub(super) fn fill_in(&mut self, at: usize, due: Due) {
        let connection = &mut self.connections[at];
        connection.filled.clear();
        let target = self.core.shared.requests.target(connection.exchange.target);
        if let (Some(template), Some(values)) = (&target.template, self.core.shared.values(due)) {
            template.fill(values, &mut connection.filled, &mut self.content);
        }
    }

    /// The request on a connection, as it goes over the wire.
    pub(super) fn request(&self, at: usize) -> &[u8] {
        let connection = &self.connections[at];
        match &connection.own {
            Some(own) => &own.request.bytes,
            None if !connection.filled.is_empty() => &connection.filled,
            None => self.core.shared.requests.bytes(connection.exchange.target),
        }
    }
}

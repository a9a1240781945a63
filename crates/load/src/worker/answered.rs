//! What a worker does with a complete answer: counts it, and goes on with its slot.

use super::Worker;
use crate::answer::Answer;
use crate::browse::UNAUTHORIZED;
use crate::connection::{Exchange, State};
use crate::plan::Persistence;
use crate::record::Sample;
use crate::report::WrongAnswer;
use crate::schedule::Schedule;

impl Worker<'_> {
    /// Counts a complete answer; before that, sends the next request, so that the server has
    /// something to do meanwhile.
    #[inline]
    pub(super) fn answered(
        &mut self,
        at: usize,
        mut answer: Answer,
        closed: bool,
        schedule: &mut Schedule<'_>,
    ) {
        let now = self.core.now;
        let keep_alive = self.core.shared.plan.persistence == Persistence::KeepAlive;
        let connection = &mut self.connections[at];
        let exchange = connection.exchange;
        let got = if answer.right { None } else { connection.incoming.take_got() };
        let next = if self.browses { self.next_of_chain(at, answer) } else { Ok(None) };
        // A login that is asked for and given is no wrong answer.
        answer.right |= answer.status == UNAUTHORIZED && matches!(next, Ok(Some(_)));
        if let Some(got) = got
            && !answer.right
        {
            self.keep_example(at, got);
        }
        if self.core.shared.observer.is_some() {
            let outcome = next.as_ref().map(|_| answer);
            self.observe(at, outcome, matches!(next, Ok(Some(_))));
        }
        if self.browses
            && let Ok(next) = &next
        {
            self.count_link(exchange, answer, next.is_some());
        }
        let connection = &mut self.connections[at];
        connection.carried += 1;
        let most = self.core.shared.plan.requests_per_connection;
        let is_used_up = most.is_some_and(|most| connection.carried >= most.get());
        let goes_on = answer.persistent && !closed && connection.state == State::Waiting;
        if !keep_alive || !goes_on || is_used_up {
            if self.may_linger && !keep_alive {
                self.let_linger(at, closed);
            }
            self.core.driver.close(at, &mut self.connections[at]);
            self.core.record.closed_by_server += u64::from(keep_alive && !goes_on);
        }
        self.connections[at].state = State::Free;
        self.deadlines.clear(at);
        self.core.busy -= 1;
        let slot = self.slot(at);
        match next {
            Ok(None) => self.next(slot, schedule),
            Ok(Some(next)) => self.go_on(next, exchange, answer.right),
            Err(failure) => {
                self.count_failure(at, failure);
                return self.next(slot, schedule);
            }
        }

        self.core.record.status(answer.status);
        self.core.record.bytes.content += answer.content_bytes;
        if answer.right {
            let Exchange { intended, sent, first_byte, .. } = exchange;
            self.core.record.sample(Sample { intended, sent, first_byte, ended: now });
        } else {
            self.core.record.wrong += 1;
        }
    }

    /// Keeps a wrong answer as an example.
    #[cold]
    fn keep_example(&mut self, at: usize, got: String) {
        let connection = &self.connections[at];
        let listed = connection.exchange.target;
        let judge = connection.own.as_ref().map_or(&self.judges[listed], |own| &own.judge);
        let example = WrongAnswer { url: self.target(at).uri(), expected: judge.expected(), got };
        self.core.record.examples.push((listed, example));
    }
}

//! Buffers that connections borrow from their worker only while they have something in them.
//!
//! An idle connection holds none: ten thousand of them cost their sockets and their tasks, no more.

use std::cell::RefCell;

use crate::limits::{BUFFERS_KEPT_MAX, INPUT_BYTES, OUTPUT_BYTES, READ_BYTES_MIN};

/// The buffers of one worker that are not in use.
#[derive(Default)]
pub(crate) struct Pool {
    inputs: RefCell<Vec<Vec<u8>>>,
    outputs: RefCell<Vec<Vec<u8>>>,
}

impl Pool {
    /// Returns an empty buffer to write answers into.
    pub(crate) fn output(&self) -> Vec<u8> {
        self.outputs.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back an output buffer, unless an unusual answer has made it large.
    pub(crate) fn give_output(&self, mut buffer: Vec<u8>) {
        let mut outputs = self.outputs.borrow_mut();
        if (1..=2 * OUTPUT_BYTES).contains(&buffer.capacity()) && outputs.len() < BUFFERS_KEPT_MAX {
            buffer.clear();
            outputs.push(buffer);
        }
    }

    /// Returns a buffer of [`INPUT_BYTES`].
    fn input(&self) -> Vec<u8> {
        self.inputs.borrow_mut().pop().unwrap_or_else(|| vec![0; INPUT_BYTES])
    }

    fn give_input(&self, buffer: Vec<u8>) {
        let mut inputs = self.inputs.borrow_mut();
        if buffer.len() == INPUT_BYTES && inputs.len() < BUFFERS_KEPT_MAX {
            inputs.push(buffer);
        }
    }
}

/// What a client has sent and nobody has read yet.
#[derive(Default)]
pub(crate) struct Input {
    /// Initialised to its whole length, so that a read can go anywhere; empty when given back.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// The bytes to look at.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Marks bytes as read.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Returns room to read into, at least one byte of it.
    pub(crate) fn spare(&mut self, pool: &Pool) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = pool.input();
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 && self.bytes.len() - self.end < READ_BYTES_MIN {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            self.bytes.resize(2 * self.bytes.len(), 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Takes `count` bytes that were read into the spare room.
    pub(crate) fn advance(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// Gives the buffer back if there is nothing in it.
    pub(crate) fn rest(&mut self, pool: &Pool) {
        if self.start == self.end && !self.bytes.is_empty() {
            self.give(pool);
        }
    }

    /// Gives the buffer back, whatever is in it.
    pub(crate) fn give(&mut self, pool: &Pool) {
        pool.give_input(std::mem::take(&mut self.bytes));
        (self.start, self.end) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_bytes_survive_moving_and_growing() {
        let pool = Pool::default();
        let mut input = Input::default();
        let mut expected = Vec::new();
        let mut next = 0u8;
        // More is put in than taken out, so that the buffer is moved and grows.
        for round in 0..40 {
            let spare = input.spare(&pool);
            let count = spare.len().min(1500);
            for byte in &mut spare[..count] {
                *byte = next;
                expected.push(next);
                next = next.wrapping_add(1);
            }
            input.advance(count);
            let read = if round % 2 == 0 { 700 } else { 0 };
            input.consume(read);
            expected.drain(..read);
            assert_eq!(input.unread(), expected);
        }
    }

    #[test]
    fn an_empty_buffer_goes_back_to_the_pool() {
        let pool = Pool::default();
        let mut input = Input::default();
        input.spare(&pool)[0] = b'x';
        input.advance(1);
        input.rest(&pool);
        assert_eq!(pool.inputs.borrow().len(), 0);
        input.consume(1);
        input.rest(&pool);
        assert_eq!(pool.inputs.borrow().len(), 1);
        assert_eq!(input.unread(), b"");
        input.spare(&pool);
        assert_eq!(pool.inputs.borrow().len(), 0);
        input.advance(1);
        input.give(&pool);
        assert_eq!((pool.inputs.borrow().len(), input.unread()), (1, &b""[..]));
    }
}

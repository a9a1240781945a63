//! Writes the head of a response: the reply's own fields, and those of the connection.
//!
//! Source: RFC 9112 sections 4, 6.3 and 9.3; RFC 9110 section 8.6.

use std::time::Duration;

use crate::clock::Clock;
use crate::reply::Reply;
use crate::status;

/// What happens to the connection after a response, and how it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is closed.
    Close,
    /// It goes on, and nothing need be said.
    Persist,
    /// It goes on, and the client looks for being told.
    KeepAlive {
        /// How long it may be idle.
        timeout: Duration,
        /// How many answers it has left.
        left: Option<u32>,
    },
}

/// Appends status line and fields of `reply`, up to the empty line.
pub(crate) fn write(output: &mut Vec<u8>, reply: &Reply, clock: &Clock, ending: Ending) {
    status::write_line(reply.status(), output);
    clock.write_fields(output);
    output.extend_from_slice(reply.fields());
    if status::has_content(reply.status()) {
        output.extend_from_slice(b"Content-Length: ");
        write_decimal(output, reply.length());
        output.extend_from_slice(b"\r\n");
    }
    write_ending(output, ending);
}

/// Appends what is said about the connection, and the empty line.
pub(super) fn write_ending(output: &mut Vec<u8>, ending: Ending) {
    match ending {
        Ending::Close => output.extend_from_slice(b"Connection: close\r\n\r\n"),
        Ending::Persist => output.extend_from_slice(b"\r\n"),
        Ending::KeepAlive { timeout, left } => {
            output.extend_from_slice(b"Keep-Alive: timeout=");
            write_decimal(output, timeout.as_secs());
            if let Some(left) = left {
                output.extend_from_slice(b", max=");
                write_decimal(output, left.into());
            }
            output.extend_from_slice(b"\r\nConnection: Keep-Alive\r\n\r\n");
        }
    }
}

/// Appends a number. `write!` would take longer than the rest of the head together.
fn write_decimal(output: &mut Vec<u8>, mut number: u64) {
    const DIGITS_MAX: usize = 20;
    let mut digits = [0; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    output.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_numbers() {
        for number in [0, 9, 10, 1234567890, u64::MAX] {
            let mut output = Vec::new();
            write_decimal(&mut output, number);
            assert_eq!(output, number.to_string().as_bytes());
        }
    }
}

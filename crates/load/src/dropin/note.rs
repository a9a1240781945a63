//! What all three programs say on stderr beyond what the originals print.

use std::time::Duration;

use crate::report::{Linger, Report, WarningKind};

/// How long the run waits at its end, when not asked to, to see whether a server closes a connection
/// that it should. Long enough for a loopback or a near network, too short to be noticed.
pub(super) const GLANCE: Duration = Duration::from_millis(100);

/// How long it waits when asked to. Longer than the idle timeouts that servers ship with.
pub(super) const LINGER_MAX_DEFAULT: Duration = Duration::from_secs(120);

/// Closing takes a server a moment: what is shorter is no lingering.
const CLOSED_AT_ONCE: Duration = GLANCE;

/// Reads the value of `--linger-report`: seconds, or nothing.
pub(super) fn linger_max(value: Option<&str>) -> Option<Duration> {
    let Some(text) = value else { return Some(LINGER_MAX_DEFAULT) };
    let seconds: f64 = text.parse().ok()?;
    (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

/// What is to be said about a run: how long the server kept a connection, and whether the generator
/// was the limit. `asked` says that the first is wanted even when all is well.
pub(super) fn notes(report: &Report, program: &str, asked: bool) -> String {
    let mut text = String::new();
    if let Some(linger) = report.linger {
        text.push_str(&lingering(linger, program, asked));
    }
    for warning in &report.warnings {
        if warning.kind == WarningKind::GeneratorSaturated {
            text.push_str(&format!("milepost: {}\n", warning.message));
        }
    }
    text
}

/// Response times in more than siege's two digits after the second.
pub(super) fn times(report: &Report) -> String {
    let times = &report.response_ns;
    let (Some(mean), Some(half), Some(most), Some(max)) =
        (times.mean, times.p50, times.p99, times.max)
    else {
        return String::new();
    };
    let millis = |nanos: f64| nanos / 1e6;
    format!(
        "milepost: response time mean {:.3} ms, 50 % within {:.3} ms, 99 % within {:.3} ms, longest {:.3} ms\n",
        millis(mean),
        millis(half as f64),
        millis(most as f64),
        millis(max as f64)
    )
}

fn lingering(linger: Linger, program: &str, asked: bool) -> String {
    let Linger { seconds, closed } = linger;
    let is_short = closed && seconds < CLOSED_AT_ONCE.as_secs_f64();
    if is_short && !asked {
        return String::new();
    }
    let at_least = if closed { "" } else { "at least " };
    let mut text = format!(
        "milepost: the server kept the first connection open for {at_least}{seconds:.3} s after its answer\n"
    );
    if !is_short {
        text.push_str(&format!(
            "milepost: {program} would wait for that after every answer; here an answer ends where its \
             framing says\n"
        ));
    }
    if !closed && !asked {
        text.push_str("milepost: --linger-report waits to see how long it is\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_keeps_the_connection_is_worth_a_word() {
        let text = |seconds, closed, asked| lingering(Linger { seconds, closed }, "ab", asked);
        assert_eq!(text(0.001, true, false), "");
        let told =
            "milepost: the server kept the first connection open for 0.001 s after its answer\n";
        assert_eq!(text(0.001, true, true), told);
        let long = text(15.003, true, true);
        assert!(long.contains(" 15.003 s ") && long.contains("ab would wait"), "{long}");
        let open = text(0.1, false, false);
        assert!(open.contains("at least 0.100 s") && open.contains("--linger-report"), "{open}");
    }

    #[test]
    fn the_wait_is_a_positive_number_of_seconds() {
        assert_eq!(linger_max(None), Some(LINGER_MAX_DEFAULT));
        assert_eq!(linger_max(Some("1.5")), Some(Duration::from_millis(1500)));
        for text in ["", "x", "0", "-1", "inf", "nan", "1e300"] {
            assert_eq!(linger_max(Some(text)), None, "{text}");
        }
    }
}

//! The generator under test, as a process of its own.

use std::time::Duration;

use milepost_load::{Control, Expectation, HttpUrl, Io, Plan, Stop, Waiting};

/// Loads `url`, and prints what came of it as the other generators do: a line that a parser finds.
/// `check` is the Location that is right; `-` expects nothing but an answer.
pub(crate) fn run(
    io: &str,
    check: &str,
    connections: &str,
    seconds: &str,
    url: &str,
) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let parsed = HttpUrl::parse(url).map_err(|error| text(&error))?;
    let address = parsed.resolve().map_err(|error| text(&error))?;
    let mut target = parsed.target(address);
    match check {
        "-" => {}
        "200" => target.expectation.status = Some(200),
        location => target.expectation = Expectation::redirect(301, location),
    }
    let mut plan = Plan::new(vec![target]);
    plan.io = if io == "epoll" { Io::Epoll } else { Io::Uring };
    if io == "uring-busy" {
        plan.waiting = Waiting::BusyPoll;
    }
    plan.connections = connections.parse().map_err(|error| text(&error))?;
    let seconds: f64 = seconds.parse().map_err(|error| text(&error))?;
    plan.stop = Stop::Duration(Duration::from_secs_f64(seconds));
    let report = milepost_load::run(&plan, &Control::new()).map_err(|error| text(&error))?;
    if report.wrong_answers + report.errors > 0 {
        return Err(format!("{} wrong answers, {} errors", report.wrong_answers, report.errors));
    }
    println!("{} requests in {} s", report.requests, report.seconds);
    Ok(())
}

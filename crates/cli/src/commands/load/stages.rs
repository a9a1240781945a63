//! Reads `--stages`: the rate of an open loop over time.
//!
//! A stage is a time and a rate, `30s:100`, or a time and two rates that the stage goes evenly between,
//! `1m:100..1000`. Where the first of them is missing it is the last of the stage before.

use milepost_load::{RATE_PER_SECOND_MAX, Rate, Stage};

use super::plan::duration;

/// Reads the stages.
pub(super) fn stages(text: &str) -> Result<Rate, String> {
    let mut before = None;
    let mut stages = Vec::new();
    for (number, part) in (1..).zip(text.split(',')) {
        let fail = |why: String| Err(format!("stage {number}, \"{part}\": {why}"));
        let stage = match stage(part.trim(), before) {
            Ok(stage) => stage,
            Err(why) => return fail(why),
        };
        before = Some(stage.to);
        stages.push(stage);
    }
    if stages.iter().all(|stage| stage.from == 0.0 && stage.to == 0.0) {
        return Err("no stage sends anything".to_owned());
    }
    Ok(Rate::stages(stages))
}

fn stage(text: &str, before: Option<f64>) -> Result<Stage, String> {
    let Some((time, rates)) = text.split_once(':') else {
        return Err("a stage is TIME:RATE or TIME:FROM..TO".to_owned());
    };
    let length = duration(time)?;
    let (from, to) = match rates.split_once("..") {
        None => (rate(rates)?, rate(rates)?),
        Some(("", to)) => {
            let from = before.ok_or("the first stage has none before it to go on from")?;
            (from, rate(to)?)
        }
        Some((from, to)) => (rate(from)?, rate(to)?),
    };
    Ok(Stage { length, from, to })
}

fn rate(text: &str) -> Result<f64, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match text.parse() {
        Ok(rate) if plain && rate <= RATE_PER_SECOND_MAX => Ok(rate),
        _ => Err(format!("a rate is a number from 0 to {RATE_PER_SECOND_MAX}, not \"{text}\"")),
    }
}

/// The stages in words.
pub(super) fn describe(rate: &Rate) -> String {
    let stages = rate.as_stages().iter().map(|Stage { length, from, to }| {
        let seconds = length.as_secs_f64();
        if from == to {
            format!("{seconds} s at {from}")
        } else {
            format!("{seconds} s from {from} to {to}")
        }
    });
    stages.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_steps_and_ramps() {
        for (text, words) in [
            ("30s:100", "30 s at 100"),
            ("30s:100, 1m:1000", "30 s at 100, 60 s at 1000"),
            ("500ms:0..50.5,2:..100", "0.5 s from 0 to 50.5, 2 s from 50.5 to 100"),
            ("1s:10..10", "1 s at 10"),
        ] {
            assert_eq!(stages(text).map(|rate| describe(&rate)), Ok(words.to_owned()));
        }
    }

    #[test]
    fn what_is_no_stage_is_named() {
        for (text, message) in [
            ("", "stage 1, \"\": a stage is TIME:RATE or TIME:FROM..TO"),
            ("1s:1,5", "stage 2, \"5\": a stage is TIME:RATE or TIME:FROM..TO"),
            ("1s:..5", "stage 1, \"1s:..5\": the first stage has none before it to go on from"),
            ("1s:-5", "stage 1, \"1s:-5\": a rate is a number from 0 to 10000000, not \"-5\""),
            ("1s:1e3", "stage 1, \"1s:1e3\": a rate is a number from 0 to 10000000, not \"1e3\""),
            ("1s:1..", "stage 1, \"1s:1..\": a rate is a number from 0 to 10000000, not \"\""),
            ("1s:0,1s:0..0", "no stage sends anything"),
        ] {
            assert_eq!(stages(text), Err(message.to_owned()));
        }
        assert!(stages("0s:5").unwrap_err().contains("stage 1, \"0s:5\": a duration is"));
    }
}

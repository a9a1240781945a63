//! `RewriteCond`: whether the conditions of a rule hold.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `apply_rewrite_rule` and `apply_rewrite_cond`,
//! `compare_lexicography`.

use std::cmp::Ordering;

use super::ahead::Ahead;
use super::expand::Backrefs;
use super::{Hop, Run};
use crate::build::bytes_to_path;
use crate::outside::FileKind;
use crate::program::{Condition, FileTest, Test};
use crate::trace::Event;

impl Run<'_> {
    /// All of them, where a run of conditions joined by `OR` counts as one.
    pub(super) fn conditions_hold(
        &mut self,
        conditions: &[Condition],
        hop: &Hop,
        backrefs: Backrefs<'_>,
    ) -> bool {
        let mut at = 0;
        self.work.seen.start();
        let mut kept = 0;
        while let Some(condition) = conditions.get(at) {
            let holds = self.condition_holds(condition, hop, backrefs);
            // Another condition of the group decides, or the field shall not be named.
            if condition.no_vary || condition.or && !holds {
                self.work.seen.forget(kept);
            }
            kept = self.work.seen.mark();
            at += 1;
            if condition.or {
                if holds {
                    // The rest of the group does not matter, its last one included.
                    while conditions.get(at).is_some_and(|condition| condition.or) {
                        at += 1;
                    }
                    at += 1;
                }
            } else if !holds {
                self.work.seen.start();
                self.work.seen.stop();
                return false;
            }
        }
        self.work.seen.stop();
        true
    }

    fn condition_holds(
        &mut self,
        condition: &Condition,
        hop: &Hop,
        backrefs: Backrefs<'_>,
    ) -> bool {
        let pool = backrefs.pool;
        let mut input = self.take_buffer();
        if let (Some(subject), Test::Text(comparison, text)) = (condition.subject, &condition.test)
        {
            // Hosts are compared more often than all else, and need not be copied for it.
            let value = self.subject(hop, subject, &mut input);
            let order = order(value, pool.get(*text), condition.no_case);
            let holds = comparison.fits(order) != condition.negated;
            self.put_buffer(input);
            self.note(Some((condition.place, pool)), |run| Event::Condition {
                input: run.subject(hop, subject, &mut Vec::new()).to_vec(),
                holds,
            });
            return holds;
        }
        let template = pool.get(condition.input);
        self.expand(hop, template, backrefs, None, &mut input, None);
        let mut captured = None;
        let holds = match &condition.test {
            Test::Pattern(pattern) => {
                captured = pattern.find(pool, &input, &mut self.work.matcher).unwrap_or(None);
                captured.is_some()
            }
            Test::Text(comparison, text) => {
                comparison.fits(order(&input, pool.get(*text), condition.no_case))
            }
            Test::Integer(comparison, text) => {
                comparison.fits(number(&input).cmp(&number(pool.get(*text))))
            }
            Test::Expression(expression) => {
                // Its groups count only if it holds by itself.
                let mut capture = std::mem::take(&mut self.work.expression);
                capture.subject.clone_from(&self.work.condition.subject);
                capture.groups = self.work.condition.groups;
                let holds = self.holds(expression, hop, &mut capture);
                if holds && !condition.negated {
                    std::mem::swap(&mut self.work.condition, &mut capture);
                }
                self.work.expression = capture;
                holds
            }
            Test::File(test) => {
                let path = bytes_to_path(&input);
                match test {
                    FileTest::Regular => matches!(self.outside.kind(path), FileKind::File(_)),
                    FileTest::NotEmpty => matches!(self.outside.kind(path), FileKind::File(1..)),
                    FileTest::Directory => self.outside.kind(path) == FileKind::Directory,
                    FileTest::Link => self.outside.kind_of_link(path) == FileKind::Link,
                    FileTest::Executable => self.outside.is_executable(path),
                    FileTest::Url => self.is_reachable(hop, Ahead::Url, &input),
                    FileTest::File => self.is_reachable(hop, Ahead::File, &input),
                }
            }
        };
        let holds = holds != condition.negated;
        self.note(Some((condition.place, pool)), |_| Event::Condition {
            input: input.clone(),
            holds,
        });
        if let Some(groups) = captured.filter(|_| !condition.negated) {
            std::mem::swap(&mut self.work.condition.subject, &mut input);
            self.work.condition.groups = groups;
        }
        self.put_buffer(input);
        holds
    }
}

/// The longer text is the greater one; of the same length, byte by byte. Without regard to case there is no
/// such difference.
fn order(left: &[u8], right: &[u8], no_case: bool) -> Ordering {
    if no_case {
        left.to_ascii_lowercase().cmp(&right.to_ascii_lowercase())
    } else {
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    }
}

/// The number that a text begins with, as `atoi` reads it; 0 without one.
fn number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    sign * digits.fold(0_i64, |number, digit| {
        number.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    })
}

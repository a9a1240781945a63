//! The steps of mod_rewrite in its own words, for the error log.
//!
//! `LogLevel rewrite:trace1` names results, `trace2` each change, `trace3` the patterns that were tried,
//! `trace4` the conditions. The place of the directive follows, which httpd does not say. Rules that the
//! index has ruled out were not tried and are not named.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, the calls of `rewritelog`.

use std::path::PathBuf;

use milepost_syntax::RawWords;

use super::{Directive, Event, Step};

/// A line about mod_rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewriteNote {
    /// 1 to 8, for `trace1` to `trace8`.
    pub level: u8,
    /// The most that sections ask for; `None`: as the server.
    pub level_max: Option<u8>,
    /// What happened. Holds what the client has sent, as it was sent.
    pub text: Vec<u8>,
    /// File and line of the directive that it is about.
    pub place: Option<(PathBuf, u32)>,
}

/// Tells of the steps of a decision what mod_rewrite logs. `redirect` is the answer, if it is one.
#[must_use]
pub fn rewrite_notes(steps: &[Step], redirect: Option<(u16, &[u8])>) -> Vec<RewriteNote> {
    let mut notes = Vec::new();
    let mut run: Option<Run<'_>> = None;
    let mut path: &[u8] = b"";
    let mut prefix = Vec::new();
    let mut input: &[u8] = b"";
    for step in steps {
        if matches!(step.event, Event::Rules { .. } | Event::File { .. }) {
            notes.extend(run.take().and_then(|run| run.end(&prefix)));
        }
        let (level, parts): (u8, Vec<&[u8]>) = match &step.event {
            Event::Path { path: normal, .. } => {
                path = normal;
                continue;
            }
            Event::Rules { of, .. } if of.starts_with('/') => {
                run = Some(Run { input: path, output: None, level_max: step.rewrite_level });
                prefix = [b"[perdir ", of.as_bytes(), b"] "].concat();
                continue;
            }
            Event::Rules { .. } => {
                run = Some(Run { input: path, output: None, level_max: step.rewrite_level });
                prefix.clear();
                (2, vec![b"init rewrite engine with requested uri ", path])
            }
            Event::Tried { input: tried, .. } => {
                let Some(pattern) = rule_word(step, "RewriteRule", 1) else { continue };
                input = tried;
                (3, vec![b"applying pattern '", pattern, b"' to uri '", tried, b"'"])
            }
            Event::Condition { input: tested, holds } => {
                let Some(pattern) = rule_word(step, "RewriteCond", 2) else { continue };
                let end: &[u8] = if *holds { b"' => matched" } else { b"' => not-matched" };
                (4, vec![b"RewriteCond: input='", tested, b"' pattern='", pattern, end])
            }
            Event::Rewritten { to, .. } => {
                run.iter_mut().for_each(|run| run.output = Some(to));
                (2, vec![b"rewrite '", input, b"' -> '", to, b"'"])
            }
            Event::InternalRedirect { target } => {
                run = None;
                (1, vec![b"internal redirect with ", target, b" [INTERNAL REDIRECT]"])
            }
            Event::Proxied { url } => {
                run = None;
                (1, vec![b"go-ahead with proxy request ", url, b" [OK]"])
            }
            Event::File { path: file, .. } => {
                path = file;
                continue;
            }
            Event::Server { .. } | Event::Subrequest { .. } | Event::Respelled { .. } => continue,
        };
        let text = [&prefix[..], &parts.concat()].concat();
        let level_max = step.rewrite_level;
        notes.push(RewriteNote { level, level_max, text, place: place(step.directive.as_ref()) });
    }
    let rule = steps.iter().rev().find_map(|step| step.directive.as_ref());
    let is_rewritten = rule.is_some_and(|rule| is_named(rule, "RewriteRule"));
    if let Some((status, location)) = redirect.filter(|_| is_rewritten) {
        let end = format!(" [REDIRECT/{status}]");
        let text = [&prefix[..], b"redirect to ", location, end.as_bytes()].concat();
        let level_max = steps.last().and_then(|step| step.rewrite_level);
        notes.push(RewriteNote { level: 1, level_max, text, place: place(rule) });
    } else {
        notes.extend(run.and_then(|run| run.end(&prefix)));
    }
    notes
}

/// The rules of a server or of a directory, under way.
struct Run<'s> {
    /// What they began with, and have made of it.
    input: &'s [u8],
    output: Option<&'s [u8]>,
    level_max: Option<u8>,
}

impl Run<'_> {
    /// What is said at their end, if they have not ended in something else.
    fn end(self, prefix: &[u8]) -> Option<RewriteNote> {
        let text = match self.output {
            None => [prefix, b"pass through ", self.input].concat(),
            // A directory's rules end in an internal redirect, of which a step tells.
            Some(_) if !prefix.is_empty() => return None,
            Some(output) => [b"go-ahead with ", output, b" [OK]"].concat(),
        };
        Some(RewriteNote { level: 1, level_max: self.level_max, text, place: None })
    }
}

fn place(directive: Option<&Directive>) -> Option<(PathBuf, u32)> {
    directive.map(|directive| (directive.file.clone(), directive.line))
}

fn is_named(directive: &Directive, name: &str) -> bool {
    let first = directive.text.split_ascii_whitespace().next();
    first.is_some_and(|first| first.eq_ignore_ascii_case(name))
}

/// An argument of the step's directive, if it has this name.
fn rule_word<'s>(step: &'s Step, name: &str, number: usize) -> Option<&'s [u8]> {
    let directive = step.directive.as_ref().filter(|directive| is_named(directive, name))?;
    let text = directive.text.as_bytes();
    let word = RawWords::new(text).nth(number)?;
    let raw = &text[word.at..(word.at + word.len).min(text.len())];
    let quoted = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\""));
    Some(quoted.unwrap_or(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str, event: Event) -> Step {
        let directive = Directive { file: "a.conf".into(), line: 7, text: text.to_owned() };
        let directive = Some(directive).filter(|it| !it.text.is_empty());
        Step { depth: 0, directive, event, rewrite_level: None }
    }

    #[test]
    fn steps_become_lines_of_mod_rewrite() {
        let rule = "RewriteRule \"^/a (.*)$\" /b$1 [R]";
        let steps = [
            step("", Event::Path { path: b"/a x".to_vec(), query: None }),
            step("", Event::Rules { of: "the server".to_owned(), count: 2 }),
            step("Redirect /x /y", Event::Tried { input: b"/a x".to_vec(), groups: None }),
            step(rule, Event::Tried { input: b"/a x".to_vec(), groups: Some(Vec::new()) }),
            step(
                "RewriteCond %{HTTPS} !=on [NC]",
                Event::Condition { input: b"off".to_vec(), holds: true },
            ),
            step(rule, Event::Rewritten { to: b"/bx".to_vec(), query: None }),
        ];
        let notes = rewrite_notes(&steps, Some((302, b"http://h/bx")));
        let lines: Vec<String> = notes
            .iter()
            .map(|note| format!("{} {}", note.level, String::from_utf8_lossy(&note.text)))
            .collect();
        assert_eq!(
            lines,
            [
                "2 init rewrite engine with requested uri /a x",
                "3 applying pattern '^/a (.*)$' to uri '/a x'",
                "4 RewriteCond: input='off' pattern='!=on' => matched",
                "2 rewrite '/a x' -> '/bx'",
                "1 redirect to http://h/bx [REDIRECT/302]",
            ]
        );
        assert_eq!(notes[1].place, Some(("a.conf".into(), 7)));
    }
}

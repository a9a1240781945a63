//! `RewriteRule`: runs a list of rules over the string of a request, and acts on what they made of it.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `apply_rewrite_list`, `apply_rewrite_rule`,
//! `hook_uri2file`, `hook_fixup`.

mod substituted;

use milepost_pcre::Captures;

pub(super) use self::substituted::absolute;

use self::substituted::{has_blank_or_control, query_start};
use super::expand::{Backrefs, Origins};
use super::{Config, End, Hop, Run, Translated};
use crate::index::Values;
use crate::pool::Pool;
use crate::program::{Effect, Flags, Part, RewriteDir, RewriteList, RewriteRule, Substitution};
use crate::trace::Event;

/// The note that keeps the type of `T=`.
pub(super) const FORCED_TYPE: &[u8] = b"rewrite-forced-mimetype";

/// Rounds of `N` that end in a 500, unless the flag names another number.
const ROUNDS_MAX: u32 = 32_000;

/// What a pass over a list did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passed {
    /// No rule changed the string.
    Unchanged,
    /// The last rule that changed it had this flag.
    Changed { no_escape: bool },
    /// A rule has this status as its answer.
    Status(u16),
    /// A rule made something that must not be.
    Failed(u16),
}

/// What one rule did.
enum Applied {
    No,
    /// It matched and left the string alone.
    Matched,
    Changed,
    Failed(u16),
}

/// Where a list of rules runs.
#[derive(Clone, Copy)]
struct Place<'l> {
    lists: &'l [Part<RewriteList>],
    /// The directory whose rules they are; none for the server's.
    directory: Option<&'l [u8]>,
}

/// The state that rules leave for the hook.
#[derive(Default)]
struct Marks<'l> {
    proxy: bool,
    pass_through: bool,
    /// The last substituting rule allows any file system path.
    unsafe_prefix: bool,
    /// A rule named this very server, and what is left is a URL-path for sure.
    reduced: bool,
    /// What the last substitution says literally, up to its second segment.
    literal: &'l [u8],
}

impl<'r> Run<'r> {
    /// The rules of the server, before the file is looked for.
    pub(super) fn rewrite_server(&mut self, hop: &mut Hop, config: &Config<'_>) -> Translated {
        let on = config.get().rewrite.as_ref().is_some_and(RewriteDir::is_on);
        if !on
            || hop.rewriting_ended
            || hop.uri.first() != Some(&b'/') && !self.server.rewrite_options.allow_any_uri
        {
            return Translated::Declined;
        }
        hop.filename.clone_from(&hop.uri);
        if self.server.rewrite.is_empty() {
            return Translated::Declined;
        }
        let sent_args = self.remember_args(hop);
        let mut marks = Marks::default();
        let server = self.server;
        let place = Place { lists: &server.rewrite, directory: None };
        let passed = self.run_rules(place, hop, &mut marks);
        let translated = match passed {
            Passed::Unchanged => Translated::Declined,
            _ if is_unsendable(hop, passed, &marks) => Translated::End(End::Status(403)),
            Passed::Status(status) | Passed::Failed(status) => {
                Translated::End(end_by_rule(hop, passed, status))
            }
            Passed::Changed { no_escape } if marks.proxy => self.rewrite_to_proxy(hop, no_escape),
            Passed::Changed { .. } if marks.pass_through => {
                if hop.filename.first() != Some(&b'/') {
                    // A URL is no path for what comes next.
                    Translated::End(End::Status(400))
                } else {
                    self.settle_env(hop);
                    hop.uri.clone_from(&hop.filename);
                    Translated::Declined
                }
            }
            Passed::Changed { no_escape } => match absolute(&hop.filename) {
                Some((skip, _)) => {
                    self.external_redirect(hop, skip, no_escape, sent_args.as_deref())
                }
                None => self.local_path(hop, &marks),
            },
        };
        sent_args.into_iter().for_each(|args| self.put_buffer(args));
        translated
    }

    /// The rules of directories, when the file is known.
    pub(super) fn rewrite_directory(&mut self, hop: &mut Hop, config: &Config<'_>) -> Option<End> {
        let config = config.get();
        let dir = config.rewrite.as_ref().filter(|dir| dir.is_on() && !dir.directory.is_empty())?;
        if hop.rewriting_ended {
            return None;
        }
        let directory = &dir.directory[..];
        let options = dir.options.unwrap_or_default();
        // The directory itself, without its slash: mod_dir answers that.
        if !options.allow_no_slash
            && hop.filename.len() + 1 == directory.len()
            && directory.starts_with(&hop.filename)
        {
            return None;
        }
        if !config.options.follows_links() {
            return Some(End::Status(403));
        }
        let mut original = self.take_buffer();
        original.extend_from_slice(&hop.filename);
        let sent_args = self.remember_args(hop);
        let mut marks = Marks::default();
        let place = Place { lists: &dir.rules, directory: Some(directory) };
        let passed = self.run_rules(place, hop, &mut marks);
        let end = match passed {
            Passed::Unchanged => {
                hop.filename.clone_from(&original);
                None
            }
            _ if is_unsendable(hop, passed, &marks) => Some(End::Status(403)),
            Passed::Status(status) | Passed::Failed(status) => {
                Some(end_by_rule(hop, passed, status))
            }
            Passed::Changed { .. } if marks.pass_through => self.internal_path(hop, dir, &original),
            Passed::Changed { no_escape } if marks.proxy => {
                self.rewrite_directory_to_proxy(hop, config, no_escape)
            }
            Passed::Changed { no_escape } => match absolute(&hop.filename) {
                Some((skip, _)) => {
                    self.rebase_redirect(hop, dir, skip);
                    match self.external_redirect(hop, skip, no_escape, sent_args.as_deref()) {
                        Translated::End(end) => Some(end),
                        Translated::Done | Translated::Declined => None,
                    }
                }
                None => self.internal_path(hop, dir, &original),
            },
        };
        sent_args.into_iter().for_each(|args| self.put_buffer(args));
        self.put_buffer(original);
        end
    }

    fn remember_args(&mut self, hop: &Hop) -> Option<Vec<u8>> {
        hop.has_args.then(|| {
            let mut args = self.take_buffer();
            args.extend_from_slice(&hop.args);
            args
        })
    }

    /// Runs the rules in order.
    fn run_rules<'l>(&mut self, place: Place<'l>, hop: &mut Hop, marks: &mut Marks<'l>) -> Passed
    where
        'r: 'l,
    {
        self.note(None, |_| Event::Rules {
            of: match place.directory {
                None => "the server".to_owned(),
                Some(directory) => String::from_utf8_lossy(directory).into_owned(),
            },
            count: place.lists.iter().map(|list| list.value.rules.len()).sum(),
        });
        let mut input = self.take_buffer();
        let passed = self.run_rules_on(place, hop, marks, &mut input);
        self.put_buffer(input);
        passed
    }

    fn run_rules_on<'l>(
        &mut self,
        place: Place<'l>,
        hop: &mut Hop,
        marks: &mut Marks<'l>,
        input: &mut Vec<u8>,
    ) -> Passed
    where
        'r: 'l,
    {
        let program = self.program;
        let mut passed = Passed::Unchanged;
        let mut rounds = 1;
        // Rules are numbered through all lists; `at` is the next that may run.
        let (mut list_number, mut base, mut at) = (0_usize, 0_u32, 0_u32);
        let mut started = false;
        // The rule at `at` runs whether the index names it or not: it follows one that matched.
        let mut forced = false;
        while let Some(part) = place.lists.get(list_number) {
            let (list, pool) = (&*part.value, part.pool(&program.pool));
            let len = list.rules.len() as u32;
            if at >= base + len {
                (list_number, base, started) = (list_number + 1, base + len, false);
                continue;
            }
            if !started {
                self.input(hop, place.directory, input);
                let mut host = self.take_buffer();
                let values =
                    Values { host: self.host_value(&mut host), uri: &hop.uri, query: &hop.args };
                list.index.start(pool, input, values, &mut self.work.candidates);
                self.put_buffer(host);
                started = true;
            }
            let number = if forced {
                Some(at - base)
            } else {
                list.index.next(pool, at - base, &mut self.work.candidates)
            };
            let Some(number) = number else {
                at = base + len;
                continue;
            };
            at = base + number + 1;
            list.fetch_condition(number);
            let rule = &list.rules[number as usize];
            let may_follow = rule.flags.has(Flags::FOLLOWS) || number == 0 && base > 0;
            if !std::mem::take(&mut forced)
                && may_follow
                && !is_reached(place, at - 1, hop.subrequest)
            {
                continue;
            }
            list.fetch(rule, pool);
            let flags = rule.flags;
            if hop.subrequest && flags.skips_subrequests() {
                forced = is_follower(place, at);
                continue;
            }
            match self.apply((list, pool), rule, place, hop, marks, input) {
                Applied::No => {
                    if flags.has(Flags::CHAIN) {
                        let mut skipped = number as usize;
                        while list
                            .rules
                            .get(skipped)
                            .is_some_and(|rule| rule.flags.has(Flags::CHAIN))
                        {
                            skipped += 1;
                        }
                        at = base + skipped as u32 + 1;
                    }
                    continue;
                }
                Applied::Failed(status) => {
                    self.rule = Some((rule.place, part.own_text().cloned()));
                    return Passed::Failed(status);
                }
                Applied::Matched => {}
                Applied::Changed => {
                    passed = Passed::Changed { no_escape: flags.has(Flags::NO_ESCAPE) };
                    self.rule = Some((rule.place, part.own_text().cloned()));
                    started = false;
                    let settings = &self.program.settings;
                    let line_bytes_max =
                        settings.request_line_bytes_max_of(self.server_number as usize);
                    if hop.filename.len() > 2 * line_bytes_max {
                        return Passed::Status(500);
                    }
                }
            }
            if flags.has(Flags::STATUS) {
                self.rule = Some((rule.place, part.own_text().cloned()));
                return Passed::Status(rule.status);
            }
            if flags.has(Flags::PASS_THROUGH) {
                marks.pass_through = true;
                passed = Passed::Changed { no_escape: false };
                break;
            }
            if flags.has(Flags::END) {
                hop.rewriting_ended = true;
                break;
            }
            if flags.has(Flags::PROXY) || flags.has(Flags::LAST) {
                break;
            }
            if flags.has(Flags::NEXT) {
                rounds += 1;
                let extra = rule.extra.as_deref();
                if rounds >= extra.and_then(|extra| extra.rounds_max).unwrap_or(ROUNDS_MAX) {
                    return Passed::Status(500);
                }
                (list_number, base, at, started) = (0, 0, 0, false);
                continue;
            }
            if flags.has(Flags::SKIP) {
                at += rule.extra.as_deref().map_or(0, |extra| extra.skip);
            }
            // A rule that follows a chain is filed nowhere: it runs because we stand before it.
            forced = is_follower(place, at);
        }
        passed
    }

    /// The string that the patterns of a place see.
    fn input(&self, hop: &Hop, directory: Option<&[u8]>, input: &mut Vec<u8>) {
        input.clear();
        input.extend_from_slice(&hop.filename);
        if let Some(directory) = directory {
            input.extend_from_slice(&hop.path_info);
            if input.starts_with(directory) {
                input.drain(..directory.len());
            }
        }
    }

    fn apply<'l>(
        &mut self,
        (list, pool): (&'l RewriteList, &'l Pool),
        rule: &'l RewriteRule,
        place: Place<'l>,
        hop: &mut Hop,
        marks: &mut Marks<'l>,
        input: &[u8],
    ) -> Applied {
        let negated = rule.flags.has(Flags::NEGATED);
        // A pattern that runs into a limit does not match, as in httpd.
        let captures = rule.pattern.find(pool, input, &mut self.work.matcher).unwrap_or(None);
        let matched = captures.is_some() != negated;
        self.note(Some((rule.place, pool)), |_| Event::Tried {
            input: input.to_vec(),
            groups: matched
                .then(|| captures.as_ref().map(|found| found.texts(input)).unwrap_or_default()),
        });
        if !matched {
            return Applied::No;
        }
        let groups = captures.as_ref().unwrap_or(&Captures::NONE);
        let backrefs = Backrefs { subject: input, groups, pool };
        self.work.condition.groups.clear();
        if !self.conditions_hold(list.conditions_of(rule), hop, backrefs) {
            return Applied::No;
        }
        self.add_vary(hop);
        let template = match rule.substitution {
            Substitution::None => None,
            Substitution::Plain(text) => Some((text, text.len())),
            Substitution::Expanded(text, plain) => Some((text, usize::from(plain))),
        };
        let mut result = self.take_buffer();
        let mut origins = Origins::default();
        if let Some((text, plain)) = template {
            let (plain, text) = pool.get(text).split_at(plain);
            result.extend_from_slice(plain);
            if !text.is_empty() {
                let escape = rule.extra.as_deref().map(|extra| extra.escape).unwrap_or_default();
                let escape = rule.flags.has(Flags::ESCAPE_BACKREFS).then_some(escape);
                self.expand(hop, text, backrefs, escape, &mut result, Some(&mut origins));
            }
            if !origins.is_empty()
                && query_start(&result, rule.flags).is_some_and(|at| origins.has(at))
                && !rule.flags.has(Flags::UNSAFE_ALLOW_3F)
            {
                self.put_buffer(result);
                return Applied::Failed(403);
            }
        }
        if let Some(extra) = rule.extra.as_deref() {
            self.effects(&extra.effects, hop, backrefs);
        }
        let Some((text, _)) = template else {
            self.put_buffer(result);
            return Applied::Matched;
        };
        std::mem::swap(&mut hop.filename, &mut result);
        self.put_buffer(result);
        marks.literal = pool.get(text);
        marks.unsafe_prefix = rule.flags.has(Flags::UNSAFE_PREFIX_STAT);
        self.finish_rule(rule, place, hop, marks);
        self.note(Some((rule.place, pool)), |_| Event::Rewritten {
            to: hop.filename.clone(),
            query: hop.has_args.then(|| hop.args.clone()),
        });
        Applied::Changed
    }

    /// `E=` and `CO=`.
    fn effects(&mut self, effects: &[Effect], hop: &mut Hop, backrefs: Backrefs<'_>) {
        if !effects.is_empty() {
            self.settle_env(hop);
        }
        for effect in effects {
            let (Effect::Env(text) | Effect::Cookie(text) | Effect::Type(text)) = effect;
            let template = backrefs.pool.get(*text);
            let mut expanded = self.take_buffer();
            self.expand(hop, template, backrefs, None, &mut expanded, None);
            match effect {
                Effect::Cookie(_) => self.set_cookie(&expanded),
                Effect::Type(_) if expanded.is_empty() => {}
                Effect::Type(_) => {
                    expanded.make_ascii_lowercase();
                    hop.notes.set(FORCED_TYPE, &expanded);
                }
                Effect::Env(_) => match memchr::memchr(b':', &expanded) {
                    _ if expanded.first() == Some(&b'!') => hop.env.remove(&expanded[1..]),
                    Some(colon) => hop.env.set(&expanded[..colon], &expanded[colon + 1..]),
                    None => hop.env.set(&expanded, b""),
                },
            }
            self.put_buffer(expanded);
        }
    }
}

/// Whether the rules made a query string that cannot be sent, and that nothing will escape.
fn is_unsendable(hop: &Hop, passed: Passed, marks: &Marks<'_>) -> bool {
    let no_escape = passed == Passed::Changed { no_escape: true };
    let is_url = || !marks.proxy && !marks.pass_through && absolute(&hop.filename).is_some();
    hop.has_args && (no_escape || !is_url()) && has_blank_or_control(&hop.args)
}

/// The end that a rule made. What a rule asks for may have an error document, even while the document of
/// another error is looked for; what it should not have made may not.
fn end_by_rule(hop: &mut Hop, passed: Passed, status: u16) -> End {
    hop.status = if let Passed::Failed(status) = passed { status } else { 200 };
    End::Status(status)
}

/// The rule with this number through all lists, and whether it follows a chained one.
fn rule_at<'l>(place: Place<'l>, number: u32) -> Option<(&'l RewriteRule, bool)> {
    let mut number = number as usize;
    let mut is_chained = false;
    for list in place.lists {
        let rules = &list.value.rules;
        if let Some(rule) = rules.get(number) {
            return Some((rule, rule.flags.has(Flags::FOLLOWS) || number == 0 && is_chained));
        }
        number -= rules.len();
        is_chained = rules.last().map_or(is_chained, |last| last.flags.has(Flags::CHAIN));
    }
    None
}

/// Whether the rule follows a chained one.
fn is_follower(place: Place<'_>, at: u32) -> bool {
    rule_at(place, at).is_some_and(|(_, follows)| follows)
}

/// Whether a rule that no matched rule led to is tried: it follows no chain, or only rules that a
/// subrequest passes over.
fn is_reached(place: Place<'_>, mut at: u32, subrequest: bool) -> bool {
    while is_follower(place, at) {
        at -= 1;
        let passed_over =
            rule_at(place, at).is_some_and(|(rule, _)| rule.flags.skips_subrequests());
        if !(subrequest && passed_over) {
            return false;
        }
    }
    true
}

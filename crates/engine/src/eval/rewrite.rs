//! `RewriteRule`: runs a list of rules over the string of a request, and acts on what they made of it.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `apply_rewrite_list`, `apply_rewrite_rule`,
//! `hook_uri2file`, `hook_fixup`, `splitout_queryargs`, `reduce_uri`, `fully_qualify_uri`.

use milepost_http::path;
use milepost_pcre::Captures;

use super::expand::{Backrefs, Origins};
use super::{Config, End, Hop, Run, Translated};
use crate::index::{Subject, Values};
use crate::outside::FileKind;
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
struct Marks {
    proxy: bool,
    pass_through: bool,
    /// The last substituting rule allows any file system path.
    unsafe_prefix: bool,
    /// A rule named this very server, and what is left is a URL-path for sure.
    reduced: bool,
    /// What the last substitution says literally, up to its second segment.
    literal: Vec<u8>,
}

impl Run<'_> {
    /// The rules of the server, before the file is looked for.
    pub(super) fn rewrite_server(&mut self, hop: &mut Hop, config: &Config<'_>) -> Translated {
        let on = config.get().rewrite.as_ref().is_some_and(RewriteDir::is_on);
        if !on
            || self.server.rewrite.is_empty()
            || hop.rewriting_ended
            || hop.uri.first() != Some(&b'/') && !self.server.rewrite_options.allow_any_uri
        {
            return Translated::Declined;
        }
        hop.filename.clone_from(&hop.uri);
        let sent_args = self.remember_args(hop);
        let mut marks = Marks { literal: self.take_buffer(), ..Marks::default() };
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
                    hop.uri.clone_from(&hop.filename);
                    Translated::Declined
                }
            }
            Passed::Changed { no_escape } => match absolute(&hop.filename) {
                Some((skip, _)) => self.external_redirect(hop, skip, no_escape, &sent_args),
                None => self.local_path(hop, &marks),
            },
        };
        self.put_buffer(sent_args.1);
        self.put_buffer(marks.literal);
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
        if !hop.proxied && !config.options.follows_links() {
            return Some(End::Status(403));
        }
        let mut original = self.take_buffer();
        original.extend_from_slice(&hop.filename);
        let sent_args = self.remember_args(hop);
        let mut marks = Marks { literal: self.take_buffer(), ..Marks::default() };
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
            Passed::Changed { .. } if marks.proxy => self.rewrite_directory_to_proxy(hop),
            Passed::Changed { no_escape } => match absolute(&hop.filename) {
                Some((skip, _)) => {
                    self.rebase_redirect(hop, dir, skip);
                    match self.external_redirect(hop, skip, no_escape, &sent_args) {
                        Translated::End(end) => Some(end),
                        Translated::Done | Translated::Declined => None,
                    }
                }
                None => self.internal_path(hop, dir, &original),
            },
        };
        self.put_buffer(sent_args.1);
        self.put_buffer(marks.literal);
        self.put_buffer(original);
        end
    }

    fn remember_args(&mut self, hop: &Hop) -> (bool, Vec<u8>) {
        let mut args = self.take_buffer();
        args.extend_from_slice(&hop.args);
        (hop.has_args, args)
    }

    /// Runs the rules in order.
    fn run_rules(&mut self, place: Place<'_>, hop: &mut Hop, marks: &mut Marks) -> Passed {
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

    fn run_rules_on(
        &mut self,
        place: Place<'_>,
        hop: &mut Hop,
        marks: &mut Marks,
        input: &mut Vec<u8>,
    ) -> Passed {
        let mut passed = Passed::Unchanged;
        let mut rounds = 1;
        // Rules are numbered through all lists; `at` is the next that may run.
        let (mut list_number, mut base, mut at) = (0_usize, 0_u32, 0_u32);
        let mut started = false;
        // The rule at `at` runs whether the index names it or not: it follows one that matched.
        let mut forced = false;
        while let Some(part) = place.lists.get(list_number) {
            let (list, pool) = (&*part.value, part.pool(&self.program.pool));
            let len = list.rules.len() as u32;
            if at >= base + len {
                (list_number, base, started) = (list_number + 1, base + len, false);
                continue;
            }
            if !started {
                self.input(hop, place.directory, input);
                let mut candidates = std::mem::take(&mut self.work.candidates);
                list.index.start(pool, input, &RequestValues { run: self, hop }, &mut candidates);
                self.work.candidates = candidates;
                started = true;
            }
            let number = if forced {
                Some(at - base)
            } else {
                list.index.next(at - base, &mut self.work.candidates)
            };
            let Some(number) = number else {
                at = base + len;
                continue;
            };
            at = base + number + 1;
            if !std::mem::take(&mut forced) && !is_reached(place, at - 1, hop.subrequest) {
                continue;
            }
            let rule = &list.rules[number as usize];
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
                    if hop.filename.len() > 2 * self.program.settings.request_line_bytes_max {
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

    fn apply(
        &mut self,
        (list, pool): (&RewriteList, &Pool),
        rule: &RewriteRule,
        place: Place<'_>,
        hop: &mut Hop,
        marks: &mut Marks,
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
        let none = Captures::default();
        let backrefs =
            Backrefs { subject: input, groups: captures.as_ref().unwrap_or(&none), pool };
        self.work.condition.groups = Captures::default();
        if !self.conditions_hold(list.conditions_of(rule), hop, backrefs) {
            return Applied::No;
        }
        self.add_vary(hop);
        let template = match rule.substitution {
            Substitution::None => None,
            Substitution::Plain(text) => Some((text, false)),
            Substitution::Expanded(text) => Some((text, true)),
        };
        let mut result = self.take_buffer();
        let mut origins = Origins::default();
        if let Some((text, expand)) = template {
            let text = pool.get(text);
            if expand {
                let escape = rule.extra.as_deref().map(|extra| extra.escape).unwrap_or_default();
                let escape = rule.flags.has(Flags::ESCAPE_BACKREFS).then_some(escape);
                self.expand(hop, text, backrefs, escape, &mut result, &mut origins);
            } else {
                result.extend_from_slice(text);
            }
            let split = if rule.flags.has(Flags::QUERY_LAST) {
                memchr::memrchr(b'?', &result)
            } else {
                memchr::memchr(b'?', &result)
            };
            if split.is_some_and(|at| origins.has(at)) && !rule.flags.has(Flags::UNSAFE_ALLOW_3F) {
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
        marks.literal.clear();
        marks.literal.extend_from_slice(pool.get(text));
        marks.unsafe_prefix = rule.flags.has(Flags::UNSAFE_PREFIX_STAT);
        self.finish_rule(rule, place, hop, marks);
        self.note(Some((rule.place, pool)), |_| Event::Rewritten {
            to: hop.filename.clone(),
            query: hop.has_args.then(|| hop.args.clone()),
        });
        Applied::Changed
    }

    /// What follows a substitution: path info, query string, prefix, redirect.
    fn finish_rule(
        &mut self,
        rule: &RewriteRule,
        place: Place<'_>,
        hop: &mut Hop,
        marks: &mut Marks,
    ) {
        let flags = rule.flags;
        if place.directory.is_some() && flags.has(Flags::DISCARD_PATH_INFO) {
            hop.path_info.clear();
        }
        let mut prefixed = false;
        if hop.filename.first() != Some(&b'/') && absolute(&hop.filename).is_none() {
            match place.directory {
                Some(directory) => {
                    hop.filename.splice(0..0, directory.iter().copied());
                    prefixed = true;
                }
                None if !flags.has(Flags::PROXY) && !flags.has(Flags::REDIRECT) => {
                    hop.filename.insert(0, b'/');
                    prefixed = true;
                }
                None => {}
            }
        }
        split_query(hop, flags);
        if flags.has(Flags::PROXY) {
            marks.proxy = true;
            // In a directory nothing escapes the URL later.
            if place.directory.is_some() && !flags.has(Flags::NO_ESCAPE) {
                let mut escaped = self.take_buffer();
                path::escape(&hop.filename, &mut escaped);
                std::mem::swap(&mut escaped, &mut hop.filename);
                self.put_buffer(escaped);
            }
            self.qualify(hop);
            return;
        }
        if flags.has(Flags::REDIRECT) {
            self.qualify(hop);
            hop.status = rule.status;
            return;
        }
        marks.reduced |= self.reduce(hop);
        if absolute(&hop.filename).is_some() {
            hop.status = rule.status;
            return;
        }
        let unc = flags.has(Flags::UNC) || marks.literal.starts_with(b"//");
        if !prefixed && !unc {
            let slashes = hop.filename.iter().take_while(|&&byte| byte == b'/').count();
            if slashes > 1 {
                hop.filename.drain(..slashes - 1);
            }
        }
    }

    /// Makes a path a URL of this server.
    fn qualify(&mut self, hop: &mut Hop) {
        if self.request.method == b"CONNECT" || absolute(&hop.filename).is_some() {
            return;
        }
        let mut url = self.take_buffer();
        self.write_self_url(&mut url);
        if hop.filename.first() != Some(&b'/') {
            url.push(b'/');
        }
        url.extend_from_slice(&hop.filename);
        std::mem::swap(&mut url, &mut hop.filename);
        self.put_buffer(url);
    }

    /// Cuts a URL of this very server down to its path, and says whether it did. The port must be
    /// configured with the name.
    fn reduce(&self, hop: &mut Hop) -> bool {
        let scheme: &[u8] = if self.is_https() { b"https://" } else { b"http://" };
        let text = &hop.filename;
        if text.len() <= scheme.len() || !text[..scheme.len()].eq_ignore_ascii_case(scheme) {
            return false;
        }
        let rest = &text[scheme.len()..];
        let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
        let (host, port) = match memchr::memchr(b':', &rest[..end]) {
            None => (&rest[..end], if self.is_https() { 443 } else { 80 }),
            Some(colon) => (&rest[..colon], port_of(&rest[colon + 1..end])),
        };
        let pool = &self.program.pool;
        let configured = self.server.name.and_then(|name| name.port).unwrap_or(0);
        let by_name = configured == port
            && super::identity::is_called(pool, self.server, &host.to_ascii_lowercase());
        let by_address = self.server.addresses.iter().any(|address| {
            pool.get(address.text).eq_ignore_ascii_case(host)
                && address.port.is_none_or(|own| own == port)
        });
        // The main server has an address without a text.
        let is_nameless = host.is_empty() && self.server_number == 0;
        if !(by_name || by_address || is_nameless) {
            return false;
        }
        let start = scheme.len() + end;
        hop.filename.drain(..start);
        if hop.filename.is_empty() {
            hop.filename.push(b'/');
        }
        true
    }

    /// `E=` and `CO=`.
    fn effects(&mut self, effects: &[Effect], hop: &mut Hop, backrefs: Backrefs<'_>) {
        for effect in effects {
            let (Effect::Env(text) | Effect::Cookie(text) | Effect::Type(text)) = effect;
            let template = backrefs.pool.get(*text);
            let mut expanded = self.take_buffer();
            self.expand(hop, template, backrefs, None, &mut expanded, &mut Origins::default());
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

    /// Answers with a redirect to the absolute URL in the string.
    fn external_redirect(
        &mut self,
        hop: &mut Hop,
        skip: usize,
        no_escape: bool,
        sent_args: &(bool, Vec<u8>),
    ) -> Translated {
        let mut answer = std::mem::take(&mut self.work.answer);
        answer.clear();
        let url = &hop.filename;
        // The host is left alone; what follows its slash is escaped.
        let path_start = if url[skip - 1] == b'/' {
            memchr::memchr(b'/', &url[skip..]).map_or(url.len(), |slash| skip + slash + 1)
        } else {
            skip
        };
        answer.extend_from_slice(&url[..path_start]);
        let rest = &url[path_start..];
        if no_escape {
            answer.extend_from_slice(rest);
        } else if url[..skip].eq_ignore_ascii_case(b"ldap://") {
            // Question marks separate the parts of an LDAP URL, and are no query to us.
            for (number, part) in rest.split(|&byte| byte == b'?').enumerate() {
                if number > 0 {
                    answer.push(b'?');
                }
                path::escape(part, &mut answer);
            }
        } else {
            path::escape(rest, &mut answer);
        }
        if hop.has_args {
            answer.push(b'?');
            let as_sent = sent_args.0 && sent_args.1 == hop.args;
            if no_escape || as_sent {
                answer.extend_from_slice(&hop.args);
            } else {
                path::escape(&hop.args, &mut answer);
            }
        }
        self.work.answer = answer;
        let status = Some(hop.status).filter(|status| (300..400).contains(status));
        hop.status = 200;
        Translated::End(End::Redirect(status.unwrap_or(302)))
    }

    /// The string is a path: of the file system if its first segment is there and that is allowed,
    /// else below the document root.
    fn local_path(&mut self, hop: &mut Hop, marks: &Marks) -> Translated {
        if hop.filename.first() != Some(&b'/') {
            return Translated::End(End::Status(400));
        }
        if !self.is_file_path(hop, marks) {
            let mut path = self.take_buffer();
            std::mem::swap(&mut path, &mut hop.filename);
            let inside = self.below_root(&path, &mut hop.filename);
            self.put_buffer(path);
            if !inside {
                return Translated::End(End::Status(403));
            }
        }
        Translated::Done
    }

    /// Whether the rewritten path is meant as one of the file system.
    fn is_file_path(&self, hop: &Hop, marks: &Marks) -> bool {
        let options = &self.server.rewrite_options;
        if marks.reduced && !options.legacy_prefix_doc_root {
            return false;
        }
        let slashes = hop.filename.iter().take_while(|&&byte| byte == b'/').count();
        let path = &hop.filename[slashes - 1..];
        let end = memchr::memchr(b'/', &path[1..]).map_or(path.len(), |slash| slash + 1);
        let segment = &path[..end];
        if self.outside.kind(crate::build::bytes_to_path(segment)) == FileKind::Missing {
            return false;
        }
        let pool = &self.program.pool;
        let literal = marks.literal.starts_with(segment);
        let root = self.server.document_root.map(|root| pool.get(root));
        // Not so with more than one slash before it.
        let below_root = root.is_some_and(|root| hop.filename.starts_with(root));
        literal || below_root || marks.unsafe_prefix || options.unsafe_prefix_stat
    }

    /// `RewriteBase` in the URL of a redirect: the directory's path becomes the base.
    fn rebase_redirect(&mut self, hop: &mut Hop, dir: &RewriteDir, skip: usize) {
        let Some(base) = dir.base.as_deref() else { return };
        let directory = &dir.directory[..];
        let Some(slash) = memchr::memchr(b'/', &hop.filename[skip..]) else { return };
        let start = skip + slash;
        let rest = hop.filename[start + 1..].to_vec();
        if rest.is_empty() {
            return;
        }
        // An `<If>` has a directory that is no path and does not begin with a slash.
        let directory = directory.strip_prefix(b"/").unwrap_or(directory);
        if let Some(below) = below(&rest, directory) {
            hop.filename.truncate(start);
            let base = base.strip_suffix(b"/").unwrap_or(base);
            hop.filename.extend_from_slice(base);
            hop.filename.push(b'/');
            hop.filename.extend_from_slice(below);
        }
    }

    /// The string is a path again: an internal redirect to the URL that leads there.
    fn internal_path(&mut self, hop: &mut Hop, dir: &RewriteDir, original: &[u8]) -> Option<End> {
        if hop.filename.first() != Some(&b'/') {
            return Some(End::Status(400));
        }
        if hop.filename == original {
            // The rules led back to where the request was: it goes on from there.
            return None;
        }
        let pool = &self.program.pool;
        let directory = &dir.directory[..];
        let mut url = std::mem::take(&mut self.work.answer);
        url.clear();
        let path = &hop.filename;
        let root = self.server.document_root.map(|root| pool.get(root)).unwrap_or_default();
        let options = dir.options.unwrap_or_default();
        let in_base = dir.base.as_deref().and_then(|base| Some((base, below(path, directory)?)));
        let in_root = below(path, root).filter(|_| dir.base.is_none() && !root.is_empty());
        let in_context = || {
            // Outside of any alias the context is the document root, with no prefix, not even a slash.
            let (prefix, root) = match &hop.context {
                Some(context) => (&context.prefix[..], &context.document_root[..]),
                None => (&b""[..], root),
            };
            let below = below(path, root).filter(|_| !options.ignore_context_info)?;
            Some((prefix, below))
        };
        if let Some((base, below)) = in_base {
            write_below(base, below, &mut url);
        } else if let Some(below) = in_root {
            write_below(b"/", below, &mut url);
        } else if let Some((prefix, below)) = in_context() {
            write_below(prefix, below, &mut url);
        } else {
            url.extend_from_slice(path);
        }
        if hop.has_args {
            url.push(b'?');
            url.extend_from_slice(&hop.args);
        }
        self.work.answer = url;
        Some(End::Internal)
    }
}

/// The number that a port begins with, as `atoi` reads it into 16 bits.
fn port_of(text: &[u8]) -> u16 {
    let digits = text.trim_ascii_start().iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |port: u16, digit| port.wrapping_mul(10).wrapping_add(u16::from(digit - b'0')))
}

/// What `path` has below `directory`, which may end in a slash or not.
fn below<'p>(path: &'p [u8], directory: &[u8]) -> Option<&'p [u8]> {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    path.strip_prefix(directory)?.strip_prefix(b"/")
}

/// Writes the path of `below` in the directory `prefix`; without a prefix there is no slash either.
fn write_below(prefix: &[u8], below: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(prefix);
    if !prefix.is_empty() && !prefix.ends_with(b"/") {
        out.push(b'/');
    }
    out.extend_from_slice(below);
}

/// Whether the rules made a query string that cannot be sent, and that nothing will escape.
fn is_unsendable(hop: &Hop, passed: Passed, marks: &Marks) -> bool {
    let no_escape = passed == Passed::Changed { no_escape: true };
    let is_url = !marks.proxy && !marks.pass_through && absolute(&hop.filename).is_some();
    hop.has_args && (no_escape || !is_url) && has_blank_or_control(&hop.args)
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

/// Splits a query string off the rewritten string, or keeps, drops or joins the old one.
fn split_query(hop: &mut Hop, flags: Flags) {
    if flags.has(Flags::QUERY_NONE) {
        hop.set_args(None);
        return;
    }
    if absolute(&hop.filename).is_some_and(|(_, takes_query)| !takes_query) {
        hop.set_args(None);
        return;
    }
    if flags.has(Flags::QUERY_DISCARD) {
        hop.set_args(None);
    }
    let split = if flags.has(Flags::QUERY_LAST) {
        memchr::memrchr(b'?', &hop.filename)
    } else {
        memchr::memchr(b'?', &hop.filename)
    };
    let Some(at) = split else { return };
    let Hop { filename, args, has_args, .. } = hop;
    let query = &filename[at + 1..];
    if flags.has(Flags::QUERY_APPEND) {
        if !query.is_empty() {
            args.splice(0..0, query.iter().copied().chain([b'&']));
            *has_args = true;
        }
    } else {
        args.clear();
        args.extend_from_slice(query);
        *has_args = true;
    }
    filename.truncate(at);
    if hop.args.is_empty() {
        hop.has_args = false;
    } else if hop.args.last() == Some(&b'&') {
        hop.args.pop();
    }
}

fn has_blank_or_control(args: &[u8]) -> bool {
    args.iter().any(|&byte| byte <= b' ' || byte == 0x7f)
}

/// Whether the string is a URL to mod_rewrite: where its host begins, and whether it takes a query.
pub(super) fn absolute(text: &[u8]) -> Option<(usize, bool)> {
    if text.len() <= 5 || text[0] == b'/' {
        return None;
    }
    // Nearly all are one of these, written like this.
    if text.starts_with(b"http://") {
        return Some((b"http://".len(), true));
    }
    if text.starts_with(b"https://") {
        return Some((b"https://".len(), true));
    }
    let schemes: &[(&[u8], bool)] = match text[0] | 0x20 {
        b'h' => &[(b"http://", true), (b"https://", true), (b"h2://", true), (b"h2c://", true)],
        b'a' => &[(b"ajp://", true)],
        b'b' => &[(b"balancer://", true)],
        b'f' => &[(b"fcgi://", true), (b"ftp://", false)],
        b'g' => &[(b"gopher://", false)],
        b'l' => &[(b"ldap://", false)],
        b'm' => &[(b"mailto:", true)],
        b'n' => &[(b"news:", false), (b"nntp://", false)],
        b's' => &[(b"scgi://", true)],
        b'u' => &[(b"unix:", true)],
        b'w' => &[(b"ws://", true), (b"wss://", true)],
        _ => &[],
    };
    let is = |scheme: &[u8]| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    schemes.iter().find(|(scheme, _)| is(scheme)).map(|(scheme, query)| (scheme.len(), *query))
}

/// The variables that rules are filed under.
struct RequestValues<'a, 'r> {
    run: &'a Run<'r>,
    hop: &'a Hop,
}

impl Values for RequestValues<'_, '_> {
    fn value(&self, subject: Subject, out: &mut Vec<u8>) {
        self.run.write_subject(self.hop, subject, out);
    }
}

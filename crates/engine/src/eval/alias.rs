//! `Redirect`, `RedirectMatch`, `Alias`: the first rule that matches, and what it makes of the path.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_alias.c`, `translate_alias_redir`, `fixup_redir`,
//! `try_alias_list`, `alias_matches`; `server/util.c` `ap_pregsub`.

use milepost_http::path;
use milepost_http::uri::Uri;
use milepost_pcre::Captures;

use super::{Config, Context, End, Hop, Run, Translated};
use crate::build::is_url;
use crate::index::Values;
use crate::pool::Pool;
use crate::program::{AliasList, AliasMatcher, AliasRule, Part};
use crate::status;
use crate::trace::Event;

/// Longest result of a `RedirectMatch`, `AP_PREGSUB_MAXLEN`.
const RESULT_BYTES_MAX: usize = 64 * 1024;

/// Where the rule of a list matched.
pub(super) struct Found<'p> {
    pub(super) rule: &'p AliasRule,
    /// Its number in its list.
    pub(super) number: u32,
    /// Bytes of the path that a URL-path covers.
    pub(super) covered: usize,
    pub(super) captures: Option<Captures>,
}

impl<'r> Run<'r> {
    /// Redirects and aliases outside sections.
    pub(super) fn translate_alias(&mut self, hop: &mut Hop, config: &Config<'_>) -> Translated {
        if hop.uri.first() != Some(&b'/') {
            return Translated::Declined;
        }
        let relative = config.get().redirect_relative == Some(true);
        let server = self.server;
        if let Some(end) = self.try_section_redirect(hop, config) {
            return Translated::End(end);
        }
        if let Some(end) = self.try_redirects(&server.redirects, hop, relative) {
            return Translated::End(end);
        }
        match self.try_section_alias(hop, config) {
            Translated::Declined => {}
            done => return done,
        }
        for list in &server.path_aliases {
            let pool = list.pool(&self.program.pool);
            let Some(found) = self.find_alias(&list.value, pool, &hop.uri) else { continue };
            if found.rule.status != 0 {
                self.rule = Some((found.rule.place, list.own_text().cloned()));
                return Translated::End(End::Status(found.rule.status));
            }
            self.map_alias(hop, &found, pool);
            return Translated::Done;
        }
        Translated::Declined
    }

    /// Redirects in sections.
    pub(super) fn fixup_alias(&mut self, hop: &mut Hop, config: &Config<'_>) -> Option<End> {
        if let Some(end) = self.try_section_redirect(hop, config) {
            return Some(end);
        }
        let config = config.get();
        self.try_redirects(&config.redirects, hop, config.redirect_relative == Some(true))
    }

    fn try_redirects(
        &mut self,
        lists: &[Part<AliasList>],
        hop: &mut Hop,
        relative: bool,
    ) -> Option<End> {
        for list in lists {
            let pool = list.pool(&self.program.pool);
            if let Some(found) = self.find_alias(&list.value, pool, &hop.uri) {
                self.rule = Some((found.rule.place, list.own_text().cloned()));
                return Some(self.redirect(&found, pool, hop, relative));
            }
        }
        None
    }

    /// The first rule of a list that matches.
    #[inline]
    pub(super) fn find_alias<'l>(
        &mut self,
        list: &'l AliasList,
        pool: &Pool,
        uri: &[u8],
    ) -> Option<Found<'l>> {
        // Rules of mod_alias look at the path alone.
        list.index.start(pool, uri, Values::default(), &mut self.work.candidates);
        let mut from = 0;
        while let Some(number) = list.index.next(pool, from, &mut self.work.candidates) {
            from = number + 1;
            let rule = &list.rules[number as usize];
            rule.fetch();
            let found = match &rule.matcher {
                AliasMatcher::Path(fake) => {
                    let covered = covers(pool.get(*fake), uri);
                    (covered > 0).then_some(Found { rule, number, covered, captures: None })
                }
                AliasMatcher::Exact(path) => (pool.get(*path) == uri).then(|| Found {
                    rule,
                    number,
                    covered: 0,
                    captures: Some(Captures::of([(0, uri.len())])),
                }),
                AliasMatcher::Match(pattern) => {
                    // A pattern that runs into a limit does not match, as in httpd.
                    let captures = pattern.find(pool, uri, &mut self.work.matcher).unwrap_or(None);
                    captures.map(|captures| Found {
                        rule,
                        number,
                        covered: 0,
                        captures: Some(captures),
                    })
                }
            };
            self.note(Some((rule.place, pool)), |_| Event::Tried {
                input: uri.to_vec(),
                groups: found.as_ref().map(|found| match &found.captures {
                    Some(captures) => captures.texts(uri),
                    None => vec![uri[..found.covered].to_vec()],
                }),
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Makes the answer of a redirect that matched.
    fn redirect(&mut self, found: &Found<'_>, pool: &Pool, hop: &Hop, relative: bool) -> End {
        let status = found.rule.status;
        if !(300..400).contains(&status) {
            return status_end(status);
        }
        let target = pool.get(found.rule.target);
        let mut answer = std::mem::take(&mut self.work.answer);
        answer.clear();
        match &found.captures {
            None => {
                answer.extend_from_slice(target);
                path::escape(&hop.uri[found.covered..], &mut answer);
            }
            Some(_) if found.rule.is_ready => answer.extend_from_slice(target),
            Some(captures) => {
                let mut text = self.take_buffer();
                if !substitute(target, &hop.uri, captures, &mut text) {
                    self.put_buffer(text);
                    self.work.answer = answer;
                    return End::Status(500);
                }
                self.escape_target(&text, &mut answer);
                self.put_buffer(text);
            }
        }
        self.finish_redirect(status, answer, hop, relative)
    }

    /// Appends a target that was put together, escaped but for its query string and fragment.
    pub(super) fn escape_target(&mut self, text: &[u8], answer: &mut Vec<u8>) {
        if is_written_as_it_is(text) {
            return answer.extend_from_slice(text);
        }
        let uri = Uri::parse(text);
        let mut plain = self.take_buffer();
        uri.write_without_query(&mut plain);
        path::escape(&plain, answer);
        for (sign, part) in [(b'?', uri.query), (b'#', uri.fragment)] {
            if let Some(part) = part {
                answer.push(sign);
                answer.extend_from_slice(part);
            }
        }
        self.put_buffer(plain);
    }

    /// Makes `answer` the answer: absolute, and with the query string of the request.
    pub(super) fn finish_redirect(
        &mut self,
        status: u16,
        mut answer: Vec<u8>,
        hop: &Hop,
        relative: bool,
    ) -> End {
        if answer.first() == Some(&b'/') && !relative {
            let mut url = self.take_buffer();
            self.write_self_url(&mut url);
            url.extend_from_slice(&answer);
            std::mem::swap(&mut url, &mut answer);
            self.put_buffer(url);
        }
        let usable = is_url(&answer) || relative && answer.first() == Some(&b'/');
        if hop.has_args && !answer.contains(&b'?') {
            answer.push(b'?');
            answer.extend_from_slice(&hop.args);
        }
        self.work.answer = answer;
        // An unknown status becomes a 500, and keeps its `Location`.
        let status = if status::is_known(status) { status } else { 500 };
        if usable { End::Redirect(status) } else { End::Status(500) }
    }

    /// Makes a file path of an alias that matched.
    fn map_alias(&mut self, hop: &mut Hop, found: &Found<'_>, pool: &Pool) {
        let target = pool.get(found.rule.target);
        hop.filename.clear();
        match &found.captures {
            None => {
                hop.filename.extend_from_slice(target);
                hop.filename.extend_from_slice(&hop.uri[found.covered..]);
                hop.context = Some(Context {
                    prefix: hop.uri[..found.covered].to_vec(),
                    document_root: target.to_vec(),
                });
            }
            Some(captures) => {
                let uri = &hop.uri;
                substitute(target, uri, captures, &mut hop.filename);
            }
        }
        self.root_relative(&mut hop.filename);
    }

    /// Makes a path absolute: those that are not are below `ServerRoot`.
    pub(super) fn root_relative(&self, path: &mut Vec<u8>) {
        if path.first() != Some(&b'/') {
            let root = crate::build::path_to_bytes(&self.program.settings.server_root);
            path.splice(0..0, root.iter().copied().chain([b'/']));
        }
    }
}

/// The end of a request by a status that is no redirect.
pub(super) fn status_end(status: u16) -> End {
    End::Status(match status {
        // 0 is `OK` to httpd: the request goes on, with no file.
        0 => 404,
        200..600 if status::is_known(status) => status,
        _ => 500,
    })
}

/// How many bytes of `uri` the URL-path `fake` covers: whole segments, a run of slashes being one.
/// 0 if it does not.
pub(crate) fn covers(fake: &[u8], uri: &[u8]) -> usize {
    let slashes = |text: &[u8]| text.iter().take_while(|&&byte| byte == b'/').count();
    if let Some(rest) = uri.strip_prefix(fake) {
        return match (fake.last(), rest.first()) {
            (Some(b'/'), _) => fake.len() + slashes(rest),
            (Some(_), None | Some(b'/')) => fake.len(),
            _ => 0,
        };
    }
    let (mut at, mut pos) = (0, 0);
    while at < fake.len() {
        if fake[at] == b'/' {
            let run = slashes(&uri[pos..]);
            if run == 0 {
                return 0;
            }
            at += slashes(&fake[at..]);
            pos += run;
        } else {
            if uri.get(pos) != Some(&fake[at]) {
                return 0;
            }
            at += 1;
            pos += 1;
        }
    }
    let boundary = fake.last() == Some(&b'/') || pos == uri.len() || uri[pos] == b'/';
    if boundary { pos } else { 0 }
}

/// Replaces `$0` to `$9` in `target` by the groups; `\` takes the next byte as it is. False if the
/// result gets too long.
pub(super) fn substitute(
    target: &[u8],
    subject: &[u8],
    captures: &Captures,
    out: &mut Vec<u8>,
) -> bool {
    let mut rest = target;
    while let Some(at) = memchr::memchr2(b'$', b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = match &rest[at..] {
            [b'$', digit @ b'0'..=b'9', rest @ ..] => {
                // After an expression the groups can be those of a longer string.
                let group = captures.get(usize::from(digit - b'0'));
                out.extend_from_slice(group.and_then(|span| subject.get(span)).unwrap_or_default());
                rest
            }
            [b'\\', next, rest @ ..] => {
                out.push(*next);
                rest
            }
            rest => {
                out.push(rest[0]);
                &rest[1..]
            }
        };
    }
    out.extend_from_slice(rest);
    out.len() < RESULT_BYTES_MAX
}

/// Whether the target of a pattern says the same for every path, and as it stands.
pub(crate) fn is_constant(target: &[u8]) -> bool {
    let has_sign = memchr::memchr2(b'$', b'\\', target).is_some();
    !has_sign && target.len() < RESULT_BYTES_MAX && is_written_as_it_is(target)
}

/// Whether taking a target apart, and putting it together escaped, changes nothing for sure: a path, or a URL
/// without user and port, with nothing to escape and no query string.
fn is_written_as_it_is(target: &[u8]) -> bool {
    let rest = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"));
    let is_plain = |bytes: &[u8]| !path::needs_escape(bytes);
    match rest {
        Some(rest) => is_plain(rest) && memchr::memchr2(b':', b'@', rest).is_none(),
        None => target.first() == Some(&b'/') && is_plain(target),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn groups_are_put_in() {
        for (target, expected) in [
            ("/x", Some("/x")),
            ("$1/$0/$2$", Some("b/abc/$")),
            (r"\$1\\a\", Some(r"$1\a\")),
            ("$x$", Some("$x$")),
        ] {
            let mut out = Vec::new();
            let fits = substitute(target.as_bytes(), b"abc", &captures(), &mut out);
            let out = fits.then(|| String::from_utf8(out).unwrap());
            assert_eq!(out.as_deref(), expected, "{target}");
        }
    }

    fn captures() -> Captures {
        Captures::of([(0, 3), (1, 2)])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// What is taken as it is comes out of the long way unchanged.
        #[test]
        fn targets_that_stay_as_they_are(
            target in r"(https?:/?/?|//?|)([a@:?#%/ é\[\].~-]|:80){0,6}",
        ) {
            let text = target.as_bytes();
            if is_written_as_it_is(text) {
                let uri = Uri::parse(text);
                let (mut plain, mut out) = (Vec::new(), Vec::new());
                uri.write_without_query(&mut plain);
                path::escape(&plain, &mut out);
                prop_assert_eq!((&out[..], uri.query, uri.fragment), (text, None, None));
            }
        }
    }

    #[test]
    fn whole_segments_are_covered() {
        for (fake, uri, expected) in [
            ("/one", "/one", 4),
            ("/one", "/one/x", 4),
            ("/one", "/onex", 0),
            ("/two/", "/two", 0),
            ("/two/", "/two///x", 7),
            ("/three//x", "/three/x", 8),
            ("/", "/anything", 1),
            ("", "/x", 0),
        ] {
            assert_eq!(covers(fake.as_bytes(), uri.as_bytes()), expected, "{fake} {uri}");
        }
    }
}

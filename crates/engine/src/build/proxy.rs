//! `ProxyPass` and its relatives.
//!
//! A backend of a protocol that we do not speak, and a forward proxy, are not served: what was meant to be
//! answered elsewhere must not be looked for here.
//!
//! Source: httpd 2.4.71 `modules/proxy/mod_proxy.c`, `add_pass`, `add_pass_reverse`, `proxysection`.

use std::sync::Arc;
use std::time::Duration;

use milepost_pcre::Case;
use milepost_syntax::{Word, Words};

use super::alias::AliasDraft;
use super::known::Known;
use super::report::{Finding, show};
use super::sections::{Named, has_wildcards};
use super::{Builder, Context, Directive};
use crate::index::Filing;
use crate::pool::Str;
use crate::program::{
    AliasList, AliasMatcher, AliasRule, Mapping, Part, PassList, PassStyle, ProxyServer, Scope,
    Section, SectionMatcher, SectionPass, SectionPassMatcher,
};
use crate::proxy::Via;
use crate::wildcard::is_wild;

/// What a server says about the proxy, while it is read.
#[derive(Default)]
pub(super) struct ProxyDraft {
    passes: AliasDraft,
    styles: Vec<PassStyle>,
    pub(super) own: ProxyServer,
    /// `<Proxy>`
    pub(super) sections: Vec<Part<Section>>,
    /// `ProxyPassInherit`
    pub(super) inherit: Option<bool>,
}

impl ProxyDraft {
    /// The rules, if there are any.
    pub(super) fn finish(&mut self, builder: &Builder<'_>) -> Option<Part<PassList>> {
        let styles = std::mem::take(&mut self.styles);
        let list = std::mem::take(&mut self.passes).finish_list(builder)?;
        Some(Part::new(PassList { list, styles }))
    }
}

impl Builder<'_> {
    /// `ProxyPass [path] !|url [key=value …] [nocanon] [interpolate] [noquery]`
    pub(super) fn proxy_pass(
        &mut self,
        directive: &Directive<'_>,
        is_match: bool,
        context: &mut Context<'_>,
    ) {
        self.has_proxy = true;
        let words = directive.words();
        let usage = if is_match {
            "ProxyPassMatch pattern url [key=value ...]"
        } else {
            "ProxyPass path url [key=value ...]"
        };
        let in_section = !context.scope.is_server();
        let is_match = is_match || in_section && self.is_wild_section(context);
        if in_section && context.scope != Scope::Location {
            let message = format!("{} is not allowed here", show(directive.name));
            let finding =
                Finding::error(message).hint("it belongs outside sections or in a `<Location>`");
            return self.report(directive, finding);
        }
        let mut rest = words.as_slice();
        let path = if in_section { None } else { rest.split_off_first() };
        let Some(target) = rest.split_off_first() else {
            let finding = Finding::error(format!("{} has too few arguments", show(directive.name)))
                .hint(format!("write `{usage}`"));
            return self.report(directive, finding);
        };
        if in_section && target.text.starts_with(b"/") {
            let finding = Finding::error("in a `<Location>` the path is that of the section")
                .hint("write the URL alone");
            return self.report_at(directive, target.at, target.len, finding);
        }
        let mut style = PassStyle::default();
        let mut parameters = Vec::new();
        for word in rest {
            match word.text.to_ascii_lowercase().as_slice() {
                b"nocanon" => style.raw = true,
                b"interpolate" => style.interpolate = true,
                // Only scripts see a difference, which are behind protocols that we do not speak.
                b"noquery" => {}
                text if text.starts_with(b"mapping=") => {
                    let finding = match &text[b"mapping=".len()..] {
                        b"encoded" | b"servlet" => Finding::not_served(
                            "`mapping=` is not supported: paths are compared decoded",
                        ),
                        _ => Finding::error("a mapping is `encoded` or `servlet`"),
                    };
                    self.report_at(directive, word.at, word.len, finding);
                }
                text if text.contains(&b'=') => parameters.push(word),
                _ => {
                    let finding = Finding::error(format!(
                        "{} is neither a parameter `key=value` nor `nocanon`, `interpolate` or `noquery`",
                        show(&word.text)
                    ));
                    return self.report_at(directive, word.at, word.len, finding);
                }
            }
        }
        let is_denied = &*target.text == b"!";
        if !is_denied {
            if style.interpolate || is_match && target.text.contains(&b'$') {
                // Who is asked is known when the URL is; what can be known already is its protocol.
                if !self.is_proxy_url(directive, target) {
                    return;
                }
            }
            if !(style.interpolate && target.text.contains(&b'$')) {
                let url = fixed_part(&target.text, is_match);
                self.pass_worker(directive, target, url, &parameters, context.server);
            }
        }
        let target = self.word(directive, target);
        let Some(path) = path else {
            return self.section_pass(directive, target, style, is_match, context);
        };
        let text = self.word(directive, path);
        let (matcher, filing) = if is_match {
            match self.new_pattern(text, Case::Sensitive) {
                Ok((pattern, handles)) => (AliasMatcher::of(pattern), Filing::of(handles)),
                Err(error) => return self.bad_pattern(directive, path, &error),
            }
        } else {
            if !path.text.starts_with(b"/") {
                let message = format!("{} never matches: paths begin with `/`", show(&path.text));
                let hint = format!("write `/{}`", String::from_utf8_lossy(&path.text));
                self.report_at(directive, path.at, path.len, Finding::warning(message).hint(hint));
            }
            (AliasMatcher::Path(text), AliasList::file_path(&mut self.pool, text))
        };
        let rule =
            AliasRule { matcher, target, status: 0, is_ready: false, place: directive.place };
        let draft = &mut self.servers[context.server].proxy;
        draft.passes.push(rule, filing);
        draft.styles.push(style);
    }

    /// Whether the path or the pattern of a section reads as a pattern of names, which makes a `ProxyPass` in
    /// it a `ProxyPassMatch`.
    fn is_wild_section(&self, context: &Context<'_>) -> bool {
        let text = context.dir.url_path.or(context.dir.url_pattern);
        text.is_some_and(|text| is_wild(self.pool.get(text)))
    }

    fn section_pass(
        &mut self,
        directive: &Directive<'_>,
        target: Str,
        style: PassStyle,
        is_match: bool,
        context: &mut Context<'_>,
    ) {
        let path = context.dir.url_path.or(context.dir.url_pattern);
        let text = path.unwrap_or_else(|| self.pool.add(&context.directory));
        let matcher = match is_match {
            false => SectionPassMatcher::Path(text),
            true => match self.new_pattern(text, Case::Sensitive) {
                Ok((pattern, _)) => SectionPassMatcher::Match(Box::new(pattern)),
                Err(_) => {
                    let finding =
                        Finding::error("the path of the section is no regular expression")
                            .hint("use `<LocationMatch>`");
                    return self.report(directive, finding);
                }
            },
        };
        let pass = SectionPass { matcher, target, style, place: directive.place };
        context.dir.config.pass = Some(Part::new(pass));
    }

    /// `ProxyPassReverse [path] url`
    pub(super) fn proxy_pass_reverse(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        let Some(words) = self.words(directive, 1, 3, "ProxyPassReverse [path] url") else {
            return;
        };
        let is_option = |word: &Word<'_>| word.text.eq_ignore_ascii_case(b"interpolate");
        let (path, url) = match words.as_slice() {
            [path, url, ..] if context.scope.is_server() && !is_option(url) => {
                (path.text.to_vec(), url)
            }
            [_, url, ..] if !context.scope.is_server() && !is_option(url) => {
                let finding = Finding::error("in a section the path is that of the section")
                    .hint("write `ProxyPassReverse url`");
                return self.report_at(directive, url.at, url.len, finding);
            }
            [url, ..] if !context.scope.is_server() => {
                // The text of a pattern is taken for a path.
                let own = context.dir.url_path.or(context.dir.url_pattern);
                let path = own.map_or(&*context.directory, |path| self.pool.get(path));
                (path.to_vec(), url)
            }
            _ => {
                let finding =
                    Finding::error("the path is missing").hint("write `ProxyPassReverse path url`");
                return self.report(directive, finding);
            }
        };
        let mapping = Mapping { from: path.into(), to: Arc::from(&*url.text) };
        context.dir.config.proxy.reverse.push(mapping);
    }

    /// `ProxyPassReverseCookieDomain there here`, `ProxyPassReverseCookiePath there here`
    pub(super) fn proxy_cookie(
        &mut self,
        directive: &Directive<'_>,
        is_domain: bool,
        context: &mut Context<'_>,
    ) {
        let usage = format!("{} there here", String::from_utf8_lossy(directive.name));
        let Some(words) = self.words(directive, 2, 3, &usage) else { return };
        let mapping = Mapping { from: Arc::from(&*words[0].text), to: Arc::from(&*words[1].text) };
        let proxy = &mut context.dir.config.proxy;
        if is_domain {
            proxy.cookie_domains.push(mapping);
        } else {
            proxy.cookie_paths.push(mapping);
        }
    }

    /// `ProxyRequests`: only `Off`, which is what we do.
    pub(super) fn proxy_requests(&mut self, directive: &Directive<'_>) {
        self.has_proxy = true;
        if self.flag(directive) == Some(true) {
            let finding = Finding::not_served(
                "a forward proxy is not supported: it would fetch any URL for anybody",
            )
            .hint("`ProxyPass` and `[P]` need `ProxyRequests Off`");
            self.report(directive, finding);
        }
    }

    pub(super) fn proxy_timeout(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if self.server_only(directive, context)
            && let Some(time) = self.one_duration(directive)
        {
            if time < Duration::from_secs(1) {
                let finding = Finding::error("`ProxyTimeout` is a second at least");
                return self.report(directive, finding);
            }
            self.servers[context.server].proxy.own.timeout = Some(time);
        }
    }

    pub(super) fn proxy_via(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 1, "ProxyVia Off|On|Full|Block") else { return };
        let via = match words[0].text.to_ascii_lowercase().as_slice() {
            b"off" => Via::Off,
            b"on" => Via::On,
            b"full" => Via::Full,
            b"block" => Via::Block,
            _ => {
                let finding = Finding::error("`ProxyVia` is `Off`, `On`, `Full` or `Block`");
                return self.report_at(directive, words[0].at, words[0].len, finding);
            }
        };
        self.servers[context.server].proxy.own.via = Some(via);
    }

    /// `ProxyErrorOverride Off|On [status …]`
    pub(super) fn proxy_error_override(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        let Some(on) = self.flag(directive) else { return };
        let mut codes = Vec::new();
        for word in Words::new(directive.args).skip(1) {
            let code = std::str::from_utf8(&word.text).ok().and_then(|text| text.parse().ok());
            match code.filter(|code| (400..600).contains(code) && on) {
                Some(code) => codes.push(code),
                None => {
                    let message = format!("{} is no status of an error", show(&word.text));
                    let finding =
                        Finding::error(message).hint("write `ProxyErrorOverride On 502 503`");
                    return self.report_at(directive, word.at, word.len, finding);
                }
            }
        }
        context.dir.config.proxy.error_override = Some(on.then(|| codes.into()));
    }

    /// `ProxyPreserveHost`, `ProxyAddHeaders`, `ProxyPassInterpolateEnv`
    pub(super) fn proxy_flag(
        &mut self,
        directive: &Directive<'_>,
        field: fn(&mut crate::program::ProxyDir) -> &mut Option<bool>,
        context: &mut Context<'_>,
    ) {
        if let Some(on) = self.flag(directive) {
            *field(&mut context.dir.config.proxy) = Some(on);
        }
    }

    pub(super) fn proxy_pass_inherit(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if self.server_only(directive, context)
            && let Some(on) = self.flag(directive)
        {
            self.servers[context.server].proxy.inherit = Some(on);
        }
    }

    /// What would send requests where we cannot send them.
    pub(super) fn proxy_unsupported(&mut self, directive: &Directive<'_>, known: &Known) {
        let lower = known.name.to_ascii_lowercase();
        if self.has_right_count(directive, known)
            && self.has_right_values(directive, lower.as_bytes())
        {
            let message = format!("{} is not supported", show(directive.name));
            let hint = "backends are reached directly, by `http://`, `ws://` and `unix:`";
            self.report(directive, Finding::not_served(message).hint(hint));
        }
    }

    /// `<Proxy url>`: what it is for.
    pub(super) fn proxy_matcher(
        &mut self,
        directive: &Directive<'_>,
        is_match: bool,
        server: usize,
    ) -> Option<Named> {
        self.has_proxy = true;
        let words = directive.words();
        let mut rest = words.as_slice();
        // `<ProxyMatch>` takes it for its pattern.
        let tilde = !is_match && words.first().is_some_and(|word| &*word.text == b"~");
        if tilde {
            rest = &rest[1..];
        }
        let Some(word) = rest.split_off_first() else {
            self.report(directive, Finding::error("`<Proxy>` needs a URL"));
            return None;
        };
        let text = self.word(directive, word);
        let directory = Arc::from(&*word.text);
        if is_match || tilde {
            if let Some(more) = rest.first().filter(|_| is_match) {
                let finding = Finding::error("`<ProxyMatch>` needs one pattern");
                self.report_at(directive, more.at, more.len, finding);
            }
            let matcher = self.pattern_matcher(directive, word, text)?;
            return Some(Named { matcher, directory, text });
        }
        let wild = has_wildcards(word);
        let parameters: Vec<&Word<'_>> = rest.iter().collect();
        let is_balancer =
            word.text.get(..11).is_some_and(|start| start.eq_ignore_ascii_case(b"balancer://"));
        if !wild && (is_balancer || !parameters.is_empty()) {
            self.pass_worker(directive, word, &word.text, &parameters, server);
        }
        let matcher =
            if wild { SectionMatcher::Wildcard(text) } else { SectionMatcher::Path(text) };
        Some(Named { matcher, directory, text })
    }
}

/// What of a target is the same for all requests: up to the first group, and no further than its directory.
fn fixed_part(target: &[u8], is_match: bool) -> &[u8] {
    match memchr::memchr(b'$', target).filter(|_| is_match) {
        Some(dollar) => &target[..dollar],
        None => target,
    }
}

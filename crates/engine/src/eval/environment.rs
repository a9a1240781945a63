//! Sets the variables of mod_setenvif and mod_env, and looks variables up.
//!
//! The server's `SetEnvIf` see a request before anything else, its path as it was sent, and again after
//! each internal redirect. Those of sections follow once the file is known, before access control. `SetEnv`
//! comes with the fixups, after every rule of the server, and never overrides what is set by then.
//!
//! Source: httpd 2.4.71 `modules/metadata/mod_setenvif.c`, `match_headers`; `mod_env.c`,
//! `fixup_env_module`; `modules/http/http_request.c`, `rename_original_env`.

use std::borrow::Cow;

use milepost_pcre::Captures;

use super::identity::write_text;
use super::table::Table;
use super::{Config, Hop, Run, alias, variable};
use crate::expr::Capture;
use crate::pool::Pool;
use crate::program::{Attribute, EnvChange, EnvRule, EnvRules, EnvTest, Part};

const SCRIPT_URL: &[u8] = b"SCRIPT_URL";
const SCRIPT_URI: &[u8] = b"SCRIPT_URI";

impl Run<'_> {
    /// `SetEnvIf` of the server, for a path that is still encoded.
    pub(super) fn set_env_of_server(&mut self, hop: &mut Hop, path: &[u8]) {
        let server = self.server;
        if !server.env_if.is_empty() {
            self.run_env_rules(&server.env_if, hop, path);
        }
    }

    /// `SetEnvIf` of sections. A subrequest has the variables of its request.
    pub(super) fn set_env_of_sections(&mut self, hop: &mut Hop, config: &Config<'_>) {
        let lists = &config.get().env_if;
        if lists.is_empty() || hop.subrequest {
            return;
        }
        let mut path = self.take_buffer();
        path.extend_from_slice(&hop.uri);
        self.run_env_rules(lists, hop, &path);
        self.put_buffer(path);
    }

    /// `SCRIPT_URL` and `SCRIPT_URI`: the path of the request that the client sent, and its URL. mod_rewrite
    /// sets them where it is on, whether it has rules or not. Hardly anybody reads them, so nothing is written
    /// before somebody does, or before what they are made of changes: see [`Run::settle_env`].
    pub(super) fn set_script_env(&mut self, hop: &mut Hop) {
        if !hop.subrequest && !hop.rewriting_ended && hop.uri.first() == Some(&b'/') {
            hop.has_script = true;
        }
    }

    /// Writes the variables that are set and not yet written.
    pub(super) fn settle_env(&mut self, hop: &mut Hop) {
        if hop.has_script {
            let mut env = std::mem::take(&mut hop.env);
            let mut value = self.take_buffer();
            self.write_script_env(hop, &mut env, &mut value);
            self.put_buffer(value);
            hop.env = env;
            hop.has_script = false;
        }
    }

    /// Writes those of `hop` that are not yet written to `env`, through `value`.
    pub(super) fn write_script_env(&self, hop: &Hop, env: &mut Table, value: &mut Vec<u8>) {
        for name in [SCRIPT_URL, SCRIPT_URI] {
            value.clear();
            if self.write_script(hop, env, name, value) {
                env.set(name, value);
            }
        }
    }

    /// Appends the value of a variable that is set and not yet written; false if `name` is none.
    fn write_script(&self, hop: &Hop, env: &Table, name: &[u8], out: &mut Vec<u8>) -> bool {
        if !hop.has_script {
            return false;
        }
        if name.eq_ignore_ascii_case(SCRIPT_URI) {
            self.write_self_url(out);
        } else if !name.eq_ignore_ascii_case(SCRIPT_URL) {
            return false;
        }
        out.extend_from_slice(env.get(b"REDIRECT_SCRIPT_URL").unwrap_or(&hop.uri));
        true
    }

    /// The value of a variable.
    pub(super) fn env<'h>(&self, hop: &'h Hop, name: &[u8]) -> Option<Cow<'h, [u8]>> {
        let mut value = Vec::new();
        if self.write_script(hop, &hop.env, name, &mut value) {
            return Some(value.into());
        }
        hop.env.get(name).map(Cow::Borrowed)
    }

    /// `SetEnv` and `PassEnv`; after them the variables of mod_ssl.
    pub(super) fn set_fixed_env(&mut self, hop: &mut Hop, config: &Config<'_>) {
        if let Some(env) = &config.get().env {
            for [name, value] in &env.set {
                hop.env.add(name, value);
            }
        }
        self.set_tls_env(hop, config);
    }

    /// Gives the variables the names that they have after an internal redirect. Where two have one name,
    /// the later one stays.
    pub(super) fn rename_env(&mut self, hop: &mut Hop) {
        self.settle_env(hop);
        let mut renamed = std::mem::take(&mut self.work.renamed);
        renamed.clear();
        for (name, value) in hop.env.iter() {
            renamed.set_parts(&[b"REDIRECT_", name], &[value]);
        }
        let mut status = [0; 3];
        let mut rest = hop.status;
        for digit in status.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        renamed.set(b"REDIRECT_STATUS", &status);
        std::mem::swap(&mut hop.env, &mut renamed);
        self.work.renamed = renamed;
    }

    /// `%{ENV:name}`: a note, a variable, or one of the process.
    pub(super) fn write_env(&self, hop: &Hop, name: &[u8], out: &mut Vec<u8>) {
        if let Some(note) = hop.notes.get(name) {
            out.extend_from_slice(note);
        } else if self.write_script(hop, &hop.env, name, out) {
            // That is it.
        } else if let Some(value) = hop.env.get(name) {
            out.extend_from_slice(value);
        } else if let Ok(name) = std::str::from_utf8(name)
            && let Some(value) = self.outside.environment(name)
        {
            out.extend_from_slice(value.as_bytes());
        }
    }

    fn run_env_rules(&mut self, lists: &[Part<EnvRules>], hop: &mut Hop, path: &[u8]) {
        // What was looked at last, be it by an expression, stays for what comes after it: for an attribute
        // that is asked for again, and for the groups in values.
        let mut capture = std::mem::take(&mut self.work.expression);
        capture.subject.clear();
        capture.groups = Captures::default();
        // How much of it a pattern without special characters sees: as much as the last attribute had.
        let mut visible = 0;
        for list in lists {
            let pool = list.pool(&self.program.pool);
            for EnvRule { test, changes } in &list.value.rules {
                if std::mem::take(&mut capture.failed) {
                    visible = 0;
                }
                match test {
                    EnvTest::Pattern { looks_at, again, pattern, has_groups } => {
                        if !again {
                            capture.subject.clear();
                            self.write_attribute(looks_at, pool, hop, path, &mut capture.subject);
                            visible = capture.subject.len();
                        }
                        let value = &capture.subject[..];
                        let seen = if *has_groups { value.len() } else { value.len().min(visible) };
                        let found = pattern.find(pool, &value[..seen], &mut self.work.matcher);
                        let Ok(Some(groups)) = found else { continue };
                        if *has_groups {
                            capture.groups = groups;
                        }
                        self.change_env(changes, pool, hop, has_groups.then_some(&capture));
                    }
                    EnvTest::Expression(condition) => {
                        // Outside of sections the path is not yet made of what was sent.
                        if hop.uri != path {
                            hop.uri.clear();
                            hop.uri.extend_from_slice(path);
                        }
                        if self.holds(condition, hop, &mut capture) {
                            // Where a pattern did not match, `$0` to `$9` are not replaced.
                            let groups = Some(&capture).filter(|capture| !capture.failed);
                            self.change_env(changes, pool, hop, groups);
                        }
                        self.add_vary(hop);
                    }
                }
            }
        }
        self.work.expression = capture;
    }

    fn write_attribute(
        &mut self,
        attribute: &Attribute,
        pool: &Pool,
        hop: &Hop,
        path: &[u8],
        out: &mut Vec<u8>,
    ) {
        let request = self.request;
        match attribute {
            Attribute::RemoteAddress => {
                write_text(out, format_args!("{}", self.client().ip().to_canonical()));
            }
            Attribute::ServerAddress => {
                write_text(out, format_args!("{}", request.local.ip().to_canonical()));
            }
            Attribute::RemoteUser => {}
            Attribute::RequestUri => out.extend_from_slice(path),
            Attribute::RequestMethod => out.extend_from_slice(self.method(hop)),
            Attribute::RequestProtocol => {
                out.extend_from_slice(variable::protocol(request.version))
            }
            Attribute::Name(name) => {
                let name = pool.get(*name);
                if !self.write_request_field(name, out)
                    && let Some(value) = hop.env.get(name)
                {
                    out.extend_from_slice(value);
                }
            }
            Attribute::Names(pattern) => {
                self.for_each_request_field(|run, name, value| {
                    if pattern
                        .find(pool, name, &mut run.work.matcher)
                        .is_ok_and(|found| found.is_some())
                    {
                        out.clear();
                        out.extend_from_slice(value);
                    }
                });
            }
        }
    }

    /// Sets and removes variables; `$0` to `$9` in values are the groups of `capture`, if there is one.
    fn change_env(
        &mut self,
        changes: &[EnvChange],
        pool: &Pool,
        hop: &mut Hop,
        capture: Option<&Capture>,
    ) {
        for change in changes {
            match (*change, capture) {
                (EnvChange::Unset(name), _) => hop.env.remove(pool.get(name)),
                (EnvChange::Set(name, value), None) => hop.env.set(pool.get(name), pool.get(value)),
                (EnvChange::Set(name, value), Some(Capture { subject, groups, .. })) => {
                    let mut text = self.take_buffer();
                    if alias::substitute(pool.get(value), subject, groups, &mut text) {
                        hop.env.set(pool.get(name), &text);
                    }
                    self.put_buffer(text);
                }
            }
        }
    }
}

//! Decides whether a client may have what it asks for.
//!
//! A request that comes from another one with the very same configuration, as a subrequest or through an
//! internal redirect, is not asked again. So the document of a 403 may stand in the directory that refused.
//!
//! Source: httpd 2.4.71 `server/request.c`, `ap_process_request_internal`; `modules/aaa/mod_authz_core.c`,
//! `apply_authz_sections`, `authorize_user_core`; `mod_access_compat.c`, `check_dir_access`;
//! `mod_allowmethods.c`, `am_check_access`.

use std::sync::Arc;

use super::{Config, End, Hop, Run};
use crate::expr::Capture;
use crate::program::{
    Access, AuthType, Host, HostOrder, HostRules, Methods, RequireKind, RequireTest, Requirement,
};
use crate::request::Scheme;

/// What a requirement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Granted,
    Denied,
    /// Denied, and a user could change that.
    NoUser,
    /// Neither: what is negated and does not hold.
    Neutral,
}

impl Run<'_> {
    /// Whether the client may pass; else how the request ends.
    pub(super) fn check_access(&mut self, hop: &mut Hop, config: &Config<'_>) -> Result<(), End> {
        let shared = config.shared();
        let same = match (&hop.checked, &shared) {
            (Some(Some(before)), Some(now)) => Arc::ptr_eq(before, now),
            (Some(None), None) => true,
            _ => false,
        };
        if same {
            return Ok(());
        }
        let access = &config.get().access;
        let method = self.method(hop);
        if config.get().methods.as_ref().is_some_and(|methods| !methods.allow(method)) {
            return Err(End::Status(405));
        }
        let hosts = access.hosts.as_deref();
        let secure = self.tls_passes(hop, &access.tls);
        if !secure && access.tls.strict == Some(true) {
            return Err(End::Status(403));
        }
        let passes = secure && hosts.is_none_or(|rules| self.hosts_pass(hop, rules, method));
        let any = hosts.is_some_and(|rules| last_for(&rules.satisfy_any, method) == Some(true));
        match (passes, any) {
            (true, true) => Ok(()),
            (false, false) => Err(End::Status(403)),
            _ => self.check_requirement(hop, access, method),
        }
    }

    /// `Require` and its containers.
    fn check_requirement(
        &mut self,
        hop: &mut Hop,
        access: &Access,
        method: &[u8],
    ) -> Result<(), End> {
        let has_type = access.auth_type.is_some_and(|kind| kind != AuthType::None);
        let Some(requirement) = &access.require else {
            // Somebody meant to ask for a user, and does not.
            return if has_type { Err(End::Status(500)) } else { Ok(()) };
        };
        let verdict = self.verdict(hop, requirement, method, true);
        self.add_vary(hop);
        match verdict {
            Verdict::Granted => Ok(()),
            Verdict::NoUser if !has_type => Err(End::Status(500)),
            // Nobody can ask for a user, or not without saying what for.
            Verdict::NoUser if access.auth_type == Some(AuthType::Unknown) => Err(End::Status(500)),
            Verdict::NoUser if access.realm.is_none() => Err(End::Status(500)),
            Verdict::NoUser => {
                if access.auth_type == Some(AuthType::Basic) {
                    let realm = access.realm.as_deref().unwrap_or_default();
                    let challenge = [b"Basic realm=\"", realm, b"\""];
                    self.work.always.set_parts(&[b"WWW-Authenticate"], &challenge);
                }
                Err(End::Status(401))
            }
            Verdict::Denied | Verdict::Neutral => Err(End::Status(403)),
        }
    }

    fn verdict(
        &mut self,
        hop: &Hop,
        requirement: &Requirement,
        method: &[u8],
        within_all: bool,
    ) -> Verdict {
        if !requirement.methods.contain(method) {
            return if within_all { Verdict::Granted } else { Verdict::Neutral };
        }
        let verdict = match &requirement.kind {
            RequireKind::Test(test) => self.test_verdict(hop, test, method),
            RequireKind::All(members) => {
                let mut all = Verdict::Neutral;
                for member in members {
                    match self.verdict(hop, member, method, true) {
                        Verdict::Denied => {
                            all = Verdict::Denied;
                            break;
                        }
                        Verdict::Neutral => {}
                        verdict if verdict == Verdict::NoUser || all == Verdict::Neutral => {
                            all = verdict;
                        }
                        _ => {}
                    }
                }
                all
            }
            RequireKind::Any(members) => {
                let mut any = Verdict::Neutral;
                for member in members {
                    match self.verdict(hop, member, method, false) {
                        Verdict::Granted => {
                            any = Verdict::Granted;
                            break;
                        }
                        Verdict::Neutral => {}
                        verdict if verdict == Verdict::NoUser || any == Verdict::Neutral => {
                            any = verdict;
                        }
                        _ => {}
                    }
                }
                any
            }
        };
        match verdict {
            Verdict::Granted if requirement.negated => Verdict::Denied,
            Verdict::Denied | Verdict::NoUser if requirement.negated => Verdict::Neutral,
            verdict => verdict,
        }
    }

    fn test_verdict(&mut self, hop: &Hop, test: &RequireTest, method: &[u8]) -> Verdict {
        let (remote, local) = (self.client().ip(), self.request.local.ip());
        let holds = match test {
            RequireTest::Granted => true,
            RequireTest::Denied => false,
            RequireTest::Networks(networks) => {
                networks.iter().any(|network| network.contains(remote))
            }
            RequireTest::Hosts(names) => names.iter().any(|name| self.is_from(name)),
            RequireTest::Local => remote.to_canonical().is_loopback() || remote == local,
            RequireTest::Method(names) => {
                let method = if method == b"HEAD" { b"GET" } else { method };
                names.iter().any(|name| **name == *method)
            }
            RequireTest::Tls => self.request.scheme == Scheme::Https,
            RequireTest::ClientVerified => self.is_client_verified(),
            RequireTest::Env(names) => names.iter().any(|name| hop.env.get(name).is_some()),
            RequireTest::Expression { condition, wants_user } => {
                let holds = self.holds(condition, hop, &mut Capture::default());
                if !holds && *wants_user {
                    return Verdict::NoUser;
                }
                holds
            }
            RequireTest::User => return Verdict::NoUser,
        };
        if holds { Verdict::Granted } else { Verdict::Denied }
    }

    /// Whether the client's host has a name, or one that ends in it after a dot. Only that of this machine is
    /// known.
    fn is_from(&self, name: &[u8]) -> bool {
        self.client().ip().to_canonical().is_loopback() && name.eq_ignore_ascii_case(b"localhost")
    }

    fn hosts_pass(&self, hop: &Hop, rules: &HostRules, method: &[u8]) -> bool {
        let is_in = |hosts: &[(Methods, Host)]| {
            let mut hosts = hosts.iter().filter(|(methods, _)| methods.contain(method));
            hosts.any(|(_, host)| match host {
                Host::All => true,
                Host::Network(network) => network.contains(self.client().ip()),
                Host::Env { name, set } => hop.env.get(name).is_some() == *set,
                Host::Name(name) => self.is_from(name),
            })
        };
        let (allowed, denied) = (is_in(&rules.allow), is_in(&rules.deny));
        match last_for(&rules.orders, method).unwrap_or(HostOrder::DenyAllow) {
            HostOrder::AllowDeny => allowed && !denied,
            HostOrder::DenyAllow => allowed || !denied,
        }
    }
}

/// What was said last for a method.
fn last_for<T: Copy>(said: &[(Methods, T)], method: &[u8]) -> Option<T> {
    said.iter().rev().find(|(methods, _)| methods.contain(method)).map(|(_, value)| *value)
}

//! `Require` with its containers and `AuthMerging`; `Order`, `Allow`, `Deny`, `Satisfy`; `<Limit>`.
//!
//! Nobody can log in here, and no host name is looked up, but that a loopback address is `localhost`. Both is
//! said in a warning.
//!
//! Source: httpd 2.4.71 `modules/aaa/mod_authz_core.c`, `add_authz_provider`, `add_authz_section`;
//! `mod_authz_host.c`; `mod_access_compat.c`; `server/core.c`, `ap_limit_section`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use milepost_http::method;
use milepost_syntax::{Word, Words};

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::expr::Condition;
use crate::program::{
    AuthType, Host, HostOrder, HostRules, Limit, Merging, Methods, Network, RequireKind,
    RequireTest, Requirement, Scope,
};

/// Providers of requirements that only a user who has logged in can meet.
const USER_PROVIDERS: &[&[u8]] = &[
    b"valid-user",
    b"user",
    b"group",
    b"file-owner",
    b"file-group",
    b"dbm-group",
    b"dbm-file-group",
    b"dbd-group",
    b"dbd-login",
    b"dbd-logout",
    b"ldap-user",
    b"ldap-group",
    b"ldap-dn",
    b"ldap-attribute",
    b"ldap-filter",
    b"ldap-search",
];

/// Where a configuration says what is loaded, the modules that provide what can be required.
const PROVIDER_MODULES: &[(&[&[u8]], &str)] = &[
    (&[b"ip", b"host", b"local", b"forward-dns"], "mod_authz_host.c"),
    (&[b"valid-user", b"user"], "mod_authz_user.c"),
    (&[b"group", b"file-group"], "mod_authz_groupfile.c"),
    (&[b"file-owner"], "mod_authz_owner.c"),
    (&[b"dbm-group", b"dbm-file-group"], "mod_authz_dbm.c"),
    (&[b"dbd-group", b"dbd-login", b"dbd-logout"], "mod_authz_dbd.c"),
    (
        &[
            b"ldap-user",
            b"ldap-group",
            b"ldap-dn",
            b"ldap-attribute",
            b"ldap-filter",
            b"ldap-search",
        ],
        "mod_authnz_ldap.c",
    ),
];

/// A container while its requirements are read.
pub(super) struct Container {
    kind: ContainerKind,
    members: Vec<Arc<Requirement>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ContainerKind {
    All,
    Any,
    None,
}

impl ContainerKind {
    fn name(self) -> &'static str {
        match self {
            ContainerKind::All => "<RequireAll>",
            ContainerKind::Any => "<RequireAny>",
            ContainerKind::None => "<RequireNone>",
        }
    }
}

impl Builder<'_> {
    /// `Require [not] provider …`
    pub(super) fn require(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if !self.section_only(directive, context) {
            return;
        }
        let mut words = directive.words();
        let negated = words.first().is_some_and(|word| word.text.eq_ignore_ascii_case(b"not"));
        if negated {
            words.remove(0);
        }
        let container = self.containers.last().map_or(ContainerKind::Any, |inner| inner.kind);
        if negated && container != ContainerKind::All {
            let message = format!("a negation has no effect in `{}`", container.name());
            let finding = Finding::error(message)
                .hint("put it into a `<RequireAll>`, beside what grants access");
            return self.report(directive, finding);
        }
        let Some((provider, arguments)) = words.split_first() else {
            let finding = Finding::error("`Require` needs to know what").hint(REQUIRE_HINT);
            return self.report(directive, finding);
        };
        let test = match self.provider_aliases.authz(&provider.text) {
            Some(alias) => self.aliased_test(directive, provider, &alias, negated),
            None => self.base_test(directive, provider, arguments, negated),
        };
        let Some(test) = test else { return };
        let methods = Methods::within(&self.limits);
        let kind = RequireKind::Test(test);
        self.add_requirement(Requirement { kind, negated, methods }, context);
    }

    /// What a provider that is no other's other name requires.
    pub(super) fn base_test(
        &mut self,
        directive: &Directive<'_>,
        provider: &Word<'_>,
        arguments: &[Word<'_>],
        negated: bool,
    ) -> Option<RequireTest> {
        let texts = || arguments.iter().map(|word| Box::from(&*word.text)).collect();
        let module = PROVIDER_MODULES.iter().find(|(names, _)| names.contains(&&*provider.text));
        if let Some((_, module)) = module
            && !self.names.modules.has(module)
        {
            let finding = Finding::error(format!(
                "nothing can be required of {}: {module} is not loaded",
                show(&provider.text)
            ));
            self.report_at(directive, provider.at, provider.len, finding);
            return None;
        }
        let finding = match &*provider.text {
            b"all" => match arguments {
                [word] if word.text.eq_ignore_ascii_case(b"granted") => {
                    return Some(RequireTest::Granted);
                }
                [word] if word.text.eq_ignore_ascii_case(b"denied") => {
                    return Some(RequireTest::Denied);
                }
                _ => Finding::error("`Require all` is followed by `granted` or `denied`"),
            },
            b"local" => return Some(RequireTest::Local),
            b"ssl" => return Some(RequireTest::Tls),
            b"ssl-verify-client" => return Some(RequireTest::ClientVerified),
            b"env" => return Some(RequireTest::Env(texts())),
            b"method" => match arguments.iter().find(|word| !method::is_known(&word.text)) {
                None => return Some(RequireTest::Method(texts())),
                Some(word) => {
                    let finding = Finding::error(format!("unknown method {}", show(&word.text)));
                    self.report_at(directive, word.at, word.len, finding);
                    return None;
                }
            },
            b"ip" if arguments.is_empty() => Finding::error("`Require ip` needs an address"),
            b"ip" => return self.networks(directive, arguments).map(RequireTest::Networks),
            b"expr" => {
                let (text, at) = rest_of_line(directive, provider);
                return self.require_expression(directive, text, at);
            }
            b"host" | b"forward-dns" => {
                let local = |word: &Word<'_>| word.text.eq_ignore_ascii_case(b"localhost");
                if !arguments.iter().all(local) {
                    let message = if negated {
                        "host names are not looked up: this keeps nobody out"
                    } else {
                        "host names are not looked up: this never holds"
                    };
                    let hint = "name addresses: `Require ip …`";
                    self.report(directive, Finding::warning(message).hint(hint));
                }
                return Some(RequireTest::Hosts(texts()));
            }
            name if USER_PROVIDERS.contains(&name) => {
                let finding = Finding::warning("nobody can log in here: this never holds");
                self.report(directive, finding);
                return Some(RequireTest::User);
            }
            name => {
                Finding::error(format!("{} is nothing to require", show(name))).hint(REQUIRE_HINT)
            }
        };
        self.report_at(directive, provider.at, provider.len, finding);
        None
    }

    /// `Require expr …`; `at` is where the expression stands in the arguments.
    pub(super) fn require_expression(
        &mut self,
        directive: &Directive<'_>,
        text: &[u8],
        at: usize,
    ) -> Option<RequireTest> {
        match Condition::parse(text, self.dialect()) {
            Ok(condition) => {
                let lower = text.to_ascii_lowercase();
                let wants_user = memchr::memmem::find(&lower, b"remote_user").is_some();
                Some(RequireTest::Expression { condition, wants_user })
            }
            Err(error) => {
                let mut finding = Finding::error(error.to_string());
                if let Some(hint) = error.hint() {
                    finding = finding.hint(hint);
                }
                self.report_at(directive, at + error.at, error.len.max(1), finding);
                None
            }
        }
    }

    fn networks(&mut self, directive: &Directive<'_>, words: &[Word<'_>]) -> Option<Vec<Network>> {
        let mut networks = Vec::with_capacity(words.len());
        for word in words {
            match network(&word.text) {
                Some(network) => networks.push(network),
                None => {
                    let finding = Finding::error(format!("{} is no address", show(&word.text)))
                        .hint("write an address, `address/bits`, `address/mask`, or the start of one: `10.1`");
                    self.report_at(directive, word.at, word.len, finding);
                    return None;
                }
            }
        }
        Some(networks)
    }

    /// Adds a requirement to the innermost container, or to those of the section.
    fn add_requirement(&mut self, requirement: Requirement, context: &mut Context<'_>) {
        let requirement = Arc::new(requirement);
        if let Some(container) = self.containers.last_mut() {
            return container.members.push(requirement);
        }
        // What is in no container is in one of its own, made anew for each line.
        let access = &mut context.dir.config.access;
        let mut methods = requirement.methods.clone();
        let mut members = Vec::new();
        if let Some(before) = access.require.take() {
            methods.add(&before.methods);
            match &before.kind {
                RequireKind::Any(before) => members.clone_from(before),
                RequireKind::All(_) | RequireKind::Test(_) => members.push(before),
            }
        }
        members.push(requirement);
        let kind = RequireKind::Any(members);
        access.require = Some(Arc::new(Requirement { kind, negated: false, methods }));
    }

    /// `<RequireAll>`, `<RequireAny>`, `<RequireNone>`
    pub(super) fn require_section(
        &mut self,
        name: &[u8],
        directive: &Directive<'_>,
        context: &mut Context<'_>,
        inner: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        if !self.section_only(directive, context) {
            return;
        }
        let kind = match name {
            b"requireall" => ContainerKind::All,
            b"requireany" => ContainerKind::Any,
            _ => ContainerKind::None,
        };
        if let Some(extra) = Words::new(directive.args).next() {
            let message = format!("`{}` takes no argument", kind.name());
            return self.report_at(directive, extra.at, extra.len, Finding::error(message));
        }
        let errors = self.diagnostics.len();
        self.containers.push(Container { kind, members: Vec::new() });
        inner(self, context);
        let Some(Container { members, .. }) = self.containers.pop() else { return };
        if members.is_empty() {
            // What is wrong inside has been said.
            if self.diagnostics.len() == errors {
                let message = format!("`{}` requires nothing", kind.name());
                self.report(directive, Finding::error(message));
            }
            return;
        }
        let outer = self.containers.last().map_or(ContainerKind::Any, |outer| outer.kind);
        if kind == ContainerKind::None && outer != ContainerKind::All {
            let message = format!("`<RequireNone>` has no effect in `{}`", outer.name());
            let finding = Finding::error(message)
                .hint("put it into a `<RequireAll>`, beside what grants access");
            return self.report(directive, finding);
        }
        if kind == ContainerKind::All && members.iter().all(|member| member.negated) {
            let finding = Finding::error("`<RequireAll>` has negations only, so it grants nothing")
                .hint("add `Require all granted`");
            return self.report(directive, finding);
        }
        let requirement = Requirement {
            kind: match kind {
                ContainerKind::All => RequireKind::All(members),
                ContainerKind::Any | ContainerKind::None => RequireKind::Any(members),
            },
            negated: kind == ContainerKind::None,
            methods: Methods::within(&self.limits),
        };
        self.add_requirement(requirement, context);
    }

    /// `AuthMerging Off|And|Or`
    pub(super) fn auth_merging(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if !self.section_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 1, "AuthMerging Off|And|Or") else { return };
        context.dir.config.access.merging =
            Some(match words[0].text.to_ascii_lowercase().as_slice() {
                b"off" => Merging::Off,
                b"and" => Merging::And,
                b"or" => Merging::Or,
                _ => {
                    let finding = Finding::error("`AuthMerging` is `Off`, `And` or `Or`");
                    return self.report_at(directive, words[0].at, words[0].len, finding);
                }
            });
    }

    /// `AuthType None|Basic|Digest|Form`
    pub(super) fn auth_type(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if !self.section_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 1, "AuthType Basic") else { return };
        let text = words[0].text.to_ascii_lowercase();
        context.dir.config.access.auth_type = Some(match text.as_slice() {
            b"none" => AuthType::None,
            b"basic" if self.names.modules.has("mod_auth_basic.c") => AuthType::Basic,
            b"digest" if self.names.modules.has("mod_auth_digest.c") => AuthType::Other,
            b"form" if self.names.modules.has("mod_auth_form.c") => AuthType::Other,
            _ => AuthType::Unknown,
        });
    }

    /// `AuthName realm`
    pub(super) fn auth_name(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if !self.section_only(directive, context) {
            return;
        }
        if let Some(words) = self.words(directive, 1, 1, "AuthName \"realm\"") {
            // It goes into quotes.
            let mut realm = Vec::with_capacity(words[0].text.len());
            for &byte in &*words[0].text {
                if matches!(byte, b'"' | b'\\') {
                    realm.push(b'\\');
                }
                realm.push(byte);
            }
            context.dir.config.access.realm = Some(realm.into());
        }
    }

    /// `Order deny,allow`, `Order allow,deny`, `Order mutual-failure`
    pub(super) fn order(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if !self.section_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 1, "Order allow,deny") else { return };
        let order = match words[0].text.to_ascii_lowercase().as_slice() {
            b"allow,deny" | b"mutual-failure" => HostOrder::AllowDeny,
            b"deny,allow" => HostOrder::DenyAllow,
            _ => {
                let finding = Finding::error(format!("unknown order {}", show(&words[0].text)))
                    .hint("write `allow,deny` or `deny,allow`, without a blank");
                return self.report_at(directive, words[0].at, words[0].len, finding);
            }
        };
        let methods = Methods::within(&self.limits);
        host_rules(context).orders.push((methods, order));
    }

    /// `Allow from …` and `Deny from …`
    pub(super) fn allow_or_deny(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if !self.section_only(directive, context) {
            return;
        }
        let words = directive.words();
        let [from, who @ ..] = words.as_slice() else { return self.report_missing_from(directive) };
        if !from.text.eq_ignore_ascii_case(b"from") || who.is_empty() {
            return self.report_missing_from(directive);
        }
        let allow = directive.name.eq_ignore_ascii_case(b"allow");
        for word in who {
            if word.text.starts_with(b"#") {
                // What follows is the comment: one finding says it all.
                let finding = Finding::error("a comment needs a line of its own");
                return self.report_at(directive, word.at, word.len, finding);
            }
            let Some(host) = self.host(directive, word, allow) else { continue };
            let rule = (Methods::within(&self.limits), host);
            let rules = host_rules(context);
            if allow {
                rules.allow.push(rule);
            } else {
                rules.deny.push(rule);
            }
        }
    }

    fn report_missing_from(&mut self, directive: &Directive<'_>) {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        let finding = Finding::error(format!("`{name}` needs `from` and whom"))
            .hint(format!("write `{name} from all`, or `{name} from address`"));
        self.report(directive, finding);
    }

    fn host(&mut self, directive: &Directive<'_>, word: &Word<'_>, allow: bool) -> Option<Host> {
        let text = &*word.text;
        if text.eq_ignore_ascii_case(b"all") {
            return Some(Host::All);
        }
        if let Some((start, name)) = text.split_at_checked(4)
            && start.eq_ignore_ascii_case(b"env=")
        {
            let (set, name) = match name {
                [b'!', name @ ..] => (false, name),
                name => (true, name),
            };
            return Some(Host::Env { name: name.into(), set });
        }
        if let Some(network) = network(text) {
            return Some(Host::Network(network));
        }
        let looks_like_address = text.contains(&b'/')
            || text.contains(&b':')
            || text.iter().all(|byte| b"0123456789.".contains(byte));
        if looks_like_address {
            let finding = Finding::error(format!("{} is no address", show(text)));
            self.report_at(directive, word.at, word.len, finding);
            return None;
        }
        if !text.eq_ignore_ascii_case(b"localhost") {
            let whom = if allow { "lets nobody in" } else { "keeps nobody out" };
            let finding = Finding::warning(format!("host names are not looked up: this {whom}"))
                .hint("name addresses instead");
            self.report_at(directive, word.at, word.len, finding);
        }
        Some(Host::Name(text.into()))
    }

    /// `Satisfy Any|All`
    pub(super) fn satisfy(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if !self.section_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 1, "Satisfy Any|All") else { return };
        let any = match words[0].text.to_ascii_lowercase().as_slice() {
            b"any" => true,
            b"all" => false,
            _ => {
                let finding = Finding::error("`Satisfy` is `Any` or `All`");
                return self.report_at(directive, words[0].at, words[0].len, finding);
            }
        };
        let methods = Methods::within(&self.limits);
        host_rules(context).satisfy_any.push((methods, any));
    }

    /// `<Limit method …>`, `<LimitExcept method …>`
    pub(super) fn limit_section(
        &mut self,
        name: &[u8],
        directive: &Directive<'_>,
        context: &mut Context<'_>,
        inner: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        if !self.section_only(directive, context) {
            return;
        }
        let shown = String::from_utf8_lossy(directive.name).into_owned();
        let words = directive.words();
        if words.is_empty() {
            let finding = Finding::error(format!("`<{shown}>` needs a method"))
                .hint(format!("write `<{shown} POST>`"));
            return self.report(directive, finding);
        }
        if let Some(trace) = words.iter().find(|word| *word.text == *b"TRACE") {
            let finding = Finding::error(format!("`<{shown}>` has no power over TRACE"))
                .hint("write `TraceEnable Off`");
            return self.report_at(directive, trace.at, trace.len, finding);
        }
        let except = name == b"limitexcept";
        let names = words.iter().map(|word| match &*word.text {
            b"HEAD" => b"GET"[..].into(),
            name => name.into(),
        });
        self.limits.push(Limit { names: names.collect(), except });
        inner(self, context);
        self.limits.pop();
    }

    /// Whether something stands in a section or a `.htaccess` file; an error otherwise.
    pub(super) fn section_only(
        &mut self,
        directive: &Directive<'_>,
        context: &Context<'_>,
    ) -> bool {
        if context.scope.is_server() {
            let place = match context.scope {
                Scope::VirtualHost => "directly in a `<VirtualHost>`",
                _ => "outside sections",
            };
            let finding =
                Finding::error(format!("{} is not allowed {place}", show(directive.name)))
                    .hint("put it into a `<Directory>` or a `<Location>`");
            self.report(directive, finding);
        }
        !context.scope.is_server()
    }

    /// Whether a directive may stand where it stands: containers take requirements alone.
    pub(super) fn fits_container(&mut self, directive: &Directive<'_>, lower: &[u8]) -> bool {
        let Some(container) = self.containers.last() else { return true };
        if matches!(lower, b"require" | b"include" | b"includeoptional" | b"use") {
            return true;
        }
        let message =
            format!("{} is not allowed in `{}`", show(directive.name), container.kind.name());
        self.report(directive, Finding::error(message));
        false
    }
}

const REQUIRE_HINT: &str =
    "done are `all granted`, `all denied`, `ip`, `local`, `method`, `env` and `expr`";

/// The rules of a section about hosts, made if they are new.
/// What stands behind a word, quotes around all of it taken away, and where it begins.
fn rest_of_line<'d>(directive: &Directive<'d>, word: &Word<'_>) -> (&'d [u8], usize) {
    let start = word.at + word.len;
    let rest = directive.args.get(start..).unwrap_or_default();
    let blanks = rest.len() - rest.trim_ascii_start().len();
    let text = rest.trim_ascii();
    let quoted = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
    (quoted.unwrap_or(text), start + blanks + usize::from(quoted.is_some()))
}

fn host_rules<'c>(context: &'c mut Context<'_>) -> &'c mut HostRules {
    Arc::make_mut(context.dir.config.access.hosts.get_or_insert_default())
}

/// `address`, `address/bits`, `address/mask`, or the first numbers of an IPv4 address (`10.1`).
pub(super) fn network(text: &[u8]) -> Option<Network> {
    let text = std::str::from_utf8(text).ok()?;
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    if let Ok(address) = address.parse::<IpAddr>() {
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => match bits.parse::<u8>() {
                Ok(bits) => bits,
                Err(_) => mask_bits(bits.parse().ok()?)?,
            },
        };
        return (bits <= most).then_some(Network { address, bits });
    }
    let parts: Vec<&str> = address.strip_suffix('.').unwrap_or(address).split('.').collect();
    if bits.is_some() || parts.len() > 4 {
        return None;
    }
    let mut octets = [0_u8; 4];
    for (octet, part) in octets.iter_mut().zip(&parts) {
        // Zeros before a number do not matter, but a sign does.
        *octet = part.parse().ok().filter(|_| part.starts_with(|c: char| c.is_ascii_digit()))?;
    }
    Some(Network { address: IpAddr::from(octets), bits: 8 * parts.len() as u8 })
}

/// The number of bits of a mask, if they all stand at its start.
fn mask_bits(mask: Ipv4Addr) -> Option<u8> {
    let ones = mask.to_bits().leading_ones();
    (mask.to_bits().count_ones() == ones).then_some(ones as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read() {
        let read = |text: &str| {
            network(text.as_bytes()).map(|Network { address, bits }| format!("{address}/{bits}"))
        };
        for (text, expected) in [
            ("10.1", Some("10.1.0.0/16")),
            ("10.", Some("10.0.0.0/8")),
            ("192.0.2.1", Some("192.0.2.1/32")),
            ("192.0.2.0/24", Some("192.0.2.0/24")),
            ("192.0.2.0/255.255.255.0", Some("192.0.2.0/24")),
            ("192.0.2.0/255.0.255.0", None),
            ("192.0.2.0/33", None),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("300.1.1.1", None),
            ("example.com", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }
}

//! Who may have what is in a directory: `Require` with its containers, and `Order`, `Allow`, `Deny`.
//!
//! Source: httpd 2.4.71 `modules/aaa/mod_authz_core.c`, `merge_authz_core_dir_config`;
//! `mod_access_compat.c`; `server/core.c`, `ap_limit_section`.

use std::net::IpAddr;
use std::sync::Arc;

use crate::expr::Condition;

/// The access rules of one section; merged, of all that apply.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access {
    /// `Require` and its containers.
    pub(crate) require: Option<Arc<Requirement>>,
    /// `AuthMerging`
    pub(crate) merging: Option<Merging>,
    /// `Order`, `Allow`, `Deny`, `Satisfy`.
    pub(crate) hosts: Option<Arc<HostRules>>,
    /// `AuthType`: whether there is one, and whether it is `Basic`.
    pub(crate) auth_type: Option<AuthType>,
    /// `AuthName`
    pub(crate) realm: Option<Arc<[u8]>>,
    /// `SSLRequireSSL`, `SSLRequire`
    pub(crate) tls: TlsAccess,
}

/// What a section asks of the connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsAccess {
    /// `SSLRequireSSL`
    pub(crate) required: bool,
    /// `SSLVerifyClient` in a section: whether the client must have shown a certificate that is verified.
    pub(crate) client: Option<bool>,
    /// `SSLRequire`: all must hold.
    pub(crate) tests: Vec<Arc<Condition>>,
    /// `SSLOptions StrictRequire`: `Satisfy Any` does not help.
    pub(crate) strict: Option<bool>,
    /// `SSLOptions StdEnvVars`: requests get the variables of mod_ssl.
    pub(crate) variables: Option<bool>,
    /// `SSLOptions ExportCertData`: certificates are variables too.
    pub(crate) certificates: Option<bool>,
}

/// How the requirements of a section and of those around it go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merging {
    Off,
    And,
    Or,
}

/// `AuthType`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthType {
    None,
    Basic,
    Other,
    /// Nobody knows how to do it.
    Unknown,
}

/// A `Require`, or a container of several.
#[derive(Debug)]
pub(crate) struct Requirement {
    pub(crate) kind: RequireKind,
    /// `not`, or `<RequireNone>`.
    pub(crate) negated: bool,
    /// The methods that it is for.
    pub(crate) methods: Methods,
}

/// What a requirement asks for.
#[derive(Debug)]
pub(crate) enum RequireKind {
    /// `<RequireAll>`
    All(Vec<Arc<Requirement>>),
    /// `<RequireAny>`, `<RequireNone>`, and what is in no container.
    Any(Vec<Arc<Requirement>>),
    Test(RequireTest),
}

/// One `Require`.
#[derive(Debug)]
pub(crate) enum RequireTest {
    /// `all granted`
    Granted,
    /// `all denied`
    Denied,
    /// `host …`, `forward-dns …`
    Hosts(Vec<Box<[u8]>>),
    /// `ip …`
    Networks(Vec<Network>),
    /// `local`
    Local,
    /// `method …`
    Method(Vec<Box<[u8]>>),
    /// `ssl`
    Tls,
    /// `ssl-verify-client`
    ClientVerified,
    /// `env …`
    Env(Vec<Box<[u8]>>),
    /// `expr …`; `wants_user` if a user could change its result.
    Expression { condition: Condition, wants_user: bool },
    /// `valid-user`, `user`, `group`: nobody can log in.
    User,
}

/// Addresses with the same first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

/// Access as Apache 2.2 had it.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostRules {
    /// The last that is for a method counts.
    pub(crate) orders: Vec<(Methods, HostOrder)>,
    pub(crate) allow: Vec<(Methods, Host)>,
    pub(crate) deny: Vec<(Methods, Host)>,
    /// `Satisfy`: whether any of the two kinds of rules is enough.
    pub(crate) satisfy_any: Vec<(Methods, bool)>,
}

/// `Order`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostOrder {
    /// `deny,allow`: who is denied and not allowed is out.
    DenyAllow,
    /// `allow,deny` and `mutual-failure`: who is not allowed, or is denied, is out.
    AllowDeny,
}

/// Whom an `Allow` or a `Deny` is for.
#[derive(Debug, Clone)]
pub(crate) enum Host {
    All,
    Network(Network),
    Env {
        name: Box<[u8]>,
        set: bool,
    },
    /// A host name, or the end of one.
    Name(Box<[u8]>),
}

/// The methods that `<Limit>` and `<LimitExcept>` leave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Methods {
    /// Any of these is enough; `None`: all methods.
    any_of: Option<Vec<Arc<[Limit]>>>,
}

/// One `<Limit>` or `<LimitExcept>`.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    pub(crate) names: Box<[Box<[u8]>]>,
    pub(crate) except: bool,
}

impl Access {
    /// Adds the rules of a more specific section.
    pub(crate) fn merge(&mut self, over: &Access) {
        match (over.merging, &self.require, &over.require) {
            (None, _, None) => {}
            (Some(Merging::And | Merging::Or), _, None) => {}
            (Some(merging @ (Merging::And | Merging::Or)), Some(base), Some(own)) => {
                let mut methods = base.methods.clone();
                methods.add(&own.methods);
                let members = vec![Arc::clone(base), Arc::clone(own)];
                let kind = match merging {
                    Merging::And => RequireKind::All(members),
                    Merging::Or | Merging::Off => RequireKind::Any(members),
                };
                self.require = Some(Arc::new(Requirement { kind, negated: false, methods }));
            }
            _ => self.require.clone_from(&over.require),
        }
        if over.merging.is_some() || over.require.is_some() {
            self.merging = over.merging;
        }
        if over.hosts.is_some() {
            self.hosts.clone_from(&over.hosts);
        }
        self.tls.required |= over.tls.required;
        self.tls.client = over.tls.client.or(self.tls.client);
        self.tls.tests.extend(over.tls.tests.iter().cloned());
        self.tls.strict = over.tls.strict.or(self.tls.strict);
        self.tls.variables = over.tls.variables.or(self.tls.variables);
        self.tls.certificates = over.tls.certificates.or(self.tls.certificates);
        self.auth_type = over.auth_type.or(self.auth_type);
        if over.realm.is_some() {
            self.realm.clone_from(&over.realm);
        }
    }
}

impl Methods {
    /// Those that all of `limits` leave.
    pub(crate) fn within(limits: &[Limit]) -> Methods {
        Methods { any_of: (!limits.is_empty()).then(|| vec![Arc::from(limits)]) }
    }

    /// Adds other methods.
    pub(crate) fn add(&mut self, other: &Methods) {
        match (&mut self.any_of, &other.any_of) {
            (Some(own), Some(other)) => own.extend(other.iter().cloned()),
            (own, _) => *own = None,
        }
    }

    /// Whether `method` is one of them. `HEAD` is a `GET`.
    pub(crate) fn contain(&self, method: &[u8]) -> bool {
        let method = if method == b"HEAD" { b"GET" } else { method };
        let leaves =
            |limit: &Limit| limit.names.iter().any(|name| **name == *method) != limit.except;
        self.any_of.as_ref().is_none_or(|sets| sets.iter().any(|set| set.iter().all(leaves)))
    }
}

impl Network {
    /// Whether `address` is in it.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        match (address.to_canonical(), self.address) {
            (IpAddr::V4(address), IpAddr::V4(network)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits.min(32))).unwrap_or(0);
                address.to_bits() & mask == network.to_bits() & mask
            }
            (IpAddr::V6(address), IpAddr::V6(network)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits.min(128))).unwrap_or(0);
                address.to_bits() & mask == network.to_bits() & mask
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_limited_and_added() {
        let limit = |names: &[&str], except| Limit {
            names: names.iter().map(|name| name.as_bytes().into()).collect(),
            except,
        };
        let mut methods =
            Methods::within(&[limit(&["GET", "POST"], false), limit(&["POST"], true)]);
        let contained = |methods: &Methods| {
            ["GET", "HEAD", "POST", "PUT"].map(|method| methods.contain(method.as_bytes()))
        };
        assert_eq!(contained(&methods), [true, true, false, false]);
        methods.add(&Methods::within(&[limit(&["PUT"], false)]));
        assert_eq!(contained(&methods), [true, true, false, true]);
        methods.add(&Methods::default());
        assert_eq!(contained(&methods), [true; 4]);
    }

    #[test]
    fn networks_contain_addresses() {
        let network = |address: &str, bits| Network { address: address.parse().unwrap(), bits };
        let address = |text: &str| text.parse().unwrap();
        assert!(network("10.1.0.0", 16).contains(address("10.1.2.3")));
        assert!(network("10.1.0.0", 16).contains(address("::ffff:10.1.2.3")));
        assert!(!network("10.1.0.0", 16).contains(address("10.2.2.3")));
        assert!(network("2001:db8::", 32).contains(address("2001:db8:1::1")));
        assert!(network("0.0.0.0", 0).contains(address("192.0.2.1")));
    }
}

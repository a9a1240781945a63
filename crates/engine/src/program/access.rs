//! Who may have what is in a directory: `Require`, and `Order`/`Allow`/`Deny` of Apache 2.2.

use std::net::IpAddr;

/// The access rules of one section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// `Require`: any one that holds is enough; `None` when the section has none.
    pub(crate) require: Option<Vec<Require>>,
    /// `Order`, `Allow`, `Deny`.
    pub(crate) order: Option<Order>,
}

/// One `Require`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Require {
    /// `all granted`
    Granted,
    /// `all denied`
    Denied,
    /// `ip ADDRESS[/BITS]`
    Ip(IpAddr, u8),
    /// `local`
    Local,
    /// `method NAME…`
    Method(Vec<Vec<u8>>),
    /// `not …`
    Not(Box<Require>),
}

/// Access as Apache 2.2 had it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// `Order allow,deny`: denied unless allowed and not denied. Else `deny,allow`.
    pub(crate) allow_first: bool,
    pub(crate) allow: Vec<Require>,
    pub(crate) deny: Vec<Require>,
}

impl Access {
    /// Whether a client may pass.
    pub(crate) fn allows(&self, remote: IpAddr, local: IpAddr, method: &[u8]) -> bool {
        let holds = |rule: &Require| rule.holds(remote, local, method);
        let required = self.require.as_ref().is_none_or(|rules| {
            let refused = rules.iter().any(|rule| matches!(rule, Require::Not(not) if holds(not)));
            !refused && rules.iter().any(|rule| !matches!(rule, Require::Not(_)) && holds(rule))
        });
        let ordered = self.order.as_ref().is_none_or(|order| {
            let (allowed, denied) = (order.allow.iter().any(holds), order.deny.iter().any(holds));
            if order.allow_first { allowed && !denied } else { allowed || !denied }
        });
        required && ordered
    }

    /// Adds the rules of a more specific section: `Require` replaces, `Order` replaces.
    pub(crate) fn merge(&mut self, over: &Access) {
        if over.require.is_some() {
            self.require.clone_from(&over.require);
        }
        if over.order.is_some() {
            self.order.clone_from(&over.order);
        }
    }
}

impl Require {
    fn holds(&self, remote: IpAddr, local: IpAddr, method: &[u8]) -> bool {
        match self {
            Require::Granted => true,
            Require::Denied => false,
            Require::Ip(network, bits) => in_network(remote, *network, *bits),
            Require::Local => remote.is_loopback() || remote == local,
            Require::Method(methods) => methods.iter().any(|name| name == method),
            Require::Not(rule) => !rule.holds(remote, local, method),
        }
    }
}

fn in_network(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address.to_canonical(), network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

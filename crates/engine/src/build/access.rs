//! `Require`, `Order`, `Allow`, `Deny`.
//!
//! Source: httpd 2.4.71 `modules/aaa/mod_authz_core.c`, `mod_authz_host.c`, `mod_access_compat.c`.

use std::net::IpAddr;

use milepost_syntax::Words;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::program::{Order, Require};

impl Builder<'_> {
    pub(super) fn require(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let words: Vec<_> = Words::new(directive.args).map(|word| word.text.to_vec()).collect();
        let (negated, words) = match words.split_first() {
            Some((first, rest)) if first.eq_ignore_ascii_case(b"not") => (true, rest),
            _ => (false, words.as_slice()),
        };
        let rules = match words.split_first() {
            Some((kind, arguments)) => match kind.to_ascii_lowercase().as_slice() {
                b"all" => match arguments {
                    [word] if word.eq_ignore_ascii_case(b"granted") => Some(vec![Require::Granted]),
                    [word] if word.eq_ignore_ascii_case(b"denied") => Some(vec![Require::Denied]),
                    _ => None,
                },
                b"local" => Some(vec![Require::Local]),
                b"ip" => arguments.iter().map(|text| network(text)).collect(),
                b"method" => Some(vec![Require::Method(arguments.to_vec())]),
                _ => None,
            },
            None => None,
        };
        match rules {
            Some(rules) => {
                let rules = rules
                    .into_iter()
                    .map(|rule| if negated { Require::Not(Box::new(rule)) } else { rule });
                context.dir.config.access.require.get_or_insert_default().extend(rules);
            }
            None => {
                let finding = Finding::error(format!(
                    "`Require {}` is not understood",
                    String::from_utf8_lossy(directive.args)
                ))
                .hint("done are: all granted, all denied, ip ADDRESS[/BITS], local, method NAME");
                self.report(directive, finding);
            }
        }
    }

    pub(super) fn order(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let Some(words) = self.words(directive, 1, 1, "Order allow,deny") else { return };
        let allow_first = match words[0].text.to_ascii_lowercase().as_slice() {
            b"allow,deny" | b"mutual-failure" => true,
            b"deny,allow" => false,
            _ => {
                let finding = Finding::error(format!("unknown order {}", show(&words[0].text)))
                    .hint("write `allow,deny` or `deny,allow`, without a blank");
                return self.report_at(directive, words[0].at, words[0].len, finding);
            }
        };
        context.dir.config.access.order.get_or_insert_default().allow_first = allow_first;
    }

    pub(super) fn allow_or_deny(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let words: Vec<_> = Words::new(directive.args).map(|word| word.text.to_vec()).collect();
        let rules: Option<Vec<Require>> = match words.split_first() {
            Some((from, who)) if from.eq_ignore_ascii_case(b"from") && !who.is_empty() => who
                .iter()
                .map(|who| {
                    if who.eq_ignore_ascii_case(b"all") {
                        Some(Require::Granted)
                    } else {
                        network(who)
                    }
                })
                .collect(),
            _ => None,
        };
        let order: &mut Order = context.dir.config.access.order.get_or_insert_default();
        let allow = directive.name.eq_ignore_ascii_case(b"allow");
        match rules {
            Some(rules) if allow => order.allow.extend(rules),
            Some(rules) => order.deny.extend(rules),
            None => {
                let finding = Finding::error(format!("{} is not understood", show(directive.args)))
                    .hint("write `from all` or `from ADDRESS[/BITS]`");
                self.report(directive, finding);
            }
        }
    }
}

/// `address`, `address/bits`, `address/mask`, or the first numbers of an IPv4 address (`10.1`).
fn network(text: &[u8]) -> Option<Require> {
    let text = std::str::from_utf8(text).ok()?;
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    if let Ok(ip) = address.parse::<IpAddr>() {
        let most = if ip.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => match bits.parse::<u8>() {
                Ok(bits) => bits,
                Err(_) => u32::from(bits.parse::<std::net::Ipv4Addr>().ok()?).leading_ones() as u8,
            },
        };
        return (bits <= most).then_some(Require::Ip(ip, bits));
    }
    let parts: Vec<&str> = address.trim_end_matches('.').split('.').collect();
    if bits.is_some() || parts.len() > 3 {
        return None;
    }
    let mut octets = [0_u8; 4];
    for (octet, part) in octets.iter_mut().zip(&parts) {
        *octet = part.parse().ok()?;
    }
    Some(Require::Ip(IpAddr::from(octets), 8 * parts.len() as u8))
}

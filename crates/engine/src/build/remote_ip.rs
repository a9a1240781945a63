//! The directives of mod_remoteip.
//!
//! Names of proxies are not looked up: whom a name server points to would be believed.
//!
//! Source: httpd 2.4.71 `modules/metadata/mod_remoteip.c`, `proxies_set`, `proxylist_read`.

use milepost_syntax::Words;

use super::access::network;
use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::program::TrustedProxy;

impl Builder<'_> {
    /// Runs a directive whose arguments are right; false if it is none of these.
    pub(super) fn remote_ip(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &Context<'_>,
    ) -> bool {
        let words = directive.texts();
        let Some(first) = words.first() else { return false };
        let is_internal = lower.starts_with(b"remoteipinternal");
        let settings = &mut self.servers[context.server].server.remote_ip;
        match lower {
            b"remoteipheader" => settings.field = Some((**first).into()),
            b"remoteipproxiesheader" => settings.proxies_field = Some((**first).into()),
            b"remoteiptrustedproxy" | b"remoteipinternalproxy" => {
                for word in &words {
                    self.trust(directive, word, is_internal, context);
                }
            }
            b"remoteiptrustedproxylist" | b"remoteipinternalproxylist" => {
                self.read_proxies(directive, first, is_internal, context);
            }
            b"remoteipproxyprotocol" if first.eq_ignore_ascii_case(b"on") => {
                let message = "the PROXY protocol is not spoken here";
                let hint = "have the balancer speak HTTP and say the address in `X-Forwarded-For`";
                self.report(directive, Finding::not_served(message).hint(hint));
            }
            b"remoteipproxyprotocol" | b"remoteipproxyprotocolexceptions" => {}
            _ => return false,
        }
        true
    }

    /// The addresses in a file; `#` ends a line.
    fn read_proxies(
        &mut self,
        directive: &Directive<'_>,
        file: &[u8],
        is_internal: bool,
        context: &Context<'_>,
    ) {
        let text = match self.outside.read(&self.resolve(file)) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("{} cannot be read: {error}", show(file));
                return self.report(directive, Finding::error(message));
            }
        };
        for line in text.split(|&byte| byte == b'\n') {
            let words = Words::new(line).map(|word| word.text);
            for word in words.take_while(|word| !word.starts_with(b"#")) {
                self.trust(directive, &word, is_internal, context);
            }
        }
    }

    /// Believes one address or network.
    fn trust(
        &mut self,
        directive: &Directive<'_>,
        word: &[u8],
        is_internal: bool,
        context: &Context<'_>,
    ) {
        let networks = match word.eq_ignore_ascii_case(b"localhost") {
            true => [network(b"127.0.0.1"), network(b"::1")],
            false => [network(word), None],
        };
        if networks == [None, None] {
            let is_name = word.iter().any(u8::is_ascii_alphabetic) && !word.contains(&b'/');
            let finding = match is_name {
                true => {
                    Finding::warning(format!("{} is not looked up, and not believed", show(word)))
                        .hint("write its address")
                }
                false => Finding::error(format!("{} is no address", show(word)))
                    .hint("write an address, or a network as in `10.0.0.0/8`"),
            };
            self.report(directive, finding);
        }
        let settings = &mut self.servers[context.server].server.remote_ip;
        let known = settings.proxies.iter().flat_map(|proxies| proxies.iter().cloned());
        let new = networks.into_iter().flatten();
        let all = known.chain(new.map(|network| TrustedProxy { network, is_internal }));
        settings.proxies = Some(all.collect());
    }
}

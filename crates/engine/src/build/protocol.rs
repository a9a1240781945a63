//! `Protocols`, `ProtocolsHonorOrder` and the directives of mod_http2 that set a limit.
//!
//! Source: httpd 2.4.71 `server/core.c`, `set_protocols`; `modules/http2/h2_config.c`.

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::protocol::{Protocol, Protocols};

/// `H2MaxSessionStreams` where nothing is said.
const STREAMS_MAX: u32 = 100;

/// `H2WindowSize` where nothing is said, and the least that there can be: what a client may assume.
const WINDOW_BYTES: u32 = 65_535;

/// The largest window of HTTP/2.
const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

/// The protocols of one server while its directives are read.
#[derive(Debug, Clone, Default)]
pub(super) struct ProtocolDraft {
    order: Option<Vec<Protocol>>,
    own_order: Option<bool>,
    h2_direct: Option<bool>,
    h2_streams_max: Option<u32>,
    h2_window_bytes: Option<u32>,
}

/// Whether this is a directive about protocols; `lower` is in lower case.
pub(super) fn is_directive(lower: &[u8]) -> bool {
    matches!(
        lower,
        b"protocols"
            | b"protocolshonororder"
            | b"h2direct"
            | b"h2maxsessionstreams"
            | b"h2windowsize"
    )
}

impl Builder<'_> {
    /// Runs a directive that [`is_directive`].
    pub(super) fn protocol_directive(
        &mut self,
        lower: &[u8],
        directive: &Directive<'_>,
        context: &Context<'_>,
    ) {
        if !self.server_only(directive, context) {
            return;
        }
        let server = context.server;
        match lower {
            b"protocols" => self.protocols(directive, server),
            b"protocolshonororder" => {
                let on = self.lone_flag(directive);
                let draft = &mut self.servers[server].protocols;
                draft.own_order = on.or(draft.own_order);
            }
            b"h2direct" => {
                let on = self.lone_flag(directive);
                let draft = &mut self.servers[server].protocols;
                draft.h2_direct = on.or(draft.h2_direct);
            }
            b"h2maxsessionstreams" => {
                let number = self.one_number(directive);
                if number == Some(0) {
                    let finding = Finding::error("a connection without streams answers nothing")
                        .hint("`H2MaxSessionStreams 100`");
                    return self.report(directive, finding);
                }
                let draft = &mut self.servers[server].protocols;
                draft.h2_streams_max = number.or(draft.h2_streams_max);
            }
            _ => {
                let number = self.one_number(directive);
                if number.is_some_and(|bytes| !(1024..=WINDOW_BYTES_MAX).contains(&bytes)) {
                    let finding = Finding::error("a window has 1024 to 2147483647 bytes")
                        .hint("`H2WindowSize 65535`");
                    return self.report(directive, finding);
                }
                let draft = &mut self.servers[server].protocols;
                draft.h2_window_bytes = number.or(draft.h2_window_bytes);
            }
        }
    }

    /// `Protocols protocol…`; lines add up.
    fn protocols(&mut self, directive: &Directive<'_>, server: usize) {
        let words = directive.words();
        if words.is_empty() {
            let finding = Finding::error("`Protocols` needs a protocol").hint(HINT);
            return self.report(directive, finding);
        }
        for word in &words {
            let protocol = match word.text.to_ascii_lowercase().as_slice() {
                b"http/1.1" => Protocol::Http11,
                b"h2" => Protocol::H2,
                b"h2c" => Protocol::H2c,
                // As httpd does with what no module speaks.
                _ => {
                    let message = format!("the protocol {} is not spoken here", show(&word.text));
                    let finding = Finding::warning(message).hint(HINT);
                    self.report_at(directive, word.at, word.len, finding);
                    continue;
                }
            };
            let order = self.servers[server].protocols.order.get_or_insert_default();
            if !order.contains(&protocol) {
                order.push(protocol);
            }
        }
    }

    /// Merges the main server's protocols into those of each virtual host.
    pub(super) fn finish_protocols(&mut self) {
        let main = self.servers[0].protocols.clone();
        let finish = |own: &ProtocolDraft| Protocols {
            order: own
                .order
                .clone()
                .or_else(|| main.order.clone())
                .unwrap_or_else(|| vec![Protocol::Http11]),
            own_order: own.own_order.or(main.own_order).unwrap_or(true),
            h2_direct: own.h2_direct.or(main.h2_direct).unwrap_or(true),
            h2_streams_max: own.h2_streams_max.or(main.h2_streams_max).unwrap_or(STREAMS_MAX),
            h2_window_bytes: own.h2_window_bytes.or(main.h2_window_bytes).unwrap_or(WINDOW_BYTES),
        };
        self.settings.protocols =
            self.servers.iter().map(|server| finish(&server.protocols)).collect();
    }
}

/// What there is.
const HINT: &str = "there are h2, h2c and http/1.1";

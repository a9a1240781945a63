//! Persistence, timeouts and limits of requests, for the main server and for virtual hosts.
//!
//! Source: httpd 2.4.71 `server/core.c`, `set_keep_alive`, `set_timeout`, `set_limit_req_line`;
//! `server/config.c`, `ap_fixup_virtual_hosts`.

use std::time::Duration;

use super::{Builder, Directive};
use crate::settings::{OwnConnections, Settings};

impl Builder<'_> {
    /// Runs a directive about connections; `lower` is its name.
    pub(super) fn connection_directive(
        &mut self,
        lower: &[u8],
        directive: &Directive<'_>,
        server: usize,
    ) {
        match lower {
            b"keepalive" => {
                if let Some(on) = self.flag(directive) {
                    self.say(server, on, |all| &mut all.keep_alive, |own| &mut own.keep_alive);
                }
            }
            b"maxkeepaliverequests" => {
                let usage = "MaxKeepAliveRequests number";
                let Some(words) = self.words(directive, 1, 1, usage) else { return };
                // A number below 0 is no bound, like 0.
                let count = self.number(directive, &words[0]).filter(|&count| count > 0);
                self.say(
                    server,
                    count,
                    |all| &mut all.keep_alive_requests_max,
                    |own| &mut own.keep_alive_requests_max,
                );
            }
            b"keepalivetimeout" => {
                if let Some(time) = self.one_duration(directive) {
                    self.say(
                        server,
                        time,
                        |all| &mut all.keep_alive_timeout,
                        |own| &mut own.keep_alive_timeout,
                    );
                }
            }
            b"timeout" => {
                let Some(words) = self.words(directive, 1, 1, "Timeout seconds") else { return };
                if let Some(seconds) = self.number(directive, &words[0]) {
                    let time = Duration::from_secs(seconds.into());
                    self.say(server, time, |all| &mut all.timeout, |own| &mut own.timeout);
                }
            }
            _ => self.limit(lower, directive, server),
        }
    }

    fn limit(&mut self, lower: &[u8], directive: &Directive<'_>, server: usize) {
        let Some(number) = self.one_number(directive) else { return };
        let number = number as usize;
        match lower {
            b"limitrequestline" => self.say(
                server,
                number,
                |all| &mut all.request_line_bytes_max,
                |own| &mut own.request_line_bytes_max,
            ),
            b"limitrequestfields" => {
                self.say(server, number, |all| &mut all.fields_max, |own| &mut own.fields_max);
            }
            _ => self.say(
                server,
                number,
                |all| &mut all.field_bytes_max,
                |own| &mut own.field_bytes_max,
            ),
        }
    }

    /// Notes what a server says.
    fn say<T>(
        &mut self,
        server: usize,
        value: T,
        of_main: impl FnOnce(&mut Settings) -> &mut T,
        of_host: impl FnOnce(&mut OwnConnections) -> &mut Option<T>,
    ) {
        if server == 0 {
            *of_main(&mut self.settings) = value;
        } else {
            let own = self.settings.own_connections.entry(server).or_default();
            *of_host(own) = Some(value);
        }
    }
}

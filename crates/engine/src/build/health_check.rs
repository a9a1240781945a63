//! The parameters of mod_proxy_hcheck: read, and without effect.
//!
//! Source: httpd 2.4.71 `modules/proxy/mod_proxy_hcheck.c`, `set_worker_hc_param`.

use std::time::Duration;

use milepost_syntax::Word;

use super::proxy_worker::time;
use super::report::Finding;
use super::{Builder, Directive};
use crate::number::leading_number;

/// The shortest interval: how often mod_watchdog looks.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

const METHODS: [&str; 8] =
    ["none", "tcp", "options", "head", "get", "options11", "head11", "get11"];

/// In the place of a directive's name among those that are noted once.
const NOTED: &[u8] = b"hc";

impl Builder<'_> {
    /// Reads a parameter that begins with `hc`.
    pub(super) fn health_check(&self, key: &str, value: &str) -> Result<(), Finding> {
        let unknown = || Finding::error(format!("unknown parameter `{key}`"));
        let is_right = match key {
            "hcmethod" => METHODS.iter().any(|method| method.eq_ignore_ascii_case(value)),
            "hcinterval" => time(value, 1000).is_some_and(|interval| interval >= INTERVAL_MIN),
            "hcpasses" | "hcfails" => leading_number(value.as_bytes()) >= 0,
            "hcuri" | "hcexpr" | "hctemplate" => true,
            _ => return Err(unknown()),
        };
        match is_right {
            _ if !self.names.modules.has("mod_proxy_hcheck.c") => {
                Err(unknown().hint("it is one of mod_proxy_hcheck, which is not loaded"))
            }
            true => Ok(()),
            false => Err(Finding::error(format!("`{value}` is no value for `{key}`"))),
        }
    }

    /// Says once that they have no effect.
    pub(super) fn note_health_checks(&mut self, directive: &Directive<'_>, word: &Word<'_>) {
        if self.noted.iter().any(|noted| noted == NOTED) {
            return;
        }
        self.noted.push(NOTED.to_vec());
        let message = "no health checks are made: members are judged by their answers";
        let hint = "`retry` says after how long one that has failed is asked again";
        self.report_at(directive, word.at, word.len, Finding::warning(message).hint(hint));
    }
}

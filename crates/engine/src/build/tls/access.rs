//! `SSLRequireSSL`, `SSLRequire` and `SSLOptions`: what a section asks of the connection.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_config.c`, `ssl_cmd_SSLRequireSSL`, `ssl_cmd_SSLRequire`,
//! `ssl_cmd_SSLOptions`; `ssl_engine_kernel.c`, `ssl_hook_Access`.

use std::sync::Arc;

use milepost_syntax::Words;

use super::super::report::{Finding, show};
use super::super::{Builder, Context, Directive};
use crate::expr::{Condition, Dialect};

impl Builder<'_> {
    /// `SSLRequireSSL`
    pub(super) fn ssl_require_ssl(&mut self, context: &mut Context<'_>) {
        // httpd does not look at what follows; `SSLRequireSSL Off` requires TLS as well.
        context.dir.config.access.tls.required = true;
    }

    /// `SSLRequire expression`: the whole line.
    pub(super) fn ssl_require(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let text = directive.args.trim_ascii();
        let blanks = directive.args.len() - directive.args.trim_ascii_start().len();
        let quoted = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
        let skip = blanks + usize::from(quoted.is_some());
        let dialect = Dialect { tls: true, ..self.dialect() };
        match Condition::parse(quoted.unwrap_or(text), dialect) {
            Ok(condition) => context.dir.config.access.tls.tests.push(Arc::new(condition)),
            Err(error) => {
                let finding = Finding::error(error.to_string())
                    .hint("`Require expr` is the way to say this since Apache 2.4");
                self.report_at(directive, skip + error.at, error.len.max(1), finding);
            }
        }
    }

    /// `SSLOptions [+|-]option…`; an option without a sign takes the place of all others.
    pub(super) fn ssl_options(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        for word in Words::new(directive.args) {
            let text = word.text.to_ascii_lowercase();
            let (on, name) = match text.split_first() {
                Some((b'-', name)) => (false, name),
                Some((b'+', name)) => (true, name),
                _ => {
                    let tls = &mut context.dir.config.access.tls;
                    (tls.strict, tls.variables, tls.certificates) =
                        (Some(false), Some(false), Some(false));
                    (true, text.as_slice())
                }
            };
            let tls = &mut context.dir.config.access.tls;
            let option = match name {
                b"strictrequire" => &mut tls.strict,
                b"stdenvvars" => &mut tls.variables,
                b"exportcertdata" => &mut tls.certificates,
                _ => {
                    if let Some(finding) = not_done(name, on, &word.text) {
                        self.report_at(directive, word.at, word.len, finding);
                    }
                    continue;
                }
            };
            *option = Some(on);
        }
    }
}

/// What there is to say of an option without an effect.
fn not_done(name: &[u8], on: bool, text: &[u8]) -> Option<Finding> {
    Some(match name {
        // No handshake is repeated.
        b"optrenegotiate" => return None,
        b"fakebasicauth" | b"legacydnstringformat" if !on => return None,
        b"fakebasicauth" => Finding::warning(
            "nobody can log in here, not with a certificate either",
        )
        .hint(
            "`Require ssl-verify-client` or `Require expr` lets clients in by their certificates",
        ),
        b"legacydnstringformat" => {
            Finding::not_served("names are written as RFC 2253 says, `CN=a,O=b`, and not otherwise")
                .hint("take the option away, and compare with that form")
        }
        _ => Finding::error(format!("unknown option {}", show(text)))
            .hint("StdEnvVars, ExportCertData, StrictRequire, OptRenegotiate"),
    })
}

//! The directives of mod_ssl.
//!
//! What would leave something open that httpd closes is an error; what only makes a connection stronger
//! than was asked for is a warning.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_config.c`.

mod access;
mod backend;
mod command;
mod draft;
mod files;
mod finish;
mod section;
mod suites;

use draft::{Suites, add, placed, placed_name};

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::program::Scope;
use crate::tls::{TlsRevocation, TlsVerify, TlsVersions};

pub(super) use draft::TlsDraft;
pub(super) use finish::SniPolicy;
pub(super) use section::TlsSection;

/// The directives that are done here, in lower case.
const NAMES: &[&[u8]] = &[
    b"sslcacertificatefile",
    b"sslcacertificatepath",
    b"sslcadnrequestfile",
    b"sslcadnrequestpath",
    b"sslcarevocationcheck",
    b"sslcarevocationfile",
    b"sslcarevocationpath",
    b"sslcertificatechainfile",
    b"sslcertificatefile",
    b"sslcertificatekeyfile",
    b"sslciphersuite",
    b"sslcompression",
    b"sslengine",
    b"sslfips",
    b"sslhonorcipherorder",
    b"sslinsecurerenegotiation",
    b"sslocspenable",
    b"sslopensslconfcmd",
    b"ssloptions",
    b"sslprotocol",
    b"sslrequire",
    b"sslrequiressl",
    b"sslsessioncache",
    b"sslsessioncachetimeout",
    b"sslsessionticketkeyfile",
    b"sslsessiontickets",
    b"sslstrictsnivhostcheck",
    b"sslusername",
    b"sslusestapling",
    b"sslverifyclient",
    b"sslverifydepth",
    b"sslvhostsnipolicy",
];

/// How many files of one kind a server may name; more than the kinds of keys there are is a mistake.
const CERTIFICATES_MAX: usize = 16;

/// Whether this is a directive of mod_ssl that does something here; `lower` is in lower case.
pub(super) fn is_directive(lower: &[u8]) -> bool {
    NAMES.contains(&lower) || backend::is_directive(lower)
}

impl Builder<'_> {
    /// Runs a directive that [`is_directive`].
    pub(super) fn tls_directive(
        &mut self,
        lower: &[u8],
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        match lower {
            b"sslrequiressl" => return self.ssl_require_ssl(context),
            b"sslrequire" => return self.ssl_require(directive, context),
            b"ssloptions" => return self.ssl_options(directive, context),
            b"sslusername" => {
                if self.words(directive, 1, 1, "SSLUserName variable").is_none() {
                    return;
                }
                let finding = Finding::warning("no user is taken from a certificate here")
                    .hint("`Require expr \"%{SSL_CLIENT_S_DN_CN} == 'name'\"` lets one client in");
                return self.report(directive, finding);
            }
            b"sslverifydepth" | b"sslciphersuite" if !context.scope.is_server() => {
                let most = if lower == b"sslciphersuite" { 2 } else { 1 };
                let name = String::from_utf8_lossy(directive.name).into_owned();
                if self.words(directive, 1, most, &format!("{name} value")).is_none()
                    || !self.has_right_values(directive, lower)
                {
                    return;
                }
                return self.handshake_is_over(directive, "has no effect in a section");
            }
            b"sslverifyclient" if !context.scope.is_server() => {
                let Some(verify) = self.ssl_verify_word(directive) else { return };
                let required = verify == TlsVerify::Require;
                context.dir.config.access.tls.client = Some(required);
                let effect = if required {
                    "refuses here who has not shown a certificate when the connection began"
                } else {
                    "asks nobody for a certificate in a section"
                };
                return self.handshake_is_over(directive, effect);
            }
            _ => {}
        }
        if context.scope == Scope::Proxy && backend::is_directive(lower) {
            return self.section_tls_directive(lower, directive, context);
        }
        if !self.server_only(directive, context) {
            return;
        }
        let server = context.server;
        match lower {
            b"sslengine" => self.ssl_engine(directive, server),
            b"sslcertificatefile" => {
                self.ssl_file(directive, server, |draft, file| draft.certificates.push(file));
            }
            b"sslcertificatekeyfile" => {
                self.ssl_file(directive, server, |draft, file| draft.keys.push(file));
            }
            b"sslcertificatechainfile" => {
                self.ssl_file(directive, server, |draft, file| draft.chain = Some(file));
            }
            b"sslsessionticketkeyfile" => {
                self.ssl_file(directive, server, |draft, file| draft.ticket_key = Some(file));
            }
            b"sslcacertificatefile" => {
                self.ssl_file(directive, server, |draft, file| {
                    add(&mut draft.authorities, file.map(|file| vec![file]));
                });
            }
            b"sslcadnrequestfile" => {
                self.ssl_file(directive, server, |draft, file| {
                    add(&mut draft.shown, file.map(|file| vec![file]));
                });
            }
            b"sslcarevocationfile" => {
                self.ssl_file(directive, server, |draft, file| {
                    add(&mut draft.revoked, file.map(|file| vec![file]));
                });
            }
            b"sslcacertificatepath" => {
                if let Some(files) = self.ssl_path(directive, false) {
                    add(&mut self.servers[server].tls.authorities, files);
                }
            }
            b"sslcadnrequestpath" => {
                if let Some(files) = self.ssl_path(directive, false) {
                    add(&mut self.servers[server].tls.shown, files);
                }
            }
            b"sslcarevocationpath" => {
                if let Some(files) = self.ssl_path(directive, true) {
                    add(&mut self.servers[server].tls.revoked, files);
                }
            }
            b"sslcarevocationcheck" => {
                if let Some(revocation) = self.ssl_revocation(directive) {
                    let revocation = placed_name(directive, revocation);
                    self.servers[server].tls.revocation = Some(revocation);
                }
            }
            b"sslprotocol" => {
                let versions = self.ssl_versions(directive);
                let draft = &mut self.servers[server].tls;
                draft.versions = versions.or(draft.versions);
            }
            b"sslciphersuite" => {
                let suites = self.ssl_cipher_suite(directive);
                self.servers[server].tls.suites.take(suites);
            }
            b"sslhonorcipherorder" => {
                let on = self.flag(directive);
                let draft = &mut self.servers[server].tls;
                draft.own_order = on.or(draft.own_order);
            }
            b"sslopensslconfcmd" => self.ssl_command(directive, server),
            b"sslverifyclient" => {
                let verify = self.ssl_verify_word(directive);
                let draft = &mut self.servers[server].tls;
                draft.verify = verify.or(draft.verify);
            }
            b"sslverifydepth" => {
                if let Some(depth) = self.one_number(directive) {
                    self.servers[server].tls.depth = Some(depth);
                }
            }
            b"sslsessiontickets" => {
                let on = self.flag(directive);
                let draft = &mut self.servers[server].tls;
                draft.tickets = on.or(draft.tickets);
            }
            b"sslusestapling" => {
                if let Some(on) = self.flag(directive) {
                    self.servers[server].tls.stapling = Some(placed_name(directive, on));
                }
            }
            b"sslstrictsnivhostcheck" => {
                let on = self.flag(directive);
                let draft = &mut self.servers[server].tls;
                draft.strict = on.or(draft.strict);
            }
            b"sslsessioncache" => self.ssl_session_cache(directive, context),
            b"sslsessioncachetimeout" => {
                // A virtual host may say it, and sessions are kept for all of them.
                if let Some(seconds) = self.one_number(directive)
                    && server == 0
                {
                    self.settings.tls.session_timeout =
                        std::time::Duration::from_secs(seconds.into());
                }
            }
            b"sslvhostsnipolicy" => self.ssl_sni_policy(directive, context),
            // What can be switched off is off.
            b"sslcompression" => {
                if self.flag(directive) == Some(true) {
                    let finding = Finding::error("there is no compression in TLS any more")
                        .hint("`SSLCompression off`");
                    self.report(directive, finding);
                }
            }
            b"sslinsecurerenegotiation" => {
                if self.flag(directive) == Some(true) {
                    let message = format!("{} stays off: it is not safe", show(directive.name));
                    self.report(directive, Finding::warning(message));
                }
            }
            b"sslfips" => {
                if self.flag(directive) == Some(true) {
                    let finding = Finding::not_served("there is no certified cryptography in here")
                        .hint("`SSLFIPS off`");
                    self.report(directive, finding);
                }
            }
            lower if backend::is_directive(lower) => {
                self.backend_tls_directive(lower, directive, server);
            }
            _ => self.ssl_responder(directive),
        }
    }

    /// `SSLOCSPEnable on|leaf|off`
    fn ssl_responder(&mut self, directive: &Directive<'_>) {
        let usage = "SSLOCSPEnable off";
        let Some(words) = self.words(directive, 1, usize::MAX, usage) else { return };
        if !self.has_right_values(directive, b"sslocspenable") {
            return;
        }
        if !words[0].text.eq_ignore_ascii_case(b"off") {
            let finding = Finding::not_served(
                "no responder is asked about the certificates of clients",
            )
            .hint("`SSLCARevocationFile` with `SSLCARevocationCheck leaf` looks them up in lists");
            self.report(directive, finding);
        }
    }

    /// `SSLEngine on|off|optional`
    fn ssl_engine(&mut self, directive: &Directive<'_>, server: usize) {
        let Some(words) = self.words(directive, 1, 1, "SSLEngine on|off") else { return };
        let on = match words[0].text.to_ascii_lowercase().as_slice() {
            b"on" => true,
            b"off" => false,
            b"optional" => {
                let finding = Finding::not_served(
                    "`SSLEngine optional` is not done: no client upgrades to TLS",
                )
                .hint("write `on`, and plain HTTP for another port");
                self.report_at(directive, words[0].at, words[0].len, finding);
                false
            }
            _ => {
                let finding = Finding::error("`SSLEngine` is `on` or `off`");
                return self.report_at(directive, words[0].at, words[0].len, finding);
            }
        };
        self.servers[server].tls.engine = Some(placed_name(directive, on));
    }

    /// `SSLProtocol [+|-]protocol…`, and `SSLProxyProtocol`.
    fn ssl_versions(&mut self, directive: &Directive<'_>) -> Option<TlsVersions> {
        let words = directive.words();
        if words.is_empty() {
            let message = format!("{} names no version, and changes nothing", show(directive.name));
            let finding = Finding::warning(message).hint("write `-all +TLSv1.2 +TLSv1.3`");
            self.report(directive, finding);
            return None;
        }
        let mut versions = TlsVersions { v12: false, v13: false };
        let mut asks_for_broken = false;
        for word in &words {
            let text = String::from_utf8_lossy(&word.text).to_ascii_lowercase();
            let (sign, name) = match text.as_bytes().first() {
                Some(sign @ (b'+' | b'-')) => (Some(*sign), &text[1..]),
                _ => (None, &text[..]),
            };
            let named = match name {
                "all" => TlsVersions { v12: true, v13: true },
                "tlsv1.2" => TlsVersions { v12: true, v13: false },
                "tlsv1.3" => TlsVersions { v12: false, v13: true },
                "sslv2" if sign == Some(b'-') => continue,
                "sslv3" | "tlsv1" | "tlsv1.1" => {
                    if sign != Some(b'-') {
                        asks_for_broken = true;
                        let message = format!("{} is not offered: it is broken", show(&word.text));
                        let finding = Finding::warning(message)
                            .hint("there are TLSv1.2 and TLSv1.3, which is what `all` means here");
                        self.report_at(directive, word.at, word.len, finding);
                    }
                    TlsVersions { v12: false, v13: false }
                }
                _ => {
                    let message = format!("{} is no version of TLS", show(&word.text));
                    let finding = Finding::error(message)
                        .hint("`all`, `TLSv1.2` or `TLSv1.3`, with `+` or `-`");
                    self.report_at(directive, word.at, word.len, finding);
                    return None;
                }
            };
            match sign {
                Some(b'-') => {
                    versions.v12 &= !named.v12;
                    versions.v13 &= !named.v13;
                }
                Some(_) => {
                    versions.v12 |= named.v12;
                    versions.v13 |= named.v13;
                }
                None => {
                    // As in httpd: a version without a sign is not added but takes the place of all.
                    if versions.v12 || versions.v13 {
                        let message =
                            format!("{} overrides what stands before it", show(&word.text));
                        let finding =
                            Finding::warning(message).hint("write `+` before each version");
                        self.report_at(directive, word.at, word.len, finding);
                    }
                    versions = named;
                }
            }
        }
        if !versions.v12 && !versions.v13 && asks_for_broken {
            let finding = Finding::warning("TLSv1.2 and TLSv1.3 are offered instead")
                .hint("write `-all +TLSv1.2 +TLSv1.3`");
            self.report(directive, finding);
            return Some(TlsVersions { v12: true, v13: true });
        }
        if !versions.v12 && !versions.v13 {
            let finding = Finding::not_served("this leaves no version of TLS")
                .hint("write `-all +TLSv1.2 +TLSv1.3`");
            self.report(directive, finding);
            return None;
        }
        Some(versions)
    }

    /// Something about the handshake, in a section.
    fn handshake_is_over(&mut self, directive: &Directive<'_>, effect: &str) {
        let message = format!(
            "{} {effect}: the handshake is over when the path is known",
            show(directive.name)
        );
        let hint = "write `SSLVerifyClient optional` for the virtual host: then clients are asked";
        self.report(directive, Finding::warning(message).hint(hint));
    }

    /// `SSLCipherSuite [SSL|TLSv1.3] list`, and `SSLProxyCipherSuite`.
    fn ssl_cipher_suite(&mut self, directive: &Directive<'_>) -> Suites {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        let usage = format!("{name} [TLSv1.3] suite:suite…");
        let Some(words) = self.words(directive, 1, 2, &usage) else { return Suites::default() };
        let (for_13, word) = match &words[..] {
            [version, list] => match version.text.to_ascii_lowercase().as_slice() {
                b"ssl" => (false, list),
                b"tlsv1.3" => (true, list),
                _ => {
                    let finding =
                        Finding::error(format!("{} is no kind of suites", show(&version.text)))
                            .hint("`SSL` for those up to TLS 1.2, `TLSv1.3` for those of TLS 1.3");
                    self.report_at(directive, version.at, version.len, finding);
                    return Suites::default();
                }
            },
            list => (false, &list[0]),
        };
        let text = String::from_utf8_lossy(&word.text);
        let chosen = if for_13 { suites::parse_13(&text) } else { suites::parse(&text) };
        let all = if for_13 { suites::all_13() } else { suites::all() };
        let hint = format!("there are {}", all.join(", "));
        for unknown in &chosen.unknown {
            let message = format!("{} names no cipher suite", show(unknown.as_bytes()));
            self.report_at(directive, word.at, word.len, Finding::warning(message));
        }
        if chosen.suites.is_empty() {
            let finding = Finding::not_served("this leaves no cipher suite").hint(hint);
            self.report_at(directive, word.at, word.len, finding);
            return Suites::default();
        }
        if !chosen.missing.is_empty() {
            let message = format!("not offered: {}", chosen.missing.join(", "));
            self.report_at(directive, word.at, word.len, Finding::warning(message).hint(hint));
        }
        let suites = Some(placed(directive, word, chosen.suites));
        if for_13 { Suites { old: None, new: suites } } else { Suites { old: suites, new: None } }
    }

    /// `SSLVerifyClient none|optional|require|optional_no_ca`, and `SSLProxyVerify`.
    fn ssl_verify_word(&mut self, directive: &Directive<'_>) -> Option<TlsVerify> {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        let usage = format!("{name} none|optional|require|optional_no_ca");
        let words = self.words(directive, 1, 1, &usage)?;
        let verify = match words[0].text.to_ascii_lowercase().as_slice() {
            b"none" | b"off" => TlsVerify::None,
            b"optional" => TlsVerify::Optional,
            b"require" | b"on" => TlsVerify::Require,
            b"optional_no_ca" => TlsVerify::OptionalNoCa,
            _ => {
                let message =
                    format!("`{name}` is `none`, `optional`, `require` or `optional_no_ca`");
                self.report_at(directive, words[0].at, words[0].len, Finding::error(message));
                return None;
            }
        };
        Some(verify)
    }

    /// `SSLCARevocationCheck chain|leaf|none [no_crl_for_cert_ok]`, and `SSLProxyCARevocationCheck`.
    fn ssl_revocation(&mut self, directive: &Directive<'_>) -> Option<TlsRevocation> {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        let usage = format!("{name} chain|leaf|none [no_crl_for_cert_ok]");
        let words = self.words(directive, 1, 2, &usage)?;
        let strict = match words.get(1) {
            None => true,
            Some(word) if word.text.eq_ignore_ascii_case(b"no_crl_for_cert_ok") => false,
            Some(word) => {
                let finding = Finding::error(format!("unknown flag {}", show(&word.text)))
                    .hint(format!("write `{usage}`"));
                self.report_at(directive, word.at, word.len, finding);
                return None;
            }
        };
        match words[0].text.to_ascii_lowercase().as_slice() {
            b"none" => Some(TlsRevocation::None),
            b"leaf" => Some(TlsRevocation::Leaf { strict }),
            b"chain" => Some(TlsRevocation::Chain { strict }),
            _ => {
                let finding = Finding::error(format!("`{name}` is `chain`, `leaf` or `none`"));
                self.report_at(directive, words[0].at, words[0].len, finding);
                None
            }
        }
    }

    /// `SSLSessionCache none|nonenotnull|type[:path[(bytes)]]`
    fn ssl_session_cache(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.main_only(directive, context) {
            return;
        }
        let usage = "SSLSessionCache shmcb:path(bytes)";
        let Some(words) = self.words(directive, 1, 1, usage) else { return };
        let text = String::from_utf8_lossy(&words[0].text).into_owned();
        let (kind, rest) = text.split_once(':').unwrap_or((&text, ""));
        self.settings.tls.session_cache_bytes = match kind.to_ascii_lowercase().as_str() {
            "none" | "nonenotnull" => None,
            "shmcb" | "shm" => Some(cache_bytes(rest).unwrap_or(CACHE_BYTES)),
            "dbm" | "dc" | "memcache" | "redis" => {
                let message =
                    format!("sessions are kept in memory, not in {}", show(kind.as_bytes()));
                let finding = Finding::warning(message)
                    .hint("several servers share sessions through one `SSLSessionTicketKeyFile`");
                self.report_at(directive, words[0].at, words[0].len, finding);
                Some(CACHE_BYTES)
            }
            _ => {
                let message = format!("{} is no session cache", show(kind.as_bytes()));
                let finding = Finding::error(message)
                    .hint("`none`, or `shmcb:path(bytes)`: the path is not used");
                return self.report_at(directive, words[0].at, words[0].len, finding);
            }
        };
    }

    /// `SSLVHostSNIPolicy strict|secure|authonly|insecure`
    fn ssl_sni_policy(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.main_only(directive, context) {
            return;
        }
        let usage = "SSLVHostSNIPolicy strict|secure|authonly|insecure";
        let Some(words) = self.words(directive, 1, 1, usage) else { return };
        self.sni_policy = match words[0].text.to_ascii_lowercase().as_slice() {
            b"strict" => SniPolicy::Strict,
            b"secure" => SniPolicy::Secure,
            b"authonly" => SniPolicy::AuthOnly,
            b"insecure" => SniPolicy::Insecure,
            _ => {
                let finding = Finding::error(format!("unknown policy {}", show(&words[0].text)))
                    .hint(format!("write `{usage}`"));
                return self.report_at(directive, words[0].at, words[0].len, finding);
            }
        };
    }
}

/// The sessions of a cache whose size nobody has said: httpd's 512 KiB.
const CACHE_BYTES: usize = 512 * 1024;

/// The number in `path(bytes)`.
fn cache_bytes(text: &str) -> Option<usize> {
    let (_, rest) = text.rsplit_once('(')?;
    rest.strip_suffix(')')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_cache_stands_in_parentheses() {
        assert_eq!(cache_bytes("/run/cache(512000)"), Some(512_000));
        assert_eq!(cache_bytes("/run/cache"), None);
        assert_eq!(cache_bytes("/run/cache(x)"), None);
    }
}

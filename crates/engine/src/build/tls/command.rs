//! `SSLOpenSSLConfCmd`: what OpenSSL would be told.
//!
//! The groups for keys are taken; what chooses between keys of other kinds has no effect. A command that
//! would leave out a version, a suite or a client is not served.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_config.c`, `ssl_cmd_SSLOpenSSLConfCmd`; OpenSSL's
//! `SSL_CONF_cmd(3)`.

use milepost_syntax::Word;

use super::super::report::{Finding, show};
use super::super::{Builder, Directive};
use crate::outside::FileKind;

/// What a command says here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The groups to agree on a key in.
    Groups,
    /// Nothing that matters: there are no such keys, or OpenSSL's choice is as good.
    Nothing,
    /// As `Nothing`, with a file that must be there.
    NothingOfFile,
    /// Something that is not done.
    NotDone,
    /// As `NotDone`, with a file or a directory that must be there.
    NotDoneOfFile,
    NotDoneOfDirectory,
}

/// Every command that takes a value, in lower case.
const COMMANDS: &[(&str, Meaning)] = &[
    ("certificate", Meaning::NotDoneOfFile),
    ("chaincafile", Meaning::NotDoneOfFile),
    ("chaincapath", Meaning::NotDoneOfDirectory),
    ("cipherstring", Meaning::NotDone),
    ("ciphersuites", Meaning::NotDone),
    ("clientcafile", Meaning::NotDoneOfFile),
    ("clientcapath", Meaning::NotDoneOfDirectory),
    ("clientsignaturealgorithms", Meaning::NotDone),
    ("curves", Meaning::Groups),
    ("dhparameters", Meaning::NothingOfFile),
    ("ecdhparameters", Meaning::Nothing),
    ("groups", Meaning::Groups),
    ("maxprotocol", Meaning::NotDone),
    ("minprotocol", Meaning::NotDone),
    ("numtickets", Meaning::Nothing),
    ("options", Meaning::NotDone),
    ("privatekey", Meaning::NotDoneOfFile),
    ("protocol", Meaning::NotDone),
    ("recordpadding", Meaning::Nothing),
    ("requestcafile", Meaning::NotDoneOfFile),
    ("requestcapath", Meaning::NotDoneOfDirectory),
    ("rxcertificatecompression", Meaning::Nothing),
    ("serverinfofile", Meaning::NotDoneOfFile),
    ("signaturealgorithms", Meaning::NotDone),
    ("txcertificatecompression", Meaning::Nothing),
    ("verifycafile", Meaning::NotDoneOfFile),
    ("verifycapath", Meaning::NotDoneOfDirectory),
    ("verifymode", Meaning::NotDone),
];

impl Builder<'_> {
    /// `SSLOpenSSLConfCmd command value`
    pub(super) fn ssl_command(&mut self, directive: &Directive<'_>, server: usize) {
        let usage = "SSLOpenSSLConfCmd Groups X25519:P-256";
        let Some(words) = self.words(directive, 2, 2, usage) else { return };
        let [command, value] = &words[..] else { return };
        let lower = String::from_utf8_lossy(&command.text).to_ascii_lowercase();
        let Some((_, meaning)) = COMMANDS.iter().find(|(known, _)| *known == lower) else {
            let finding = Finding::error(format!("OpenSSL has no command {}", show(&command.text)));
            return self.report_at(directive, command.at, command.len, finding);
        };
        if !self.names_what_is_there(*meaning, value) {
            let finding = Finding::error(format!("{} does not exist", show(&value.text)));
            return self.report_at(directive, value.at, value.len, finding);
        }
        let finding = match meaning {
            Meaning::Groups => return self.ssl_groups(directive, server, value),
            Meaning::Nothing | Meaning::NothingOfFile => {
                Finding::note(format!("the command {} has no effect here", show(&command.text)))
            }
            _ => Finding::not_served(format!("the command {} is not done", show(&command.text)))
                .hint("there is `Groups`; `SSLProtocol` and `SSLCipherSuite` say the rest"),
        };
        self.report_at(directive, command.at, command.len, finding);
    }

    /// Whether what a command names is there, if it names anything.
    fn names_what_is_there(&self, meaning: Meaning, value: &Word<'_>) -> bool {
        let kind = || self.outside.kind(&self.resolve(&value.text));
        match meaning {
            Meaning::NothingOfFile | Meaning::NotDoneOfFile => {
                matches!(kind(), FileKind::File(1..))
            }
            Meaning::NotDoneOfDirectory => kind() == FileKind::Directory,
            Meaning::Groups | Meaning::Nothing | Meaning::NotDone => true,
        }
    }

    fn ssl_groups(&mut self, directive: &Directive<'_>, server: usize, value: &Word<'_>) {
        const GROUPS: &[(&str, &str)] = &[
            ("x25519", "X25519"),
            ("p-256", "P-256"),
            ("prime256v1", "P-256"),
            ("secp256r1", "P-256"),
            ("p-384", "P-384"),
            ("secp384r1", "P-384"),
        ];
        let text = String::from_utf8_lossy(&value.text).to_ascii_lowercase();
        let mut groups: Vec<&'static str> = Vec::new();
        for name in text.split(':') {
            match GROUPS.iter().find(|(known, _)| *known == name) {
                Some((_, group)) if !groups.contains(group) => groups.push(group),
                Some(_) => {}
                None => {
                    let message = format!("the group {} is not offered", show(name.as_bytes()));
                    let finding =
                        Finding::warning(message).hint("there are X25519, P-256 and P-384");
                    self.report_at(directive, value.at, value.len, finding);
                }
            }
        }
        if groups.is_empty() {
            let finding = Finding::error("this leaves no group to agree on a key in");
            return self.report_at(directive, value.at, value.len, finding);
        }
        self.servers[server].tls.groups = Some(groups);
    }
}

//! Files and directories that the directives of mod_ssl name.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_config.c`, `ssl_cmd_check_file`, `ssl_cmd_check_dir`;
//! OpenSSL 3.0 `X509_LOOKUP_hash_dir(3)` for the names of files in a directory.

use std::path::PathBuf;

use super::super::report::{Finding, show};
use super::super::{Builder, Directive, path_to_bytes};
use super::CERTIFICATES_MAX;
use super::draft::{Placed, TlsDraft, placed};
use crate::outside::FileKind;

impl Builder<'_> {
    /// Takes the one file that a directive names, if it is there.
    pub(super) fn ssl_file(
        &mut self,
        directive: &Directive<'_>,
        server: usize,
        take: impl FnOnce(&mut TlsDraft, Placed<PathBuf>),
    ) {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        let Some(words) = self.words(directive, 1, 1, &format!("{name} file")) else { return };
        let word = &words[0];
        let hint = if word.text.starts_with(b"pkcs11:") {
            "keys in hardware are not done: name a file"
        } else {
            "write the path of a PEM file, absolute or from `ServerRoot`"
        };
        let path = self.resolve(&word.text);
        let is_there = matches!(self.outside.kind(&path), FileKind::File(1..));
        if !is_there {
            let message = format!("the file {} does not exist or is empty", show(&word.text));
            self.report_at(directive, word.at, word.len, Finding::error(message).hint(hint));
            self.servers[server].tls.has_bad_file = true;
            return;
        }
        if self.servers[server].tls.certificates.len() >= CERTIFICATES_MAX {
            let finding =
                Finding::error("too many certificates").hint("one for each kind of key is enough");
            return self.report(directive, finding);
        }
        let file = placed(directive, word, path);
        take(&mut self.servers[server].tls, file);
    }

    /// The files of a directory that OpenSSL would find by their hashed names: those of certificates, or
    /// those of revocation lists.
    pub(super) fn ssl_path(
        &mut self,
        directive: &Directive<'_>,
        lists: bool,
    ) -> Option<Placed<Vec<PathBuf>>> {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        let words = self.words(directive, 1, 1, &format!("{name} directory"))?;
        let word = &words[0];
        let directory = self.resolve(&word.text);
        let mut names = match self.outside.list(&directory) {
            Ok(names) => names,
            Err(error) => {
                let message = format!("cannot read the directory {}: {error}", show(&word.text));
                self.report_at(directive, word.at, word.len, Finding::error(message));
                return None;
            }
        };
        names.retain(|name| is_hashed(path_to_bytes(name), lists));
        names.sort();
        if names.is_empty() {
            let message = format!("{} holds no file with a hashed name", show(&word.text));
            let hint = "`openssl rehash DIRECTORY` makes them";
            self.report_at(directive, word.at, word.len, Finding::warning(message).hint(hint));
        }
        let files = names.into_iter().map(|name| directory.join(name)).collect();
        Some(placed(directive, word, files))
    }
}

/// Whether a name is `0123abcd.0`, or `0123abcd.r0` for a list.
fn is_hashed(name: &[u8], list: bool) -> bool {
    const HASH_DIGITS: usize = 8;
    let Some((hash, rest)) = name.split_at_checked(HASH_DIGITS) else { return false };
    let number = match (rest, list) {
        ([b'.', b'r', number @ ..], true) => number,
        ([b'.', number @ ..], false) => number,
        _ => return false,
    };
    hash.iter().all(u8::is_ascii_hexdigit)
        && !number.is_empty()
        && number.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_names_are_those_of_openssl() {
        for (name, list, expected) in [
            ("0123abcd.0", false, true),
            ("0123abcd.r0", false, false),
            ("0123abcd.r0", true, true),
            ("0123abcd.12", false, true),
            ("ca.pem", false, false),
            ("0123abcd.", false, false),
        ] {
            assert_eq!(is_hashed(name.as_bytes(), list), expected, "{name}");
        }
    }
}

//! Reads a list of ciphers as OpenSSL writes it.
//!
//! The names are OpenSSL's, because those are what servers are configured with; the standard's names
//! are taken too. Of the grammar: names apart by `:`, `,` or blanks; words for groups, joined with `+`;
//! `!` and `-` to leave out. What nobody should use any more is not there, and who asks for it is told
//! what comes nearest.
//!
//! Source: openssl-ciphers(1), "Cipher list format".

use rustls::{CipherSuite, SupportedCipherSuite};

/// Ciphers in order of preference, at least one.
#[derive(Debug, Clone)]
pub struct CipherList {
    suites: Vec<SupportedCipherSuite>,
    unknown: Vec<String>,
}

/// Nothing of a list is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no cipher is called {name}{}; there are {}", nearest_text(.name), names().join(", "))]
pub struct CipherError {
    /// What was asked for.
    pub name: String,
}

/// A suite, what OpenSSL calls it, and the words that it is meant by.
struct Known {
    suite: CipherSuite,
    name: &'static str,
    words: &'static [&'static str],
}

/// The words that every suite of TLS 1.2 here is meant by: all have forward secrecy and
/// authenticated encryption.
const COMMON: [&str; 9] =
    ["ALL", "DEFAULT", "HIGH", "TLSv1.2", "ECDHE", "EECDH", "kECDHE", "kEECDH", "AEAD"];

const KNOWN: [Known; 9] = [
    Known {
        suite: CipherSuite::TLS13_AES_256_GCM_SHA384,
        name: "TLS_AES_256_GCM_SHA384",
        words: &["TLSv1.3"],
    },
    Known {
        suite: CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        name: "TLS_CHACHA20_POLY1305_SHA256",
        words: &["TLSv1.3"],
    },
    Known {
        suite: CipherSuite::TLS13_AES_128_GCM_SHA256,
        name: "TLS_AES_128_GCM_SHA256",
        words: &["TLSv1.3"],
    },
    Known {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        name: "ECDHE-ECDSA-AES256-GCM-SHA384",
        words: &["ECDSA", "aECDSA", "AES", "AES256", "AESGCM", "SHA384"],
    },
    Known {
        suite: CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        name: "ECDHE-RSA-AES256-GCM-SHA384",
        words: &["RSA", "aRSA", "AES", "AES256", "AESGCM", "SHA384"],
    },
    Known {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        name: "ECDHE-ECDSA-CHACHA20-POLY1305",
        words: &["ECDSA", "aECDSA", "CHACHA20", "SHA256"],
    },
    Known {
        suite: CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        name: "ECDHE-RSA-CHACHA20-POLY1305",
        words: &["RSA", "aRSA", "CHACHA20", "SHA256"],
    },
    Known {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        name: "ECDHE-ECDSA-AES128-GCM-SHA256",
        words: &["ECDSA", "aECDSA", "AES", "AES128", "AESGCM", "SHA256"],
    },
    Known {
        suite: CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        name: "ECDHE-RSA-AES128-GCM-SHA256",
        words: &["RSA", "aRSA", "AES", "AES128", "AESGCM", "SHA256"],
    },
];

impl Known {
    /// Whether a word of the list means it.
    fn is(&self, word: &str) -> bool {
        let is_named = self.name.eq_ignore_ascii_case(word)
            || self.suite.as_str().is_some_and(|it| it.eq_ignore_ascii_case(word));
        let has = |word: &str| {
            self.words.contains(&word)
                || (!self.name.starts_with("TLS_") && COMMON.contains(&word))
                // The list is of both versions here, and these words leave neither out.
                || matches!(word, "ALL" | "DEFAULT" | "HIGH")
        };
        is_named || word.split('+').all(has)
    }
}

impl CipherList {
    /// Reads the list. What OpenSSL knows and rustls does not is left out, as OpenSSL leaves out what
    /// it was built without.
    ///
    /// # Errors
    ///
    /// When nothing is left.
    pub fn parse(text: &str) -> Result<Self, CipherError> {
        let mut chosen: Vec<&Known> = Vec::new();
        let mut banned: Vec<&str> = Vec::new();
        let mut unknown = Vec::new();
        for item in text.split([':', ',', ' ']).filter(|item| !item.is_empty()) {
            match item.split_at(1) {
                // Order by strength is that of the table; levels of security are all met.
                ("@", _) => {}
                ("!", word) => {
                    chosen.retain(|known| !known.is(word));
                    banned.push(word);
                }
                ("-", word) => chosen.retain(|known| !known.is(word)),
                // Moves what is there to the end.
                ("+", word) => chosen.sort_by_key(|known| known.is(word)),
                _ => {
                    let mut meant = KNOWN.iter().filter(|known| known.is(item)).peekable();
                    if meant.peek().is_none() {
                        unknown.push(item.to_owned());
                    }
                    for known in meant {
                        let is_there = chosen.iter().any(|other| other.suite == known.suite);
                        if !is_there && !banned.iter().any(|word| known.is(word)) {
                            chosen.push(known);
                        }
                    }
                }
            }
        }
        let supported = super::suites();
        let find = |known: &&Known| supported.iter().find(|it| it.suite() == known.suite).copied();
        let suites: Vec<_> = chosen.iter().filter_map(find).collect();
        if suites.is_empty() {
            let name = unknown.into_iter().next().unwrap_or_else(|| format!("{text:?}"));
            return Err(CipherError { name });
        }
        Ok(Self { suites, unknown })
    }

    /// Names in the list that are not there.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    pub(super) fn suites(&self) -> &[SupportedCipherSuite] {
        &self.suites
    }
}

/// What OpenSSL calls a suite; the standard's name where it has none.
pub(crate) fn name(suite: CipherSuite) -> String {
    match KNOWN.iter().find(|known| known.suite == suite) {
        Some(known) => known.name.to_owned(),
        None => suite.as_str().map_or_else(|| format!("{suite:?}"), str::to_owned),
    }
}

/// All names.
fn names() -> Vec<&'static str> {
    KNOWN.iter().map(|known| known.name).collect()
}

/// What comes nearest to a cipher that is not there: the same kind of certificate, and a key as long.
fn nearest(name: &str) -> Option<&'static str> {
    const OLD: [&str; 12] = [
        "RC4", "DES", "MD5", "SHA", "AES", "CAMELLIA", "SEED", "IDEA", "ARIA", "NULL", "PSK",
        "CHACHA20",
    ];
    let upper = name.to_ascii_uppercase();
    if !OLD.iter().any(|word| upper.contains(word)) {
        return None;
    }
    let is = |word| upper.contains(word);
    Some(match (is("ECDSA"), is("CHACHA20"), is("256-") || is("AES256") || is("256_")) {
        (true, true, _) => "ECDHE-ECDSA-CHACHA20-POLY1305",
        (false, true, _) => "ECDHE-RSA-CHACHA20-POLY1305",
        (true, false, true) => "ECDHE-ECDSA-AES256-GCM-SHA384",
        (true, false, false) => "ECDHE-ECDSA-AES128-GCM-SHA256",
        (false, false, true) => "ECDHE-RSA-AES256-GCM-SHA384",
        (false, false, false) => "ECDHE-RSA-AES128-GCM-SHA256",
    })
}

fn nearest_text(name: &str) -> String {
    nearest(name).map_or(String::new(), |nearest| format!(" here, the nearest is {nearest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_openssl_reads_them() {
        // The order is that of `openssl ciphers` where OpenSSL has an order for these.
        check("ECDHE-RSA-AES128-GCM-SHA256", &["ECDHE-RSA-AES128-GCM-SHA256"]);
        check("ecdhe-rsa-aes128-gcm-sha256", &["ECDHE-RSA-AES128-GCM-SHA256"]);
        check("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", &["ECDHE-RSA-AES128-GCM-SHA256"]);
        check("TLS_AES_128_GCM_SHA256", &["TLS_AES_128_GCM_SHA256"]);
        check("ECDHE+aRSA+AESGCM", &["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"]);
        check(
            "ECDHE+AESGCM:!aECDSA:RC4-MD5",
            &["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"],
        );
        check("!aRSA:!aECDSA:ALL:-TLSv1.3:TLSv1.3+AES:AES128", &[]);
        check(
            "RSA:+AES256:-CHACHA20",
            &["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"],
        );
        check("DEFAULT:!AES:!CHACHA20:!TLSv1.3 ECDHE-RSA-CHACHA20-POLY1305", &[]);
        assert_eq!(CipherList::parse("HIGH:!aNULL:@STRENGTH").unwrap().suites.len(), 9);
        assert_eq!(CipherList::parse("CHACHA20:RC4-MD5").unwrap().unknown(), ["RC4-MD5"]);
    }

    #[test]
    fn a_cipher_that_is_not_there_names_those_that_are() {
        let error = CipherList::parse("RC4-MD5").unwrap_err().to_string();
        assert!(
            error.starts_with(
                "no cipher is called RC4-MD5 here, the nearest is ECDHE-RSA-AES128-GCM-SHA256; there are \
                 TLS_AES_256_GCM_SHA384, "
            ),
            "{error}"
        );
        assert!(error.ends_with("ECDHE-ECDSA-AES128-GCM-SHA256, ECDHE-RSA-AES128-GCM-SHA256"));
        for (name, near) in [
            ("AES256-SHA", Some("ECDHE-RSA-AES256-GCM-SHA384")),
            ("DES-CBC3-SHA", Some("ECDHE-RSA-AES128-GCM-SHA256")),
            ("ECDHE-ECDSA-AES256-SHA384", Some("ECDHE-ECDSA-AES256-GCM-SHA384")),
            ("nonsense", None),
        ] {
            assert_eq!(nearest(name), near, "{name}");
        }
    }

    #[test]
    fn every_suite_has_its_name() {
        for suite in super::super::suites() {
            assert_ne!(name(suite.suite()), suite.suite().as_str().unwrap().replace("13", "?"));
            assert!(names().contains(&&*name(suite.suite())));
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = CipherList::parse(text).map_or(Vec::new(), |list| list.suites);
        let found: Vec<_> = found.iter().map(|suite| name(suite.suite())).collect();
        assert_eq!(found, expected, "{text}");
    }
}

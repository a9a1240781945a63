//! Reads `SSLCipherSuite`: OpenSSL's language of cipher lists, over the suites that there are here.
//!
//! Everything older than what is listed in [`SUITES`] matches nothing: a list that names it besides others
//! is served with the others, as OpenSSL serves a list that names what it was built without.
//!
//! Source: OpenSSL 3.0 `doc/man1/openssl-ciphers.pod.in`; `ssl/ssl_ciph.c`, `ssl_cipher_process_rulestr`.

/// A cipher suite, and what the words of a list can say about it.
struct Suite {
    name: &'static str,
    /// The words that match it, in lower case.
    words: &'static [&'static str],
    /// The strength in bits, for `@STRENGTH`.
    bits: u16,
}

/// Words that match all suites of TLS 1.2 that there are here.
const COMMON: &[&str] = &[
    "all",
    "default",
    "complementofall",
    "high",
    "tlsv1.2",
    "ecdhe",
    "eecdh",
    "kecdhe",
    "keecdh",
    "ecdh",
    "aead",
    "fips",
];

/// The suites of TLS 1.2, in OpenSSL's order.
const SUITES: &[Suite] = &[
    Suite {
        name: "ECDHE-ECDSA-AES256-GCM-SHA384",
        words: &["ecdsa", "aecdsa", "aes", "aes256", "aesgcm", "suiteb192"],
        bits: 256,
    },
    Suite {
        name: "ECDHE-RSA-AES256-GCM-SHA384",
        words: &["arsa", "aes", "aes256", "aesgcm"],
        bits: 256,
    },
    Suite {
        name: "ECDHE-ECDSA-CHACHA20-POLY1305",
        words: &["ecdsa", "aecdsa", "chacha20"],
        bits: 256,
    },
    Suite { name: "ECDHE-RSA-CHACHA20-POLY1305", words: &["arsa", "chacha20"], bits: 256 },
    Suite {
        name: "ECDHE-ECDSA-AES128-GCM-SHA256",
        words: &["ecdsa", "aecdsa", "aes", "aes128", "aesgcm", "suiteb128"],
        bits: 128,
    },
    Suite {
        name: "ECDHE-RSA-AES128-GCM-SHA256",
        words: &["arsa", "aes", "aes128", "aesgcm"],
        bits: 128,
    },
];

/// The suites of TLS 1.3, in OpenSSL's order.
const SUITES_13: &[&str] =
    &["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"];

/// Words that OpenSSL knows and that match nothing here.
const EMPTY: &[&str] = &[
    "complementofdefault",
    "medium",
    "low",
    "exp",
    "export",
    "export40",
    "export56",
    "enull",
    "null",
    "anull",
    "adh",
    "aecdh",
    "rsa",
    "krsa",
    "dh",
    "dhe",
    "edh",
    "kdhe",
    "kedh",
    "kdh",
    "kdhr",
    "kdhd",
    "adss",
    "dss",
    "adh",
    "psk",
    "kpsk",
    "apsk",
    "kecdhepsk",
    "kdhepsk",
    "krsapsk",
    "srp",
    "ksrp",
    "asrp",
    "gost",
    "kgost",
    "agost",
    "agost01",
    "gost89mac",
    "aesccm",
    "aesccm8",
    "aria",
    "aria128",
    "aria256",
    "ariagcm",
    "camellia",
    "camellia128",
    "camellia256",
    "cbc",
    "des",
    "3des",
    "rc2",
    "rc4",
    "idea",
    "seed",
    "md5",
    "sha",
    "sha1",
    "sha256",
    "sha384",
    "sslv2",
    "sslv3",
    "tlsv1",
    "tlsv1.0",
    "tlsv1.1",
    "kecdhr",
    "kecdhe",
    "akrb5",
    "kkrb5",
    "krb5",
    "kfza",
    "afza",
    "efza",
    "fza",
];

/// What came of a list.
pub(super) struct Chosen {
    /// The suites, the preferred first.
    pub(super) suites: Vec<&'static str>,
    /// Names of suites that there are not, as written.
    pub(super) missing: Vec<String>,
    /// Words that nobody knows.
    pub(super) unknown: Vec<String>,
}

/// All suites of TLS 1.2.
pub(super) fn all() -> Vec<&'static str> {
    SUITES.iter().map(|suite| suite.name).collect()
}

/// All suites of TLS 1.3.
pub(super) fn all_13() -> Vec<&'static str> {
    SUITES_13.to_vec()
}

/// Reads a list for TLS 1.3: names and nothing else.
pub(super) fn parse_13(text: &str) -> Chosen {
    let mut chosen = Chosen { suites: Vec::new(), missing: Vec::new(), unknown: Vec::new() };
    for name in text.split(':').filter(|name| !name.is_empty()) {
        match SUITES_13.iter().find(|known| **known == name) {
            Some(known) if !chosen.suites.contains(known) => chosen.suites.push(known),
            Some(_) => {}
            None if name.starts_with("TLS_") => chosen.missing.push(name.to_owned()),
            None => chosen.unknown.push(name.to_owned()),
        }
    }
    chosen
}

/// Reads a list for TLS 1.2 and what was before it.
pub(super) fn parse(text: &str) -> Chosen {
    let mut active: Vec<usize> = Vec::new();
    let mut killed = [false; SUITES.len()];
    let mut chosen = Chosen { suites: Vec::new(), missing: Vec::new(), unknown: Vec::new() };
    let separator = |letter: char| matches!(letter, ':' | ',' | ';' | ' ');
    for item in text.split(separator).filter(|item| !item.is_empty()) {
        if let Some(command) = item.strip_prefix('@') {
            match command.to_ascii_uppercase().as_str() {
                // Stable, so that suites of one strength keep their order.
                "STRENGTH" => active.sort_by_key(|&suite| std::cmp::Reverse(SUITES[suite].bits)),
                command if command.starts_with("SECLEVEL=") => {}
                _ => chosen.unknown.push(item.to_owned()),
            }
            continue;
        }
        let (action, words) = match item.as_bytes()[0] {
            action @ (b'!' | b'-' | b'+') => (Some(action), &item[1..]),
            _ => (None, item),
        };
        let matching = match find(words) {
            Found::Suites(matching) => matching,
            Found::Missing => {
                // Whoever takes away what there is not is content.
                if action.is_none() {
                    chosen.missing.push(words.to_owned());
                }
                continue;
            }
            Found::Unknown => {
                chosen.unknown.push(words.to_owned());
                continue;
            }
        };
        match action {
            Some(b'!') => {
                matching.iter().for_each(|&suite| killed[suite] = true);
                active.retain(|suite| !matching.contains(suite));
            }
            Some(b'-') => active.retain(|suite| !matching.contains(suite)),
            // To the end, in the order that they have.
            Some(_) => active.sort_by_key(|suite| matching.contains(suite)),
            None => {
                for suite in matching {
                    if !killed[suite] && !active.contains(&suite) {
                        active.push(suite);
                    }
                }
            }
        }
    }
    chosen.suites = active.into_iter().map(|suite| SUITES[suite].name).collect();
    chosen
}

enum Found {
    Suites(Vec<usize>),
    /// The name of a suite that there is not.
    Missing,
    Unknown,
}

/// The suites that a word names, or several with `+` between them.
fn find(words: &str) -> Found {
    if let Some(suite) = SUITES.iter().position(|suite| suite.name == words) {
        return Found::Suites(vec![suite]);
    }
    let lower = words.to_ascii_lowercase();
    let mut matching: Vec<usize> = (0..SUITES.len()).collect();
    for word in lower.split('+') {
        if COMMON.contains(&word) {
            // `COMPLEMENTOFALL` is what encrypts nothing, of which there is none.
            matching.retain(|_| word != "complementofall");
            continue;
        }
        let has = |suite: &usize| SUITES[*suite].words.contains(&word);
        if (0..SUITES.len()).any(|suite| has(&suite)) {
            matching.retain(has);
        } else if EMPTY.contains(&word) {
            matching.clear();
        } else if is_name(&lower) {
            return Found::Missing;
        } else {
            return Found::Unknown;
        }
    }
    Found::Suites(matching)
}

/// Whether this looks like the name of a suite, of OpenSSL's (`AES128-SHA`) or of the RFCs' kind.
fn is_name(lower: &str) -> bool {
    let parts =
        ["aes", "3des", "des-", "rc4", "camellia", "chacha", "aria", "seed", "null", "idea"];
    (lower.contains('-') || lower.starts_with("tls_"))
        && parts.iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short names: certificate, cipher.
    #[track_caller]
    fn check(list: &str, expected: &str) {
        let short = |name: &&str| {
            let name = name.strip_prefix("ECDHE-").unwrap_or(name);
            let kind = if name.starts_with("ECDSA") { "E" } else { "R" };
            let cipher = match name {
                _ if name.contains("AES256") => "256",
                _ if name.contains("AES128") => "128",
                _ => "cha",
            };
            format!("{kind}{cipher}")
        };
        let suites: Vec<String> = parse(list).suites.iter().map(short).collect();
        assert_eq!(suites.join(" "), expected, "{list}");
    }

    #[test]
    fn lists_are_read_as_openssl_reads_them() {
        let all = "E256 R256 Echa Rcha E128 R128";
        check("ALL", all);
        check("HIGH:!aNULL:!MD5", all);
        check("HIGH:MEDIUM:!SSLv3:!kRSA", all);
        check("ECDHE+AESGCM", "E256 R256 E128 R128");
        check("EECDH+AESGCM:EDH+AESGCM", "E256 R256 E128 R128");
        check("ECDHE+CHACHA20:ECDHE+AES128", "Echa Rcha E128 R128");
        check("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256", "R128 E128");
        check("ALL:+CHACHA20", "E256 R256 E128 R128 Echa Rcha");
        check("ALL:-AES:AES128", "Echa Rcha E128 R128");
        check("ALL:!AES:AES128", "Echa Rcha");
        check("AES128:AES256:@STRENGTH", "E256 R256 E128 R128");
        check("aECDSA", "E256 Echa E128");
        check("ALL:@SECLEVEL=2", all);
        check("RC4-SHA:AES128-SHA:HIGH", all);
        check("RSA", "");
        check("", "");
    }

    #[test]
    fn what_there_is_not_is_named() {
        let chosen = parse("AES128-SHA:FOO:!DES-CBC3-SHA:!BAR:HIGH:@BAZ");
        assert_eq!(chosen.missing, ["AES128-SHA"]);
        assert_eq!(chosen.unknown, ["FOO", "BAR", "@BAZ"]);
        let chosen = parse_13("TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256:X");
        assert_eq!(chosen.suites, ["TLS_AES_128_GCM_SHA256"]);
        assert_eq!(chosen.missing, ["TLS_AES_128_CCM_SHA256"]);
        assert_eq!(chosen.unknown, ["X"]);
    }
}

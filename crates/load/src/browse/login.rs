//! Answers a 401 with credentials: basic and digest.
//!
//! What a server offers is taken in this order: digest with SHA-256, digest with MD5, basic. A digest
//! counts its requests; when the server says that its nonce is stale, the next is made with the new one.
//!
//! Source: RFC 9110 section 11.6, RFC 7616 (3.4 for the response), RFC 7617; RFC 2069 for servers that
//! know no `qop`.

use super::{Browsing, Login};
use crate::base64;
use crate::head_fields::fields;
use crate::sha256::Sha256;
use crate::target::Target;

/// How a visitor is known to an authority.
#[derive(Debug)]
pub(super) struct Session {
    authority: String,
    /// Which login of the plan it is.
    login: usize,
    scheme: Scheme,
}

#[derive(Debug)]
enum Scheme {
    Basic,
    Digest(Digest),
}

/// What a server wants a digest to be made of.
#[derive(Debug, PartialEq, Eq)]
struct Digest {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Algorithm,
    /// Whether the server named the algorithm, so that it is named to it.
    is_named: bool,
    /// Whether requests are counted (`qop=auth`).
    counts: bool,
    count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Algorithm {
    Md5,
    Md5Session,
    Sha256,
    Sha256Session,
}

/// One way to log in that a server offers.
#[derive(Debug, Default)]
struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Session {
    /// Makes one of what the head of a 401 asks for, if the plan has a login for it.
    pub(super) fn open(browsing: &Browsing, target: &Target, head: &[u8]) -> Option<Self> {
        let offers = challenges(head);
        let found = browsing.logins.iter().enumerate().find_map(|(number, login)| {
            let is_for = |offer: &&Challenge| {
                login.realm.as_deref().is_none_or(|realm| offer.get("realm") == Some(realm))
            };
            let offers = || offers.iter().filter(is_for);
            let digest = offers().filter_map(Digest::new).max_by_key(|digest| digest.algorithm);
            let scheme = match digest {
                Some(digest) => Scheme::Digest(digest),
                None => {
                    offers().find(|offer| offer.scheme == "basic")?;
                    Scheme::Basic
                }
            };
            Some((number, scheme))
        });
        found.map(|(login, scheme)| Self { authority: target.authority.clone(), login, scheme })
    }

    pub(super) fn is_of(&self, target: &Target) -> bool {
        self.authority == target.authority
    }

    /// Whether the head of a 401 says that only the nonce was too old; then the new one is taken.
    pub(super) fn renew(&mut self, head: &[u8]) -> bool {
        let Scheme::Digest(digest) = &mut self.scheme else { return false };
        let offers = challenges(head);
        let is_stale = |offer: &&Challenge| {
            offer.get("stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true"))
        };
        let mut fresh = offers.iter().filter(is_stale).filter_map(Digest::new);
        match fresh.find(|fresh| fresh.algorithm == digest.algorithm) {
            Some(fresh) if fresh.nonce != digest.nonce => {
                *digest = fresh;
                true
            }
            _ => false,
        }
    }

    /// Value of the Authorization field for the next request.
    pub(super) fn credentials(&mut self, logins: &[Login], target: &Target) -> Option<String> {
        let login = logins.get(self.login)?;
        Some(match &mut self.scheme {
            Scheme::Basic => {
                let text = format!("{}:{}", login.user, login.password);
                format!("Basic {}", base64::encode(text.as_bytes()))
            }
            Scheme::Digest(digest) => {
                digest.count = digest.count.wrapping_add(1);
                // Nothing is kept secret by it: it keeps servers from choosing the whole text.
                let seed = super::digest(digest.nonce.as_bytes());
                let client_nonce = format!("{:016x}", fastrand::Rng::with_seed(seed).u64(..));
                digest.answer(login, target, &client_nonce)
            }
        })
    }
}

impl Digest {
    /// `None` for what is no digest, or one that cannot be made.
    fn new(offer: &Challenge) -> Option<Self> {
        if offer.scheme != "digest" {
            return None;
        }
        let algorithm = match offer.get("algorithm") {
            None => Algorithm::Md5,
            Some(name) => Algorithm::named(name)?,
        };
        let counts = match offer.get("qop") {
            None => false,
            Some(list) => {
                list.split(',').any(|it| it.trim().eq_ignore_ascii_case("auth")).then_some(true)?
            }
        };
        Some(Self {
            realm: offer.get("realm")?.to_owned(),
            nonce: offer.get("nonce")?.to_owned(),
            opaque: offer.get("opaque").map(str::to_owned),
            algorithm,
            is_named: offer.get("algorithm").is_some(),
            counts,
            count: 0,
        })
    }

    fn answer(&self, login: &Login, target: &Target, client_nonce: &str) -> String {
        let Self { realm, nonce, algorithm, count, .. } = self;
        let (hash, uri) = (|text: &str| algorithm.hash(text), &target.request_target);
        let mut secret = hash(&format!("{}:{realm}:{}", login.user, login.password));
        if matches!(algorithm, Algorithm::Md5Session | Algorithm::Sha256Session) {
            secret = hash(&format!("{secret}:{nonce}:{client_nonce}"));
        }
        let asked = hash(&format!("{}:{uri}", target.method));
        let response = hash(&match self.counts {
            true => format!("{secret}:{nonce}:{count:08x}:{client_nonce}:auth:{asked}"),
            false => format!("{secret}:{nonce}:{asked}"),
        });
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut answer = format!(
            "Digest username=\"{}\", realm=\"{}\", nonce=\"{}\", uri=\"{uri}\", response=\"{response}\"",
            quoted(&login.user),
            quoted(realm),
            quoted(nonce)
        );
        if self.is_named {
            answer += &format!(", algorithm={}", algorithm.name());
        }
        if self.counts {
            answer += &format!(", qop=auth, nc={count:08x}, cnonce=\"{client_nonce}\"");
        }
        if let Some(opaque) = &self.opaque {
            answer += &format!(", opaque=\"{}\"", quoted(opaque));
        }
        answer
    }
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::Md5, Self::Md5Session, Self::Sha256, Self::Sha256Session];

    fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Md5Session => "MD5-sess",
            Self::Sha256 => "SHA-256",
            Self::Sha256Session => "SHA-256-sess",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(name))
    }

    fn hash(self, text: &str) -> String {
        match self {
            Self::Md5 | Self::Md5Session => format!("{:x}", md5::compute(text)),
            Self::Sha256 | Self::Sha256Session => Sha256::of(text.as_bytes()).to_string(),
        }
    }
}

impl Challenge {
    fn get(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        parameters.find(|(found, _)| found == name).map(|(_, value)| &**value)
    }
}

/// What the WWW-Authenticate fields of a head offer, names in lower case.
fn challenges(head: &[u8]) -> Vec<Challenge> {
    let mut found: Vec<Challenge> = Vec::new();
    for (_, value) in
        fields(head).filter(|(name, _)| name.eq_ignore_ascii_case(b"WWW-Authenticate"))
    {
        for item in items(&String::from_utf8_lossy(value)) {
            let name_end = item.find('=').unwrap_or(item.len());
            // A blank in front of the equals sign: a scheme with its first parameter.
            let (scheme, parameter) = match item[..name_end].trim_end().split_once([' ', '\t']) {
                Some((scheme, _)) => (Some(scheme), item[scheme.len()..].trim_start()),
                None if name_end == item.len() => (Some(item), ""),
                None => (None, item),
            };
            if let Some(scheme) = scheme {
                found.push(Challenge {
                    scheme: scheme.to_ascii_lowercase(),
                    parameters: Vec::new(),
                });
            }
            if let (Some(challenge), Some((name, value))) =
                (found.last_mut(), parameter.split_once('='))
            {
                let name = name.trim().to_ascii_lowercase();
                challenge.parameters.push((name, unquoted(value.trim())));
            }
        }
    }
    found
}

/// The parts of a list, apart by commas that stand in no quotes.
fn items(text: &str) -> Vec<&str> {
    let (mut items, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items.into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// The text of a quoted string; anything else as it stands.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.to_owned();
    };
    let (mut out, mut escaped) = (String::new(), false);
    for character in inner.chars() {
        escaped = character == '\\' && !escaped;
        if !escaped {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    /// Source: RFC 7616 section 3.9.1.
    #[test]
    fn digests_are_those_of_the_standard() {
        let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let head = format!(
                "HTTP/1.1 401 ?\r\nWWW-Authenticate: Digest realm=\"http-auth@example.org\", \
                 qop=\"auth, auth-int\", algorithm={algorithm}, nonce=\"{nonce}\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"\r\n\r\n"
            );
            let mut digest = Digest::new(&challenges(head.as_bytes())[0]).unwrap();
            digest.count = 1;
            let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
            let answer = digest.answer(&login(), &target(), cnonce);
            assert!(answer.contains(&format!("response=\"{response}\", algorithm=")), "{answer}");
            assert!(answer.contains(", qop=auth, nc=00000001, cnonce="), "{answer}");
        }
    }

    #[test]
    fn the_strongest_that_is_offered_is_taken() {
        let basic = "Basic realm=\"a, b\"";
        let md5 = "Digest realm=x, nonce=\"n\", qop=auth";
        let sha256 = "digest Realm=\"x\", Nonce=\"n\", QOP=\"auth\", Algorithm=SHA-256";
        for (offers, expected) in [
            (vec![basic], "Basic "),
            (vec![md5, basic], "Digest "),
            (vec![basic, md5, sha256], "algorithm=SHA-256"),
            (vec!["Digest realm=x, nonce=n, qop=auth-int", basic], "Basic "),
            (vec!["Digest realm=x, nonce=n, algorithm=MD6", basic], "Basic "),
            (vec!["Negotiate", basic], "Basic "),
        ] {
            let apart: String =
                offers.iter().map(|it| format!("WWW-Authenticate: {it}\r\n")).collect();
            let together = format!("WWW-Authenticate: {}\r\n", offers.join(", "));
            for lines in [apart, together] {
                let head = format!("HTTP/1.1 401 ?\r\n{lines}\r\n");
                let browsing = Browsing { logins: vec![login()], ..Browsing::default() };
                let mut session = Session::open(&browsing, &target(), head.as_bytes()).unwrap();
                let credentials = session.credentials(&browsing.logins, &target()).unwrap();
                assert!(credentials.contains(expected), "{offers:?}: {credentials}");
            }
        }
    }

    #[test]
    fn requests_are_counted_until_the_nonce_is_stale() {
        let head = |more: &str| {
            format!("HTTP/1.1 401 ?\r\nWWW-Authenticate: Digest realm=x, qop=auth, {more}\r\n\r\n")
        };
        let browsing = Browsing { logins: vec![login()], ..Browsing::default() };
        let mut session =
            Session::open(&browsing, &target(), head("nonce=first").as_bytes()).unwrap();
        let mut next = |renewed: Option<&str>| {
            let is_renewed = renewed.is_none_or(|more| session.renew(head(more).as_bytes()));
            assert!(is_renewed, "{renewed:?}");
            session.credentials(&browsing.logins, &target()).unwrap()
        };
        assert!(next(None).contains("nonce=\"first\"") && next(None).contains("nc=00000002"));
        let renewed = next(Some("nonce=second, stale=TRUE"));
        assert!(renewed.contains("nonce=\"second\"") && renewed.contains("nc=00000001"));
        assert!(!session.renew(head("nonce=third").as_bytes()), "the password is wrong");
        assert!(!session.renew(head("nonce=second, stale=true").as_bytes()), "it is not new");
    }

    fn login() -> Login {
        Login { user: "Mufasa".into(), password: "Circle of Life".into(), realm: None }
    }

    fn target() -> Target {
        Target::new(SocketAddr::from(([127, 0, 0, 1], 80)), "h", "/dir/index.html")
    }
}

//! Session tickets: the state of a session, encrypted, for the client to keep.
//!
//! Without `SSLSessionTicketKeyFile` the keys are random and change every hour, the one before being good
//! for as long again; nobody who gets hold of the process later can read connections of before. With the
//! file, several servers can resume each other's sessions, and it is for whoever writes the file to change
//! it. Either way a ticket says when it was made, and is good for `SSLSessionCacheTimeout`.
//!
//! Source: RFC 5077 section 4; httpd 2.4.71 `modules/ssl/ssl_engine_init.c`, `ssl_init_ticket_key`, for the
//! file of 48 bytes. What is made of these bytes is ours, so Apache cannot read the tickets.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;

/// The length of `SSLSessionTicketKeyFile`: a name and two keys.
pub(super) const TICKET_KEY_BYTES: usize = 48;

/// How often keys change that nobody has set.
const ROTATION: Duration = Duration::from_secs(60 * 60);

/// The longest lifetime that may be promised (RFC 8446 section 4.6.1).
const LIFETIME_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

const NAME_BYTES: usize = 16;
const TIME_BYTES: usize = 8;

/// Makes tickets and reads them.
pub(super) struct Tickets {
    random: SystemRandom,
    lifetime: Duration,
    /// `None`: the key is that of a file and stays.
    rotation: Option<Duration>,
    keys: Mutex<Keys>,
}

struct Keys {
    current: Key,
    previous: Option<Key>,
    since: Instant,
}

struct Key {
    name: [u8; NAME_BYTES],
    key: LessSafeKey,
}

impl Tickets {
    /// Makes the keys; `None` if there is no randomness. Tickets for one `audience` are no good for
    /// another, even with one secret.
    pub(super) fn new(
        secret: Option<&[u8; TICKET_KEY_BYTES]>,
        audience: u64,
        lifetime: Duration,
    ) -> Option<Tickets> {
        let random = SystemRandom::new();
        let current = match secret {
            Some(secret) => Key::derive(secret, audience)?,
            None => Key::random(&random)?,
        };
        let lifetime = lifetime.clamp(Duration::from_secs(1), LIFETIME_MAX);
        Some(Tickets {
            random,
            lifetime,
            rotation: secret.is_none().then(|| ROTATION.max(lifetime)),
            keys: Mutex::new(Keys { current, previous: None, since: Instant::now() }),
        })
    }

    fn seal(&self, plain: &[u8], now: Instant, seconds: u64) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if self
            .rotation
            .is_some_and(|rotation| now.saturating_duration_since(keys.since) >= rotation)
            && let Some(fresh) = Key::random(&self.random)
        {
            keys.previous = Some(std::mem::replace(&mut keys.current, fresh));
            keys.since = now;
        }
        let Key { name, key } = &keys.current;
        let mut ticket = Vec::with_capacity(
            NAME_BYTES + NONCE_LEN + TIME_BYTES + plain.len() + AES_256_GCM.tag_len(),
        );
        ticket.extend_from_slice(name);
        ticket.extend_from_slice(&nonce);
        let start = ticket.len();
        ticket.extend_from_slice(&seconds.to_be_bytes());
        ticket.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag =
            key.seal_in_place_separate_tag(nonce, Aad::from(name), &mut ticket[start..]).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn open(&self, ticket: &[u8], seconds: u64) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = [Some(&keys.current), keys.previous.as_ref()].into_iter().flatten();
        let key = known.find(|key| key.name == *name)?;
        let mut bytes = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = key.key.open_in_place(nonce, Aad::from(name), &mut bytes).ok()?;
        let (made, state) = plain.split_first_chunk::<TIME_BYTES>()?;
        let age = seconds.saturating_sub(u64::from_be_bytes(*made));
        (age < self.lifetime.as_secs().max(1)).then(|| state.to_vec())
    }
}

impl Key {
    fn random(random: &SystemRandom) -> Option<Key> {
        let mut name = [0; NAME_BYTES];
        let mut bytes = [0; 32];
        random.fill(&mut name).ok()?;
        random.fill(&mut bytes).ok()?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).ok()?;
        Some(Key { name, key: LessSafeKey::new(key) })
    }

    fn derive(secret: &[u8; TICKET_KEY_BYTES], audience: u64) -> Option<Key> {
        let (name, secret) = secret.split_first_chunk::<NAME_BYTES>()?;
        let extracted = Salt::new(HKDF_SHA256, b"milepost session tickets").extract(secret);
        let audience = audience.to_be_bytes();
        let info = [&name[..], &audience[..]];
        let derived = extracted.expand(&info, &AES_256_GCM).ok()?;
        Some(Key { name: *name, key: LessSafeKey::new(UnboundKey::from(derived)) })
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(self.lifetime.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain, Instant::now(), seconds())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.open(cipher, seconds())
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The keys are nobody's business.
        f.debug_struct("Tickets").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(300);

    #[test]
    fn a_ticket_is_good_for_its_lifetime() {
        let tickets = Tickets::new(None, 0, LIFETIME).unwrap();
        let ticket = tickets.seal(b"state", Instant::now(), 1000).unwrap();
        assert_eq!(tickets.open(&ticket, 1299).as_deref(), Some(&b"state"[..]));
        assert_eq!(tickets.open(&ticket, 1300), None);
    }

    #[test]
    fn nobody_can_change_a_ticket() {
        let tickets = Tickets::new(None, 0, LIFETIME).unwrap();
        let ticket = tickets.seal(b"state", Instant::now(), 1000).unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(tickets.open(&changed, 1000), None, "byte {at}");
            assert_eq!(tickets.open(&ticket[..at], 1000), None, "cut at {at}");
        }
    }

    #[test]
    fn keys_change_and_the_one_before_is_still_good() {
        let tickets = Tickets::new(None, 0, LIFETIME).unwrap();
        let start = Instant::now();
        let first = tickets.seal(b"1", start, 1000).unwrap();
        tickets.seal(b"2", start + ROTATION, 1000).unwrap();
        assert!(tickets.open(&first, 1000).is_some());
        tickets.seal(b"3", start + 2 * ROTATION, 1000).unwrap();
        assert!(tickets.open(&first, 1000).is_none());
    }

    #[test]
    fn servers_with_one_file_share_tickets_for_one_audience() {
        let secret = [7; TICKET_KEY_BYTES];
        let made = |audience| Tickets::new(Some(&secret), audience, LIFETIME).unwrap();
        let ticket = made(1).seal(b"state", Instant::now(), 1000).unwrap();
        assert!(made(1).open(&ticket, 1000).is_some());
        assert!(made(2).open(&ticket, 1000).is_none());
    }
}

//! Finds what a pattern holds on to: literals that every match must equal, begin with or contain.
//!
//! We read only the part of PCRE's grammar that decides this, and say of everything else that it is
//! unknown: an unknown pattern is always tried, so a doubt costs time and never an answer. That is why
//! this is not `regex-syntax`, which reads another grammar: here "valid" must mean valid to PCRE2.

/// Most literals kept for one pattern; a pattern with more is known by less.
const KEYS_MAX: usize = 64;
/// Longest literal kept; a longer one is cut and counts as a prefix.
pub(super) const LITERAL_BYTES_MAX: usize = 512;
/// Deepest nesting of groups that is looked into.
const DEPTH_MAX: usize = 16;
/// Largest class that is expanded into its members, `[ab]`.
const CLASS_MEMBERS_MAX: usize = 4;
/// Shorter literals in the middle of a string are in every string, so nothing is gained by them.
pub(super) const CONTAINED_BYTES_MIN: usize = 2;

/// What is known of a pattern.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// PCRE2 compiles it. False means: not known.
    pub(crate) valid: bool,
    /// The pattern is one literal and this tail.
    pub(super) tail: Option<Tail>,
    /// Where the literal stands in the pattern, for a pattern with a tail.
    pub(super) literal: std::ops::Range<usize>,
    /// The literal, if it is written with escapes and so does not stand in the pattern as it is.
    pub(super) unescaped: Option<Vec<u8>>,
    /// Every match satisfies at least one of these. `None`: nothing is known, or there is a tail.
    pub(crate) keys: Option<Vec<Key>>,
    /// `(?i)` at the start: letters of the keys match in both cases.
    pub(crate) folded: bool,
}

impl Facts {
    /// The one key of a pattern with a tail.
    pub(super) fn key_of_tail(&self, pattern: &[u8]) -> Option<Key> {
        let literal = match &self.unescaped {
            Some(literal) => literal.clone(),
            None => pattern[self.literal.clone()].to_vec(),
        };
        let reach = match self.tail? {
            Tail::End => Reach::Exact,
            Tail::Open | Tail::Rest => Reach::Prefix,
            Tail::Unanchored if literal.len() >= CONTAINED_BYTES_MIN => Reach::Contains,
            Tail::Unanchored => return None,
        };
        Some(Key { literal, reach })
    }
}

/// A literal that a matching string has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) literal: Vec<u8>,
    pub(crate) reach: Reach,
}

/// Where the string has the literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It is the string.
    Exact,
    /// At its start.
    Prefix,
    /// Anywhere.
    Contains,
}

/// What follows the literal of a simple pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// `^literal$`
    End,
    /// `^literal`
    Open,
    /// `^literal(.*)` or `^literal(.*)$`
    Rest,
    /// `literal`
    Unanchored,
}

/// Analyses `pattern`.
pub(crate) fn analyze(pattern: &[u8]) -> Facts {
    if let Some(facts) = simple(pattern) {
        return facts;
    }
    let (folded, body) = match pattern.strip_prefix(b"(?i)") {
        Some(body) => (true, body),
        None => (false, pattern),
    };
    let mut parser = Parser { rest: body, known: true };
    let Some(alternatives) = parser.alternatives(0) else { return Facts::default() };
    if !parser.rest.is_empty() {
        return Facts::default();
    }
    let mut keys = Some(Vec::new());
    for sequence in &alternatives {
        match (keys_of(sequence), &mut keys) {
            (Some(more), Some(keys)) => keys.extend(more),
            _ => keys = None,
        }
    }
    let keys = keys.filter(|keys| keys.len() <= KEYS_MAX);
    Facts { valid: parser.known, keys, folded, ..Facts::default() }
}

/// Recognises a literal with one of the [`Tail`]s: most patterns, and nothing is built for them.
fn simple(pattern: &[u8]) -> Option<Facts> {
    let start = usize::from(pattern.first() == Some(&b'^'));
    let anchored = start == 1;
    let mut at = start;
    let mut unescaped: Option<Vec<u8>> = None;
    while let Some(&byte) = pattern.get(at) {
        match byte {
            b'\\' => {
                let next = pattern.get(at + 1).filter(|next| next.is_ascii_punctuation())?;
                unescaped.get_or_insert_with(|| pattern[start..at].to_vec()).push(*next);
                at += 2;
            }
            byte if is_special(byte) => break,
            byte => {
                if let Some(unescaped) = &mut unescaped {
                    unescaped.push(byte);
                }
                at += 1;
            }
        }
    }
    let tail = match &pattern[at..] {
        b"" if anchored => Tail::Open,
        b"" => Tail::Unanchored,
        b"$" if anchored => Tail::End,
        b"(.*)" | b"(.*)$" if anchored => Tail::Rest,
        _ => return None,
    };
    Some(Facts { valid: true, tail: Some(tail), literal: start..at, unescaped, ..Facts::default() })
}

/// Whether the byte is more than itself outside a class.
fn is_special(byte: u8) -> bool {
    matches!(
        byte,
        b'\\' | b'^' | b'$' | b'.' | b'[' | b'|' | b'(' | b')' | b'?' | b'*' | b'+' | b'{'
    )
}

/// One item of a sequence.
#[derive(Debug)]
enum Item {
    Byte(u8),
    /// One byte out of these few.
    OneOf(Vec<u8>),
    /// One byte of which nothing is known.
    Any,
    Start,
    End,
    Group(Vec<Vec<Item>>),
    /// A look-around: no width, nothing known.
    Look,
    Repeat {
        item: Box<Item>,
        least: u32,
        most: Option<u32>,
    },
}

struct Parser<'a> {
    rest: &'a [u8],
    /// Nothing was met whose validity we leave to PCRE2.
    known: bool,
}

impl Parser<'_> {
    /// `None` at anything that is not understood.
    fn alternatives(&mut self, depth: usize) -> Option<Vec<Vec<Item>>> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut alternatives = vec![Vec::new()];
        loop {
            match self.rest.first() {
                None | Some(b')') => return Some(alternatives),
                Some(b'|') => {
                    self.rest = &self.rest[1..];
                    alternatives.push(Vec::new());
                }
                Some(_) => {
                    let item = self.item(depth)?;
                    alternatives.last_mut().expect("never empty").push(item);
                }
            }
        }
    }

    fn item(&mut self, depth: usize) -> Option<Item> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        let item = match byte {
            b'\\' => self.escape()?,
            b'^' => Item::Start,
            b'$' => Item::End,
            b'.' => Item::Any,
            b'[' => self.class()?,
            b'(' => self.group(depth)?,
            b'?' | b'*' | b'+' | b'{' => return None,
            byte => Item::Byte(byte),
        };
        self.quantified(item)
    }

    fn escape(&mut self) -> Option<Item> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        match byte {
            byte if byte.is_ascii_punctuation() => Some(Item::Byte(byte)),
            b'd' | b'D' | b'w' | b'W' | b's' | b'S' => Some(Item::Any),
            _ => None,
        }
    }

    fn class(&mut self) -> Option<Item> {
        let negated = self.rest.first() == Some(&b'^');
        self.rest = &self.rest[usize::from(negated)..];
        let mut members = Vec::new();
        let mut few = !negated;
        let mut first = true;
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b']' if !first => break,
                b']' | b'[' => return None,
                b'\\' => match self.escape()? {
                    Item::Byte(byte) => members.push(byte),
                    _ => few = false,
                },
                byte => members.push(byte),
            }
            first = false;
            if let [b'-', high, ..] = self.rest
                && *high != b']'
            {
                // A range between two plain bytes; anything else is left to PCRE2.
                let low = members.last().copied().filter(|_| byte != b'\\')?;
                if !high.is_ascii_alphanumeric() || *high < low {
                    return None;
                }
                few = false;
                self.rest = &self.rest[2..];
            }
        }
        members.dedup();
        Some(if few && members.len() <= CLASS_MEMBERS_MAX {
            Item::OneOf(members)
        } else {
            Item::Any
        })
    }

    fn group(&mut self, depth: usize) -> Option<Item> {
        let look = match self.rest {
            [b'?', b':', ..] => {
                self.rest = &self.rest[2..];
                false
            }
            [b'?', b'=' | b'!', ..] => {
                self.rest = &self.rest[2..];
                true
            }
            [b'?', b'<', b'=' | b'!', ..] => {
                self.rest = &self.rest[3..];
                true
            }
            [b'?' | b'*', ..] => return None,
            _ => false,
        };
        let alternatives = self.alternatives(depth + 1)?;
        self.rest = self.rest.strip_prefix(b")")?;
        if look {
            self.known = false;
            return Some(Item::Look);
        }
        Some(Item::Group(alternatives))
    }

    fn quantified(&mut self, item: Item) -> Option<Item> {
        let (least, most, len) = match self.rest {
            [b'?', ..] => (0, Some(1), 1),
            [b'*', ..] => (0, None, 1),
            [b'+', ..] => (1, None, 1),
            [b'{', ..] => self.braces()?,
            _ => return Some(item),
        };
        if matches!(item, Item::Start | Item::End | Item::Look) {
            self.known = false;
        }
        self.rest = &self.rest[len..];
        if let [b'?' | b'+', ..] = self.rest {
            self.rest = &self.rest[1..];
        }
        if let [b'?' | b'*' | b'+' | b'{', ..] = self.rest {
            return None;
        }
        Some(Item::Repeat { item: Box::new(item), least, most })
    }

    /// `{n}`, `{n,}` or `{n,m}` with small numbers; PCRE2 reads anything else in braces its own way.
    fn braces(&self) -> Option<(u32, Option<u32>, usize)> {
        let end = memchr::memchr(b'}', self.rest)?;
        let inner = std::str::from_utf8(&self.rest[1..end]).ok()?;
        let number = |text: &str| {
            let digits =
                !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse::<u32>().ok()).flatten()
        };
        let (least, most) = match inner.split_once(',') {
            None => (number(inner)?, Some(number(inner)?)),
            Some((least, "")) => (number(least)?, None),
            Some((least, most)) => (number(least)?, Some(number(most)?)),
        };
        // The size of a compiled pattern has a limit that nested repeats can reach.
        (most.is_none_or(|most| least <= most) && least.max(most.unwrap_or(0)) <= 32).then_some((
            least,
            most,
            end + 1,
        ))
    }
}

/// A set of beginnings: each a literal, and whether it is the whole of what was looked at.
struct Beginnings(Vec<(Vec<u8>, bool)>);

impl Beginnings {
    fn all_open(&mut self) {
        for (_, whole) in &mut self.0 {
            *whole = false;
        }
    }

    /// Appends a run of plain bytes to each whole beginning.
    fn push_bytes(&mut self, run: &[Item]) {
        for (text, whole) in self.0.iter_mut().filter(|(_, whole)| *whole) {
            let room = LITERAL_BYTES_MAX.saturating_sub(text.len());
            let bytes = run.iter().filter_map(|item| match item {
                Item::Byte(byte) => Some(*byte),
                _ => None,
            });
            text.reserve_exact(run.len().min(room));
            text.extend(bytes.take(room));
            *whole = run.len() <= room;
        }
    }

    /// Appends each of `next` to each whole beginning; the beginnings as they were when that gets too
    /// many.
    fn followed_by(self, next: &Beginnings) -> Result<Beginnings, Beginnings> {
        if let [(text, false)] = next.0.as_slice()
            && text.is_empty()
        {
            let mut all = self;
            all.all_open();
            return Ok(all);
        }
        let whole = self.0.iter().filter(|(_, whole)| *whole).count();
        if self.0.len() - whole + whole * next.0.len() > KEYS_MAX {
            return Err(self);
        }
        let mut joined: Vec<(Vec<u8>, bool)> = Vec::new();
        for (start, whole) in self.0 {
            if !whole {
                joined.push((start, false));
                continue;
            }
            for (end, whole) in &next.0 {
                let mut text = [&start[..], end].concat();
                let whole = *whole && text.len() <= LITERAL_BYTES_MAX;
                text.truncate(LITERAL_BYTES_MAX);
                joined.push((text, whole));
            }
        }
        Ok(Beginnings(joined))
    }
}

/// The keys of one alternative at the top of a pattern.
fn keys_of(sequence: &[Item]) -> Option<Vec<Key>> {
    let contained = longest_run(sequence).filter(|run| run.len() >= CONTAINED_BYTES_MIN);
    let by_content = contained.map(|literal| vec![Key { literal, reach: Reach::Contains }]);
    let Some((Item::Start, body)) = sequence.split_first() else { return by_content };
    let (body, ends) = match body.split_last() {
        Some((Item::End, body)) => (body, true),
        _ => (body, false),
    };
    let Some(Beginnings(beginnings)) = beginnings(body) else { return by_content };
    let shortest = beginnings.iter().map(|(text, _)| text.len()).min().unwrap_or(0);
    let exact = ends && beginnings.iter().all(|&(_, whole)| whole);
    if !exact && shortest <= 1 && by_content.is_some() {
        return by_content;
    }
    let key = |(literal, whole)| {
        let reach = if ends && whole { Reach::Exact } else { Reach::Prefix };
        Key { literal, reach }
    };
    Some(beginnings.into_iter().map(key).collect())
}

/// What a sequence can begin with. `None` when an anchor or too many beginnings are met first.
fn beginnings(sequence: &[Item]) -> Option<Beginnings> {
    let mut all = Beginnings(vec![(Vec::new(), true)]);
    let mut rest = sequence;
    while all.0.iter().any(|&(_, whole)| whole) {
        let run = rest.iter().take_while(|item| matches!(item, Item::Byte(_))).count();
        if run > 0 {
            all.push_bytes(&rest[..run]);
            rest = &rest[run..];
            continue;
        }
        let Some((item, after)) = rest.split_first() else { break };
        all = match all.followed_by(&beginnings_of(item)?) {
            Ok(all) => all,
            // Too many: what came before still holds.
            Err(mut before) => {
                before.all_open();
                before
            }
        };
        rest = after;
    }
    Some(all)
}

fn beginnings_of(item: &Item) -> Option<Beginnings> {
    let unknown = || Beginnings(vec![(Vec::new(), false)]);
    Some(match item {
        Item::Byte(byte) => Beginnings(vec![(vec![*byte], true)]),
        Item::OneOf(bytes) => Beginnings(bytes.iter().map(|&byte| (vec![byte], true)).collect()),
        Item::Any | Item::Look => unknown(),
        Item::Start | Item::End => return None,
        Item::Group(alternatives) => {
            let mut all = Vec::new();
            for sequence in alternatives {
                all.extend(beginnings(sequence)?.0);
            }
            if all.len() > KEYS_MAX { unknown() } else { Beginnings(all) }
        }
        Item::Repeat { item, least: 0, most: Some(1) } => {
            let mut once = beginnings_of(item)?;
            once.0.push((Vec::new(), true));
            once
        }
        Item::Repeat { item, least, .. } => {
            let mut once = beginnings_of(item)?;
            once.all_open();
            if *least == 0 { unknown() } else { once }
        }
    })
}

/// The longest literal that every match of the sequence contains.
fn longest_run(sequence: &[Item]) -> Option<Vec<u8>> {
    let mut longest: Vec<u8> = Vec::new();
    let mut run: Vec<u8> = Vec::new();
    let keep = |run: &mut Vec<u8>, longest: &mut Vec<u8>| {
        if run.len() > longest.len() {
            longest.clone_from(run);
        }
        run.clear();
    };
    for item in sequence {
        match item {
            Item::Byte(byte) => run.push(*byte),
            Item::Start | Item::End | Item::Look => {}
            item => {
                keep(&mut run, &mut longest);
                let mut inner = match item {
                    Item::Group(alternatives) if alternatives.len() == 1 => {
                        longest_run(&alternatives[0]).unwrap_or_default()
                    }
                    Item::Repeat { item, least: 1.., .. } => {
                        longest_run(std::slice::from_ref(item)).unwrap_or_default()
                    }
                    _ => Vec::new(),
                };
                keep(&mut inner, &mut longest);
            }
        }
    }
    keep(&mut run, &mut longest);
    longest.truncate(LITERAL_BYTES_MAX);
    (!longest.is_empty()).then_some(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_in_disguise() {
        keys("^/a/b/?$", &["=/a/b/", "=/a/b"]);
        keys("^/a(/.*)?$", &["^/a/", "=/a"]);
        keys("^/(a|b|c)$", &["=/a", "=/b", "=/c"]);
        keys("^/a$|^/b/", &["=/a", "^/b/"]);
        keys("^/[ab]c", &["^/ac", "^/bc"]);
        keys("^/a(?:b|c)?d$", &["=/abd", "=/acd", "=/ad"]);
    }

    #[test]
    fn prefixes_and_contents() {
        keys("^/blog/([0-9]+)/(.*)$", &["^/blog/"]);
        keys("^/(.*)\\.php$", &["*.php"]);
        keys("^(.*)/feed/?$", &["*/feed"]);
        keys("^/x{2,3}y", &["^/x"]);
        keys("^/a(?!b)", &["^/a"]);
    }

    #[test]
    fn nothing_to_hold_on_to() {
        for pattern in
            [".*", "^(.*)$|x", "[0-9]+", r"\bfoo", "(?<n>a)b", "(^a|b)c", "a|.", r"(a)\1"]
        {
            let facts = analyze(pattern.as_bytes());
            let empty = |key: &Key| key.literal.is_empty();
            assert!(facts.keys.is_none_or(|keys| keys.iter().any(empty)), "{pattern}");
        }
    }

    #[test]
    fn inline_case() {
        let facts = analyze(b"(?i)^/A$");
        assert!(facts.folded && facts.valid);
        assert_eq!(facts.keys.unwrap()[0].literal, b"/A");
    }

    #[test]
    fn simple_patterns_have_a_tail() {
        for (pattern, tail, literal) in [
            ("^/a/b$", Tail::End, "/a/b"),
            (r"^/a\.html$", Tail::End, "/a.html"),
            ("/old/", Tail::Unanchored, "/old/"),
            (r"^/a\(b(.*)", Tail::Rest, "/a(b"),
        ] {
            let facts = analyze(pattern.as_bytes());
            let stands = pattern[facts.literal.clone()].as_bytes().to_vec();
            assert_eq!(facts.tail, Some(tail), "{pattern}");
            assert_eq!(facts.unescaped.unwrap_or(stands), literal.as_bytes(), "{pattern}");
        }
    }

    /// `=` equals, `^` begins with, `*` contains.
    #[track_caller]
    fn keys(pattern: &str, expected: &[&str]) {
        let facts = analyze(pattern.as_bytes());
        let shown: Vec<String> = facts
            .keys
            .unwrap_or_default()
            .iter()
            .map(|key| {
                let sign = match key.reach {
                    Reach::Exact => '=',
                    Reach::Prefix => '^',
                    Reach::Contains => '*',
                };
                format!("{sign}{}", String::from_utf8_lossy(&key.literal))
            })
            .collect();
        assert_eq!(shown, expected);
    }
}

//! Requests with places that are filled anew for each: a number, something random, a value of a list.
//!
//! What stands in a place follows from the seed, the number of the request and the place alone, so a run
//! can be repeated whatever its threads and connections do. A template is taken apart before the run, and
//! filled into the buffer of a connection, which allocates nothing once the buffer has its size.

use std::io::Write as _;

use crate::target::Target;
use crate::variables::Variables;

/// What begins and what ends a place.
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// The place of the length of the content. Nobody can write it: it is no name.
pub(crate) const LENGTH: &str = "{{ content-length }}";

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// `{{` without `}}`.
    #[error("{{{{ without }}}} at column {0}")]
    Open(usize),
    /// A place that nothing is known to stand in.
    #[error(
        "nothing is known to stand in {{{{{name}}}}} at column {column}; there are counter, \
         random:FROM..TO, uuid and the columns of the variables ({variables})"
    )]
    Unknown {
        /// What stands between the braces.
        name: String,
        /// Where, in bytes from 1.
        column: usize,
        /// The names of the variables.
        variables: String,
    },
    /// A value that cannot stand where it is to.
    #[error("line {line} of the variables: {value:?} cannot stand in {what}")]
    Value {
        /// Line of the value, from 1.
        line: usize,
        /// The value.
        value: String,
        /// The part of the request.
        what: &'static str,
    },
}

/// A text with places.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Literal(Box<[u8]>),
    /// The number of the request, from 1.
    Counter,
    /// A number from the first to the second, both included.
    Random(u64, u64),
    /// Of version 4.
    Uuid,
    /// A column of the variables.
    Column(usize),
    /// Of the content.
    Length,
}

/// What the places of one request are filled from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) variables: &'a Variables,
    pub(crate) seed: u64,
    /// Of the request, from 0.
    pub(crate) number: u64,
}

/// A request with places: as bytes for the wire, and part by part.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    head: Text,
    content: Text,
    request_target: Text,
    fields: Vec<Text>,
}

impl Template {
    /// Takes a request apart, of which `head` has been rendered with [`LENGTH`] in it.
    ///
    /// # Errors
    ///
    /// When a place is unknown, or may have a value that would break out of it.
    pub(crate) fn new(
        target: &Target,
        head: &[u8],
        variables: &Variables,
    ) -> Result<Self, TemplateError> {
        let parse = |text: &str| Text::parse(text.as_bytes(), variables);
        let request_target = parse(&target.request_target)?;
        let is_graphic = |value: &str| value.bytes().all(|byte| byte.is_ascii_graphic());
        request_target.check(variables, "a request-target", |value| !is_graphic(value))?;
        let fields =
            target.fields.iter().map(|(_, value)| parse(value)).collect::<Result<Vec<_>, _>>()?;
        for field in &fields {
            field.check(variables, "a field", |value| value.contains(['\r', '\n', '\0']))?;
        }
        let content = Text::parse(&target.content, variables)?;
        Ok(Self { head: Text::parse(head, variables)?, content, request_target, fields })
    }

    /// Whether there is any place in the request.
    pub(crate) fn has_places(&self) -> bool {
        [&self.content, &self.request_target].into_iter().chain(&self.fields).any(Text::has_places)
    }

    /// Fills the request into `out`, which is emptied first; `content` is a buffer for its content.
    pub(crate) fn fill(&self, values: Values<'_>, out: &mut Vec<u8>, content: &mut Vec<u8>) {
        content.clear();
        // The places of the content are numbered after those of the head.
        self.content.fill(values, self.head.0.len() as u64, 0, content);
        out.clear();
        self.head.fill(values, 0, content.len(), out);
        out.extend_from_slice(content);
    }

    /// The request with its places filled.
    pub(crate) fn target(&self, target: &Target, values: Values<'_>) -> Target {
        let mut salt = 0;
        let mut filled = |text: &Text| {
            let mut bytes = Vec::new();
            text.fill(values, salt, 0, &mut bytes);
            salt += text.0.len() as u64;
            bytes
        };
        // Literals and values are text, so the whole is.
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let mut target = target.clone();
        target.request_target = text(filled(&self.request_target));
        for ((_, value), template) in target.fields.iter_mut().zip(&self.fields) {
            *value = text(filled(template));
        }
        target.content = filled(&self.content).into();
        target
    }
}

impl Text {
    fn parse(bytes: &[u8], variables: &Variables) -> Result<Self, TemplateError> {
        let (mut pieces, mut at) = (Vec::new(), 0);
        let literal = |bytes: &[u8]| Piece::Literal(bytes.into());
        while let Some(open) = memchr::memmem::find(&bytes[at..], OPEN.as_bytes()) {
            let open = at + open;
            let inner = open + OPEN.len();
            let Some(length) = memchr::memmem::find(&bytes[inner..], CLOSE.as_bytes()) else {
                return Err(TemplateError::Open(open + 1));
            };
            let name = &bytes[inner..inner + length];
            if open > at {
                pieces.push(literal(&bytes[at..open]));
            }
            at = inner + length + CLOSE.len();
            if bytes[open..at] == *LENGTH.as_bytes() {
                pieces.push(Piece::Length);
                continue;
            }
            let name = String::from_utf8_lossy(name);
            pieces.push(Piece::named(&name, variables).ok_or_else(|| TemplateError::Unknown {
                name: name.into_owned(),
                column: open + 1,
                variables: variables.names(),
            })?);
        }
        if at < bytes.len() {
            pieces.push(literal(&bytes[at..]));
        }
        Ok(Self(pieces))
    }

    fn has_places(&self) -> bool {
        self.0.iter().any(|piece| !matches!(piece, Piece::Literal(_)))
    }

    /// Sees that no value of the variables breaks out of its place.
    fn check(
        &self,
        variables: &Variables,
        what: &'static str,
        is_bad: impl Fn(&str) -> bool,
    ) -> Result<(), TemplateError> {
        for piece in &self.0 {
            if let Piece::Column(column) = *piece
                && let Some((line, value)) = variables.find(column, &is_bad)
            {
                return Err(TemplateError::Value { line, value: value.to_owned(), what });
            }
        }
        Ok(())
    }

    /// Adds the text to `out`. `salt` tells the first piece from those of other texts.
    fn fill(&self, values: Values<'_>, salt: u64, length: usize, out: &mut Vec<u8>) {
        let Values { variables, seed, number } = values;
        for (piece, place) in self.0.iter().zip(salt..) {
            let random = || {
                let mut random = fastrand::Rng::with_seed(seed ^ number.rotate_left(32));
                fastrand::Rng::with_seed(random.u64(..) ^ place)
            };
            // Writing to memory does not fail.
            let _ = match piece {
                Piece::Literal(bytes) => out.write_all(bytes),
                Piece::Counter => write!(out, "{}", number + 1),
                Piece::Random(low, high) => write!(out, "{}", random().u64(low..=high)),
                Piece::Uuid => write_uuid(out, random()),
                Piece::Column(column) => out.write_all(variables.value(*column, number).as_bytes()),
                Piece::Length => write!(out, "{length}"),
            };
        }
    }
}

impl Piece {
    fn named(name: &str, variables: &Variables) -> Option<Self> {
        match name {
            "counter" => Some(Self::Counter),
            "uuid" => Some(Self::Uuid),
            _ => match name.strip_prefix("random:") {
                Some(range) => {
                    let (low, high) = range.split_once("..")?;
                    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
                    (low <= high).then_some(Self::Random(low, high))
                }
                None => variables.column(name).map(Self::Column),
            },
        }
    }
}

/// Source: RFC 9562 section 5.4.
fn write_uuid(out: &mut Vec<u8>, mut random: fastrand::Rng) -> std::io::Result<()> {
    let (high, low) = (random.u64(..), random.u64(..));
    let version = high & 0x0fff | 0x4000;
    let variant = low >> 48 & 0x3fff | 0x8000;
    let (first, second) = (high >> 32, high >> 16 & 0xffff);
    write!(
        out,
        "{first:08x}-{second:04x}-{version:04x}-{variant:04x}-{:012x}",
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn places_are_filled_from_the_number_and_the_seed() {
        let variables = Variables::parse("id,name\n7,a\n8,b").unwrap();
        let fill = |number, text: &str| {
            let text = Text::parse(text.as_bytes(), &variables).unwrap();
            let mut out = Vec::new();
            text.fill(Values { variables: &variables, seed: 1, number }, 0, 0, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(fill(0, "/{{counter}}/{{id}}{{name}}?"), "/1/7a?");
        assert_eq!(fill(3, "/{{counter}}/{{id}}{{name}}?"), "/4/8b?");
        assert_eq!(fill(3, "no place {"), "no place {");
        let drawn: Vec<u64> =
            (0..1_000).map(|number| fill(number, "{{random:3..5}}").parse().unwrap()).collect();
        for value in 3..=5 {
            let count = drawn.iter().filter(|drawn| **drawn == value).count();
            assert!((250..420).contains(&count), "{value}: {count}");
        }
        let uuid = fill(5, "{{uuid}}");
        assert_eq!(uuid, fill(5, "{{uuid}}"), "the same request has the same");
        assert_ne!(uuid, fill(6, "{{uuid}}"));
        let [at_14, at_19] = [14, 19].map(|at| uuid.as_bytes()[at]);
        assert!(at_14 == b'4' && b"89ab".contains(&at_19) && uuid.len() == 36, "{uuid}");
        let two = fill(5, "{{uuid}} {{uuid}}");
        let (one, other) = two.split_once(' ').unwrap();
        assert_ne!(one, other, "each place is drawn by itself");
        assert_eq!(fill(0, "{{random:0..18446744073709551615}}{{random:4..4}}").pop(), Some('4'));
    }

    #[test]
    fn what_is_no_template_is_refused() {
        let variables = Variables::parse("id\n\"a b\"").unwrap();
        let refuse = |request_target: &str, message: &str| {
            let mut target = Target::new(SocketAddr::from(([127, 0, 0, 1], 80)), "h", "/");
            request_target.clone_into(&mut target.request_target);
            let error = Template::new(&target, b"", &variables).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        };
        refuse("/a{{id", "{{ without }} at column 3");
        refuse(
            "/{{x}}",
            "nothing is known to stand in {{x}} at column 2; there are counter, random:",
        );
        for bad in ["random", "random:", "random:5", "random:5..4", "random:-1..4", ""] {
            refuse(&format!("/{{{{{bad}}}}}"), "nothing is known to stand in ");
        }
        refuse("/{{id}}", "line 2 of the variables: \"a b\" cannot stand in a request-target");
    }
}

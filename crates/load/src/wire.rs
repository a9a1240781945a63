//! Renders every request once, before the run, into one block of bytes.
//!
//! Sending a request is then one write of a slice. The Connection field is there unless the plan wants
//! to see what comes without: what is left to a default differs between HTTP/1.0 and 1.1 and between
//! servers, and costs whoever guesses wrong an idle timeout a request.

use std::ops::Range;
use std::sync::Arc;

use milepost_http::response::RequestMethod;

use crate::failure::RunError;
use crate::origin::Origin;
use crate::plan::{Persistence, Plan};
use crate::target::{Target, Version};
use crate::template::{LENGTH, Template};

pub(crate) const USER_AGENT: &str = concat!("milepost/", env!("CARGO_PKG_VERSION"));

/// Fields that say how the message is framed or the connection is used. They follow from the plan.
const RESERVED: [&str; 5] =
    ["Connection", "Content-Length", "Keep-Alive", "Transfer-Encoding", "Upgrade"];

/// All requests of a plan, ready to be sent.
#[derive(Debug)]
pub(crate) struct Requests {
    bytes: Arc<[u8]>,
    targets: Vec<Rendered>,
    origins: Vec<Origin>,
}

/// What a worker must know about a target beside its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Rendered {
    bytes: Range<usize>,
    /// Index into the origins.
    pub(crate) origin: usize,
    pub(crate) traits: Traits,
    /// What the request is made of each time, if it is not the same each time.
    pub(crate) template: Option<Box<Template>>,
}

/// What the method of a request says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits {
    pub(crate) method: RequestMethod,
    /// Sending it twice does no more than sending it once (RFC 9110 section 9.2.2).
    pub(crate) idempotent: bool,
}

/// One request that was rendered during the run.
#[derive(Debug)]
pub(crate) struct Single {
    pub(crate) bytes: Vec<u8>,
    pub(crate) traits: Traits,
}

impl Single {
    /// # Errors
    ///
    /// When a part of the target would break out of its place in the request.
    pub(crate) fn render(target: &Target, persistence: Persistence) -> Result<Self, RunError> {
        check(target)?;
        let mut bytes = Vec::new();
        write(&mut bytes, target, persistence);
        Ok(Self { bytes, traits: Traits::of(target) })
    }
}

impl Traits {
    fn of(target: &Target) -> Self {
        Self {
            method: if target.method == "HEAD" {
                RequestMethod::Head
            } else {
                RequestMethod::Other
            },
            idempotent: matches!(
                target.method.as_str(),
                "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
            ),
        }
    }
}

impl Requests {
    /// # Errors
    ///
    /// When a part of a target would break out of its place in the request.
    pub(crate) fn render(plan: &Plan) -> Result<Self, RunError> {
        let (mut bytes, mut targets, mut origins) = (Vec::new(), Vec::new(), Vec::new());
        let mut known = std::collections::HashMap::new();
        for target in &plan.targets {
            check(target)?;
            let origin = Origin::of(target, &plan.tls)?;
            let origin = *known.entry(origin).or_insert_with_key(|origin| {
                origins.push(origin.clone());
                origins.len() - 1
            });
            let template = template(target, plan)?;
            let start = bytes.len();
            write(&mut bytes, target, plan.persistence);
            targets.push(Rendered {
                bytes: start..bytes.len(),
                origin,
                traits: Traits::of(target),
                template,
            });
        }
        Ok(Self { bytes: bytes.into(), targets, origins })
    }

    /// Distinct origins of all targets.
    pub(crate) fn origins(&self) -> &[Origin] {
        &self.origins
    }

    #[inline]
    pub(crate) fn target(&self, target: usize) -> &Rendered {
        &self.targets[target]
    }

    #[inline]
    pub(crate) fn bytes(&self, target: usize) -> &[u8] {
        &self.bytes[self.targets[target].bytes.clone()]
    }

    /// Where in all of them a request is.
    #[inline]
    pub(crate) fn range(&self, target: usize) -> Range<usize> {
        self.targets[target].bytes.clone()
    }

    /// A part of all of them.
    #[inline]
    pub(crate) fn part(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// All of them.
    pub(crate) fn block(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// Whether any request is made anew each time.
    pub(crate) fn has_templates(&self) -> bool {
        self.targets.iter().any(|target| target.template.is_some())
    }

    pub(crate) fn longest(&self) -> usize {
        self.targets.iter().map(|target| target.bytes.len()).max().unwrap_or_default()
    }
}

/// The template of a target, if it has places and the plan fills them.
fn template(target: &Target, plan: &Plan) -> Result<Option<Box<Template>>, RunError> {
    let Some(variables) = &plan.variables else { return Ok(None) };
    let mut head = Vec::new();
    write_head(&mut head, target, plan.persistence, LENGTH);
    let template = Template::new(target, &head, variables)
        .map_err(|source| RunError::Template { uri: target.uri(), source })?;
    Ok(template.has_places().then(|| Box::new(template)))
}

fn write(out: &mut Vec<u8>, target: &Target, persistence: Persistence) {
    write_head(out, target, persistence, &target.content.len().to_string());
    out.extend_from_slice(&target.content);
}

/// Writes the head, with `length` as the length of the content.
fn write_head(out: &mut Vec<u8>, target: &Target, persistence: Persistence, length: &str) {
    let minor = match target.version {
        Version::Http10 => 0,
        Version::Http11 => 1,
    };
    let line = format!("{} {} HTTP/1.{minor}\r\n", target.method, target.request_target);
    out.extend_from_slice(line.as_bytes());
    let mut field = |name: &str, value: &str| {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    };
    for (name, value) in
        [("Host", &*target.authority), ("User-Agent", USER_AGENT), ("Accept", "*/*")]
    {
        if !target.fields.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
            field(name, value);
        }
    }
    for (name, value) in &target.fields {
        field(name, value);
    }
    // A method that is expected to have content says that it has none (RFC 9110 section 8.6).
    let has_content = matches!(target.method.as_str(), "POST" | "PUT" | "PATCH");
    if has_content || !target.content.is_empty() {
        field("Content-Length", length);
    }
    match persistence {
        Persistence::KeepAlive => field("Connection", "keep-alive"),
        Persistence::Close => field("Connection", "close"),
        Persistence::Unsaid => {}
    }
    out.extend_from_slice(b"\r\n");
}

fn check(target: &Target) -> Result<(), RunError> {
    let fail = |what, value: &str| {
        Err(RunError::Unsendable { uri: target.uri(), what, value: value.to_owned() })
    };
    if target.method.is_empty() || !target.method.bytes().all(is_token) {
        return fail("the method", &target.method);
    }
    if target.method == "CONNECT" {
        return fail("the method of a tunnel", &target.method);
    }
    if target.request_target.is_empty()
        || !target.request_target.bytes().all(|it| it.is_ascii_graphic())
    {
        return fail("the request-target", &target.request_target);
    }
    if !target.authority.bytes().all(|byte| byte.is_ascii_graphic()) {
        return fail("the authority", &target.authority);
    }
    for (name, value) in &target.fields {
        if name.is_empty() || !name.bytes().all(is_token) {
            return fail("the field name", name);
        }
        if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
            return fail("a field that the run itself decides on", name);
        }
        if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return fail("the field value", value);
        }
    }
    Ok(())
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn the_connection_field_is_always_there() {
        let head = "GET /a?b HTTP/1.1\r\nHost: h:80\r\nUser-Agent: milepost/";
        for (persistence, last) in [
            (Persistence::KeepAlive, "Connection: keep-alive\r\n\r\n"),
            (Persistence::Close, "Connection: close\r\n\r\n"),
        ] {
            let text = render(target(), persistence).unwrap();
            assert!(text.starts_with(head) && text.ends_with(last), "{text}");
        }
    }

    #[test]
    fn own_fields_replace_the_built_in_ones() {
        let mut target = target();
        target.fields = vec![("host".into(), "other".into()), ("X-A".into(), "1".into())];
        let text = render(target, Persistence::Close).unwrap();
        assert!(text.contains("host: other\r\nX-A: 1\r\n") && !text.contains("Host:"), "{text}");
    }

    #[test]
    fn a_post_says_that_it_has_no_content() {
        let mut target = target();
        target.method = "POST".into();
        assert!(render(target, Persistence::Close).unwrap().contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn nothing_breaks_out_of_its_place() {
        let refused = |change: &dyn Fn(&mut Target)| {
            let mut target = target();
            change(&mut target);
            assert!(matches!(render(target, Persistence::Close), Err(RunError::Unsendable { .. })));
        };
        refused(&|target| target.method = "GET /x".into());
        refused(&|target| target.method = "CONNECT".into());
        refused(&|target| target.request_target = "/a b".into());
        refused(&|target| target.request_target = "/a\r\nX: y".into());
        refused(&|target| target.request_target = String::new());
        refused(&|target| target.authority = "h\r\nX: y".into());
        for (name, value) in [
            ("", "a"),
            ("A b", "a"),
            ("A", "b\nc"),
            ("connection", "close"),
            ("Content-Length", "5"),
        ] {
            refused(&|target| target.fields = vec![(name.into(), value.into())]);
        }
    }

    #[test]
    fn content_follows_the_head_that_tells_its_length() {
        let mut target = target();
        target.method = "PUT".into();
        target.version = Version::Http10;
        target.content = b"a=1\r\n"[..].into();
        let text = render(target, Persistence::Unsaid).unwrap();
        assert!(text.starts_with("PUT /a?b HTTP/1.0\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 5\r\n\r\na=1\r\n"), "{text}");
    }

    fn target() -> Target {
        Target::new(SocketAddr::from(([127, 0, 0, 1], 80)), "h:80", "/a?b")
    }

    fn render(target: Target, persistence: Persistence) -> Result<String, RunError> {
        let mut plan = Plan::new(vec![target]);
        plan.persistence = persistence;
        let requests = Requests::render(&plan)?;
        Ok(String::from_utf8(requests.bytes(0).to_vec()).unwrap())
    }
}

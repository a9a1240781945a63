//! What is requested, and which answer is the right one.

use std::fmt;
use std::sync::Arc;

use crate::endpoint::Endpoint;
use crate::sha256::Sha256;

/// The first status that counts as wrong when no status is expected.
pub const STATUS_WRONG_MIN: u16 = 400;

/// One request: where it goes, what it says, and what must come back.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Target {
    /// What is connected to.
    pub address: Endpoint,
    /// Whether TLS is spoken.
    pub scheme: Scheme,
    /// Whether what is connected to is a proxy that is to make a tunnel to the authority.
    pub tunnel: Option<Tunnel>,
    /// Value of the Host field.
    pub authority: String,
    /// Request-target as it goes on the wire: origin-form, or absolute-form to a proxy.
    pub request_target: String,
    /// Version that the request speaks.
    pub version: Version,
    /// Method, in the case in which it goes on the wire.
    pub method: String,
    /// Fields beside Host, User-Agent, Accept and Connection; these three replace the built-in ones.
    /// A Connection field is refused: [`crate::Persistence`] says it.
    pub fields: Vec<(String, String)>,
    /// Content of the request, sent with its Content-Length.
    pub content: Arc<[u8]>,
    /// The right answer.
    pub expectation: Expectation,
    /// How often it is requested, in relation to the others. At least 1.
    pub weight: u32,
}

/// Scheme of a URL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// `http`.
    #[default]
    Http,
    /// `https`: with TLS.
    Https,
}

/// A tunnel through a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tunnel {
    /// Value of the Proxy-Authorization field.
    pub authorization: Option<String>,
}

/// Version of HTTP in a request line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0, for what asks for it. Connections persist as the Connection field says, in either.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

/// What the answer must be. Every answer is held against it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expectation {
    /// Exact status. Without it, a status of 400 or more is wrong.
    pub status: Option<u16>,
    /// Exact value of the Location field, byte for byte.
    pub location: Option<Vec<u8>>,
    /// Exact length of the content in bytes.
    pub content_bytes: Option<u64>,
    /// SHA-256 of the content.
    pub content_sha256: Option<Sha256>,
}

impl Target {
    /// A `GET` that is right with any status below 400.
    #[must_use]
    pub fn new(
        address: impl Into<Endpoint>,
        authority: impl Into<String>,
        request_target: impl Into<String>,
    ) -> Self {
        Self {
            address: address.into(),
            scheme: Scheme::Http,
            tunnel: None,
            authority: authority.into(),
            request_target: request_target.into(),
            method: "GET".to_owned(),
            version: Version::default(),
            fields: Vec::new(),
            content: Arc::default(),
            expectation: Expectation::default(),
            weight: 1,
        }
    }

    /// The same request with another expectation.
    #[must_use]
    pub fn expect(mut self, expectation: Expectation) -> Self {
        self.expectation = expectation;
        self
    }

    /// The target URI, for reports.
    #[must_use]
    pub fn uri(&self) -> String {
        if !self.request_target.starts_with('/') {
            return self.request_target.clone();
        }
        format!("{}://{}{}", self.scheme, self.authority, self.request_target)
    }
}

impl Scheme {
    /// Port when a URL says none.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

impl Expectation {
    /// Exactly this status.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// Exactly this status and this Location.
    #[must_use]
    pub fn redirect(status: u16, location: impl Into<Vec<u8>>) -> Self {
        Self { status: Some(status), location: Some(location.into()), ..Self::default() }
    }

    /// Exactly this length of content, beside what is expected already.
    #[must_use]
    pub fn content_bytes(mut self, bytes: u64) -> Self {
        self.content_bytes = Some(bytes);
        self
    }
}

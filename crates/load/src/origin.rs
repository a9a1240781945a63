//! What a slot keeps one connection to: where it goes, through what, and whom it expects there.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::ServerName;

use crate::endpoint::Endpoint;
use crate::target::{Scheme, Target};
use crate::tls::{TlsError, TlsSettings};
use crate::url::HttpUrl;

/// Requests to the same origin can share a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// What the socket is connected to.
    pub(crate) endpoint: Endpoint,
    /// Request for a tunnel, if there is to be one.
    pub(crate) tunnel: Option<Arc<[u8]>>,
    /// Who must be at the other end of TLS; none without TLS.
    pub(crate) secure: Option<ServerName<'static>>,
}

impl Origin {
    /// The origin of a target.
    ///
    /// # Errors
    ///
    /// When the target is to be asked with TLS and its host cannot be.
    pub(crate) fn of(target: &Target, tls: &TlsSettings) -> Result<Self, TlsError> {
        let url = HttpUrl::parse(&format!("{}://{}/", target.scheme, target.authority));
        let url = url.map_err(|_| TlsError::ServerName(target.authority.clone()));
        let is_plain = target.scheme == Scheme::Http && target.tunnel.is_none();
        if is_plain {
            // What stands in the Host field is nobody's business but the server's.
            return Ok(Self { endpoint: target.address.clone(), tunnel: None, secure: None });
        }
        let url = url?;
        let tunnel = target.tunnel.as_ref().map(|tunnel| {
            let (host, port) = (url.host(), url.port());
            let to = if host.contains(':') {
                format!("[{host}]:{port}")
            } else {
                format!("{host}:{port}")
            };
            let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
            if let Some(credentials) = &tunnel.authorization {
                request.push_str(&format!("Proxy-Authorization: {credentials}\r\n"));
            }
            request.push_str("\r\n");
            request.into_bytes().into()
        });
        let secure = match target.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(tls.server_name(url.host())?),
        };
        Ok(Self { endpoint: target.address.clone(), tunnel, secure })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

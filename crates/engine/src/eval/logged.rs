//! What a log line shows of the request that was decided last.

use std::net::SocketAddr;

use super::Scratch;
use super::handler::handler;
use crate::outside::FileKind;
use crate::site::Site;

/// The last decision that a scratch was used for, as its log shows it.
#[derive(Clone, Copy)]
pub struct Logged<'s> {
    site: &'s Site,
    scratch: &'s Scratch,
    server: usize,
}

impl Site {
    /// Looks back at the request that `scratch` has decided.
    pub fn logged<'s>(&'s self, scratch: &'s Scratch) -> Logged<'s> {
        Logged { site: self, scratch, server: scratch.server }
    }
}

impl<'s> Logged<'s> {
    /// The number of the server that answered: 0 is the main server.
    pub fn server(&self) -> usize {
        self.server
    }

    /// The name of the server, if it has one.
    pub fn server_name(&self) -> Option<&'s [u8]> {
        let program = self.site.program();
        program.servers[self.server].name.map(|name| program.pool.get(name.host))
    }

    /// The client that a proxy has asked for, without a port; `None`: who has connected.
    pub fn client(&self) -> Option<SocketAddr> {
        self.scratch.work.client
    }

    /// The port of `ServerName`, if it has one.
    pub fn server_port(&self) -> Option<u16> {
        self.site.program().servers[self.server].name?.port
    }

    /// The name that the request used, unless `UseCanonicalName` says otherwise.
    pub fn requested_name(&self) -> Option<&'s [u8]> {
        let config = self.scratch.hop.config.as_deref();
        let config = config.unwrap_or(&self.site.program().servers[self.server].base);
        if config.naming.canonical == Some(true) || self.scratch.host.name.is_empty() {
            self.server_name()
        } else {
            Some(&self.scratch.host.name)
        }
    }

    /// The level of the proxy's messages that sections have set where the request is.
    pub(crate) fn proxy_level(&self) -> Option<u8> {
        self.scratch.hop.config.as_deref()?.levels.proxy()
    }

    /// A variable, as `SetEnvIf` and the rules have left it.
    pub fn variable(&self, name: &[u8]) -> Option<&'s [u8]> {
        self.scratch.hop.env.get(name)
    }

    /// The name of the file, or what stood in its place.
    pub fn file(&self) -> &'s [u8] {
        &self.scratch.hop.filename
    }

    /// The handler that answered; `None` for a file that is sent as it is, and for a redirect.
    pub fn handler(&self) -> Option<&'s [u8]> {
        let hop = &self.scratch.hop;
        if hop.proxied {
            return Some(b"proxy-server");
        }
        let config = hop.config.as_deref();
        let config = config.unwrap_or(&self.site.program().servers[self.server].base);
        let named = config.mime.as_deref().and_then(|mime| handler(mime, hop));
        let is_directory = hop.kind == Some(FileKind::Directory);
        named.or(is_directory.then_some(b"httpd/unix-directory"))
    }

    /// `LimitRequestBody`: the most bytes of content that the request may have; `None` for no limit.
    pub fn content_bytes_max(&self) -> Option<u64> {
        let config = self.scratch.hop.config.as_deref();
        config.unwrap_or(&self.site.program().servers[self.server].base).content_bytes_max()
    }
}

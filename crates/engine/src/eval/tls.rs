//! What TLS has to do with a request: whether its connection may carry it, and the variables.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_kernel.c`, `ssl_hook_ReadReq`, `ssl_hook_Access`, `ssl_hook_Fixup`;
//! `ssl_engine_vars.c`, `ssl_var_lookup`.

use super::{Config, Hop, Run};
use crate::expr::Capture;
use crate::program::TlsAccess;
use crate::request::Scheme;
use crate::tls::TlsExports;

impl Run<'_> {
    /// Whether a connection for which one server shook hands may carry a request for this one; else the
    /// status.
    pub(super) fn check_tls(&self) -> Result<(), u16> {
        let Some(tls) = &self.request.tls else { return Ok(()) };
        if tls.name.is_some() {
            if self.host.is_empty() {
                return Err(400);
            }
        } else if self.program.servers.len() > 1 {
            // Either the server that shook hands or this one may insist on a name.
            let shook = self.program.server_of_address(self.request.local);
            if self.server.strict_sni || shook.strict_sni {
                return Err(403);
            }
        }
        if tls.class == self.server.tls_class { Ok(()) } else { Err(421) }
    }

    /// `SSLRequireSSL`, `SSLVerifyClient` of a section, and `SSLRequire`.
    pub(super) fn tls_passes(&mut self, hop: &Hop, access: &TlsAccess) -> bool {
        if access.required && self.request.scheme != Scheme::Https {
            return false;
        }
        // Apache asks for the certificate now, and refuses who cannot be asked again.
        if access.client == Some(true) && self.request.tls.is_some() && !self.is_client_verified() {
            return false;
        }
        access.tests.iter().all(|test| self.holds(test, hop, &mut Capture::default()))
    }

    /// Whether the client has shown a certificate of an authority that is known.
    pub(super) fn is_client_verified(&self) -> bool {
        let mut verified = Vec::new();
        self.write_tls_variable(b"SSL_CLIENT_VERIFY", &mut verified);
        verified == b"SUCCESS"
    }

    /// `HTTPS`, `SSL_TLS_SNI`, and what `SSLOptions` wants to be variables of the request.
    pub(super) fn set_tls_env(&self, hop: &mut Hop, config: &Config<'_>) {
        let Some(tls) = &self.request.tls else { return };
        hop.env.set(b"HTTPS", b"on");
        if let Some(name) = tls.name {
            hop.env.set(b"SSL_TLS_SNI", name.as_bytes());
        }
        let access = &config.get().access.tls;
        let exports = TlsExports {
            standard: access.variables == Some(true),
            certificates: access.certificates == Some(true),
        };
        if exports.standard || exports.certificates {
            tls.variables.export(exports, &mut |name, value| hop.env.set(name.as_bytes(), value));
        }
    }

    /// Appends a variable of mod_ssl; false if there is none of the name, or no TLS.
    pub(super) fn write_tls_variable(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(tls) = &self.request.tls else { return false };
        let Ok(name) = std::str::from_utf8(name) else { return false };
        tls.variables.write(name, out)
    }
}

//! Which versions of HTTP a server speaks: `Protocols`, and the limits of HTTP/2.

/// A protocol that a connection can speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `http/1.1`, and 1.0 with it.
    Http11,
    /// `h2`: HTTP/2 over TLS.
    H2,
    /// `h2c`: HTTP/2 without TLS.
    H2c,
}

/// What a server says about the protocols of its connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocols {
    /// `Protocols`, the preferred first; default `http/1.1` alone.
    pub order: Vec<Protocol>,
    /// `ProtocolsHonorOrder`: whether our order counts and not the client's; default on.
    pub own_order: bool,
    /// `H2Direct`: whether a connection without TLS may begin with HTTP/2; default on with `h2c`.
    pub h2_direct: bool,
    /// `H2MaxSessionStreams`: requests that one connection may have at a time; default 100.
    pub h2_streams_max: u32,
    /// `H2WindowSize`: bytes of content that a client may send ahead; default 65535.
    pub h2_window_bytes: u32,
}

impl Protocols {
    /// Whether connections may speak `protocol`.
    pub fn has(&self, protocol: Protocol) -> bool {
        self.order.contains(&protocol)
    }
}

//! How the servers are reached: TLS, proxies, sockets, addresses.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use milepost_load::{
    CipherList, ConnectTo, HttpUrl, Identity, Names, Plan, Proxy, Resumption, Router, TlsSettings,
    TlsVersion, Version,
};

/// Source addresses of one option at most: more than a machine has.
const SOURCES_MAX: u128 = 65_536;

/// Arguments about the network.
#[derive(Debug, clap::Args)]
#[group(id = "network")]
pub(super) struct Args {
    /// Speak HTTP/2: with https if the server offers it, with http by prior knowledge
    #[arg(long, conflicts_with = "no_keep_alive", help_heading = "Connections")]
    http2: bool,

    /// Speak HTTP/1.0
    #[arg(long = "http1.0", conflicts_with_all = ["http2", "pipeline"])]
    #[arg(help_heading = "Connections")]
    http1_0: bool,

    /// Streams at a time on each connection of HTTP/2
    #[arg(long, value_name = "N", requires = "http2", default_value_t = 1)]
    #[arg(help_heading = "Connections")]
    streams: usize,

    /// Send N requests at a time on each connection, without waiting for their answers
    #[arg(long, value_name = "N", conflicts_with_all = ["http2", "no_keep_alive"])]
    #[arg(help_heading = "Connections")]
    pipeline: Option<usize>,

    /// Look up the hosts anew so often; new connections go to all their addresses in turn
    #[arg(long, value_name = "TIME", value_parser = super::plan::duration)]
    #[arg(help_heading = "Connections")]
    resolve_every: Option<Duration>,

    /// Connect to TO_HOST:TO_PORT for HOST:PORT; what is empty means any, or the same; repeatable
    #[arg(long, value_name = "HOST:PORT:TO_HOST:TO_PORT", value_parser = ConnectTo::parse)]
    #[arg(help_heading = "Connections")]
    connect_to: Vec<ConnectTo>,

    /// Connect to this Unix socket, whatever the URL says
    #[arg(long, value_name = "PATH", conflicts_with = "proxy", help_heading = "Connections")]
    unix_socket: Option<PathBuf>,

    /// Go through this HTTP proxy; for https through a tunnel (CONNECT)
    #[arg(long, value_name = "HOST:PORT", value_parser = proxy, help_heading = "Connections")]
    proxy: Option<Proxy>,

    /// Credentials for the proxy
    #[arg(long, value_name = "USER:PASSWORD", requires = "proxy", help_heading = "Connections")]
    proxy_user: Option<String>,

    /// Make tunnels for http too
    #[arg(long, requires = "proxy", help_heading = "Connections")]
    proxy_tunnel: bool,

    /// Local addresses that connections are opened from in turn: one, FIRST-LAST, or ADDRESS/BITS;
    /// repeatable
    #[arg(long, value_name = "ADDRESSES", value_parser = sources, help_heading = "Connections")]
    source: Vec<Sources>,

    /// Oldest version of TLS: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", value_parser = TlsVersion::parse, help_heading = "TLS")]
    tls_min: Option<TlsVersion>,

    /// Newest version of TLS: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", value_parser = TlsVersion::parse, help_heading = "TLS")]
    tls_max: Option<TlsVersion>,

    /// Ciphers, as OpenSSL calls them, apart by colons
    #[arg(long, value_name = "CIPHERS", value_parser = CipherList::parse, help_heading = "TLS")]
    ciphers: Option<CipherList>,

    /// Whether new connections take up the sessions of earlier ones
    #[arg(long, value_name = "HOW", default_value = "tickets", help_heading = "TLS")]
    tls_resume: ResumeArg,

    /// Certificates of authorities to trust, in PEM form, instead of those of the system
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = "TLS")]
    cacert: Option<PathBuf>,

    /// Take any certificate
    #[arg(short = 'k', long, help_heading = "TLS")]
    insecure: bool,

    /// Certificate of the client with its chain, in PEM form
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    cert: Option<PathBuf>,

    /// Key of that certificate, if it is not in the same file
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "TLS")]
    key: Option<PathBuf>,

    /// Name that the server is asked for, instead of the host of the URL
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    server_name: Option<String>,

    /// Do not tell the server the name that it is asked for
    #[arg(long, help_heading = "TLS")]
    no_sni: bool,
}

/// What is taken up again.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ResumeArg {
    /// With tickets, or in TLS 1.2 what the server offers
    Tickets,
    /// In TLS 1.2 only with session ids
    Ids,
    /// Every handshake is a full one
    Off,
}

/// Some source addresses.
#[derive(Debug, Clone)]
struct Sources(Vec<IpAddr>);

impl Args {
    /// The way to the servers.
    pub(super) fn router(&self) -> Router {
        let mut router = Router::default();
        router.connect_to.clone_from(&self.connect_to);
        router.unix_socket.clone_from(&self.unix_socket);
        router.proxy.clone_from(&self.proxy);
        if let Some(proxy) = &mut router.proxy {
            proxy.authorization = self.proxy_user.as_deref().map(milepost_load::basic_credentials);
            // A proxy that forwards requests speaks HTTP/1 with whoever asks.
            proxy.tunnels_all = self.proxy_tunnel || self.http2;
        }
        router
    }

    /// All addresses of the hosts, if they are wanted.
    pub(super) fn names(&self, router: &Router) -> Option<Arc<Names>> {
        self.resolve_every.map(|every| Arc::new(router.names(Some(every))))
    }

    /// Adds to the plan what it has to know. Reads files; those of the authorities only if the run
    /// `speaks_tls`, or `may_speak_tls` and the system has some.
    pub(super) fn complete(
        &self,
        plan: &mut Plan,
        speaks_tls: bool,
        may_speak_tls: bool,
    ) -> anyhow::Result<()> {
        plan.http2 = self.http2.then_some(self.streams);
        plan.pipeline = self.pipeline;
        if self.http1_0 {
            for target in &mut plan.targets {
                target.version = Version::Http10;
            }
        }
        plan.connect_to.clone_from(&self.connect_to);
        plan.sources = self.source.iter().flat_map(|Sources(list)| list.iter().copied()).collect();
        let tls = &mut plan.tls;
        tls.version_min = self.tls_min.unwrap_or_default();
        tls.version_max = self.tls_max;
        tls.ciphers.clone_from(&self.ciphers);
        tls.server_name.clone_from(&self.server_name);
        tls.hides_server_name = self.no_sni;
        tls.trusts_any = self.insecure;
        tls.resumption = match self.tls_resume {
            ResumeArg::Tickets => Resumption::Tickets,
            ResumeArg::Ids => Resumption::SessionIds,
            ResumeArg::Off => Resumption::Off,
        };
        if let Some(file) = &self.cert {
            let certificate = read(file)?;
            let key = self.key.as_deref().map(read).transpose()?;
            let identity = Identity::from_pem(&certificate, key.as_ref().unwrap_or(&certificate));
            let place = self.key.as_ref().unwrap_or(file).display();
            tls.identity = Some(Arc::new(identity.with_context(|| format!("{place}"))?));
        }
        match &self.cacert {
            Some(file) => {
                tls.trust_pem(&read(file)?).with_context(|| file.display().to_string())?;
            }
            None if self.insecure => {}
            None if speaks_tls => trust_system(tls)?,
            // Without them such a redirect is an error that says so.
            None if may_speak_tls => drop(trust_system(tls)),
            None => {}
        }
        Ok(())
    }
}

/// Trusts whom the system trusts.
pub(super) fn trust_system(tls: &mut TlsSettings) -> anyhow::Result<()> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map_or(String::new(), |error| format!(" ({error})"));
        return Err(anyhow!(
            "the system has no certificates of authorities{why}: name some with --cacert, or take any \
             certificate with --insecure"
        ));
    }
    tls.trusted.extend(found.certs);
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

fn proxy(text: &str) -> Result<Proxy, String> {
    Proxy::parse(text).map_err(|error| error.to_string())
}

/// Reads one address, a range or a network.
fn sources(text: &str) -> Result<Sources, String> {
    let fault = |what: &str| format!("{what}; ADDRESS, FIRST-LAST or ADDRESS/BITS is needed");
    let address = |text: &str| {
        text.parse::<IpAddr>().map_err(|_| fault(&format!("{text:?} is no IP address")))
    };
    let (first, last) = if let Some((first, last)) = text.split_once('-') {
        (address(first)?, address(last)?)
    } else if let Some((network, bits)) = text.split_once('/') {
        let network = address(network)?;
        let width = if network.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse::<u32>().ok().filter(|bits| (1..=width).contains(bits));
        let bits = bits.ok_or_else(|| fault("the number of bits does not fit"))?;
        let hosts = if bits == width { 0 } else { (1_u128 << (width - bits)) - 1 };
        let first = number(network) & !hosts;
        // The first and the last of a network of IPv4 are its own and that of all.
        let inner = u128::from(network.is_ipv4() && hosts > 2);
        (like(network, first + inner), like(network, (first | hosts) - inner))
    } else {
        let only = address(text)?;
        (only, only)
    };
    let (from, to) = (number(first), number(last));
    if first.is_ipv4() != last.is_ipv4() || from > to || to - from >= SOURCES_MAX {
        return Err(fault(&format!("{text} is no range of 1 to {SOURCES_MAX} addresses")));
    }
    Ok(Sources((from..=to).map(|it| like(first, it)).collect()))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The address with that number, of the same family.
fn like(address: IpAddr, number: u128) -> IpAddr {
    match address {
        // It came from one, and stays in its network.
        IpAddr::V4(_) => IpAddr::V4((number as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    }
}

/// Whether any of the URLs is asked for with TLS.
pub(super) fn speaks_tls<'a>(mut urls: impl Iterator<Item = &'a HttpUrl>) -> bool {
    urls.any(|url| url.scheme() == milepost_load::Scheme::Https)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_addresses_are_one_a_range_or_a_network() {
        let shown = |text: &str| {
            let Sources(list) = sources(text).unwrap();
            (list.len(), list[0].to_string(), list[list.len() - 1].to_string())
        };
        let of = |count, first: &str, last: &str| (count, first.to_owned(), last.to_owned());
        assert_eq!(shown("127.0.0.1"), of(1, "127.0.0.1", "127.0.0.1"));
        assert_eq!(shown("127.0.0.9-127.0.1.2"), of(250, "127.0.0.9", "127.0.1.2"));
        assert_eq!(shown("127.0.3.7/24"), of(254, "127.0.3.1", "127.0.3.254"));
        assert_eq!(shown("127.0.3.7/32"), of(1, "127.0.3.7", "127.0.3.7"));
        assert_eq!(shown("fd00::/120"), of(256, "fd00::", "fd00::ff"));
        for wrong in ["", "h", "127.0.0.2-127.0.0.1", "127.0.0.0/0", "127.0.0.0/8", "::1-127.0.0.1"]
        {
            assert!(sources(wrong).unwrap_err().contains("FIRST-LAST"), "{wrong}");
        }
    }
}

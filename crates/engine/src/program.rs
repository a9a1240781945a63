//! What a configuration means: servers, sections, and the ordered rule lists of each.
//!
//! Built once, then only read. Everything is resolved as far as Apache resolves it before the first
//! request: virtual hosts have the main server's sections and redirects merged in, in Apache's order.

mod access;
mod alias;
mod directory;
mod edit;
mod environment;
mod error_document;
mod expires;
mod expression;
mod hosts;
mod listing;
mod map;
mod mime;
mod part;
mod proxy;
mod remote_ip;
mod rewrite;
mod roots;
mod section;
mod types;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;

pub(crate) use access::{
    Access, AuthType, Host, HostOrder, HostRules, Limit, Merging, Methods, Network, RequireKind,
    RequireTest, Requirement, TlsAccess,
};
pub(crate) use alias::{AliasList, AliasMatcher, AliasRule};
pub(crate) use directory::{
    AllowedMethods, DirConfig, Naming, Options, Override, RewriteDir, Spelling,
};
pub(crate) use edit::{Action, Edit, EditCondition, EditList, Edits, Piece, Replacement, Value};
pub(crate) use environment::{Attribute, EnvChange, EnvRule, EnvRules, EnvTest, FixedEnv};
pub(crate) use error_document::{Document, DocumentKind, ErrorDocument};
pub(crate) use expires::{Expires, Expiry, ExpiryBase};
pub(crate) use expression::{IfSection, SectionAlias, SectionRedirect};
pub(crate) use hosts::Hosts;
pub(crate) use listing::{
    Attached, AttachedTo, Column, Description, IndexOptions, ListFlags, Listed, Listing, Width,
    find as find_attached,
};
pub(crate) use map::{InternalMap, Map, QueryMap};
pub(crate) use mime::{Attribute as ExtensionAttribute, Extension, Mime, Priority, Script};
pub(crate) use part::Part;
pub(crate) use proxy::{
    Mapping, PassList, PassStyle, ProxyDir, ProxyServer, SectionPass, SectionPassMatcher,
};
pub(crate) use remote_ip::{RemoteIp, TrustedProxy};
pub(crate) use rewrite::{
    BackrefEscape, Comparison, Condition, Effect, Extra, FileTest, Flags, RewriteList,
    RewriteOptions, RewriteRule, Substitution, Test,
};
pub(crate) use roots::{HostRoot, HostRoots, RootPiece, Span, UserDir};
pub(crate) use section::{Scope, Section, SectionMatcher};
pub(crate) use types::Types;

use crate::build::Modules;
use crate::decision::Place;
use crate::helper::{Database, MapProgram};
use crate::index::Lookup;
use crate::pool::{Pool, Str};
use crate::proxy::{Backend, Balancer};
use crate::settings::Settings;

/// A compiled configuration.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) pool: Pool,
    pub(crate) settings: Settings,
    /// The main server, then the virtual hosts in order.
    pub(crate) servers: Vec<Server>,
    pub(crate) hosts: Hosts,
    /// What `<IfDefine>`, `${…}` and `<IfModule>` in `.htaccess` files go by.
    pub(crate) names: Names,
    pub(crate) lookup: Lookup,
    pub(crate) purpose: crate::build::Purpose,
    /// `RegexDefaultOptions` as it was at the end: what patterns of `.htaccess` files mean.
    pub(crate) regex: milepost_pcre::Options,
    /// Programs of `prg:` maps.
    pub(crate) programs: Vec<MapProgram>,
    /// Databases, one for each server.
    pub(crate) databases: Vec<Database>,
    /// Whether mod_proxy is there: one of its directives is, or the module was named.
    pub(crate) proxies: bool,
    pub(crate) backends: Vec<Backend>,
    pub(crate) balancers: Vec<Balancer>,
    /// Whether logs show variables.
    pub(crate) logs_variables: bool,
    /// Media types by extension, read when first asked for.
    pub(crate) types: OnceLock<Types>,
}

impl Program {
    /// The first server of an address.
    pub(crate) fn server_of_address(&self, local: SocketAddr) -> &Server {
        &self.servers[crate::eval::select(self, local, b"", b"")]
    }
}

/// Names that later text can ask for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// `Define` and `-D`.
    pub(crate) defines: HashMap<Vec<u8>, Vec<u8>>,
    pub(crate) modules: Modules,
}

/// The main server or a virtual host.
#[derive(Debug, Default)]
pub(crate) struct Server {
    /// `ServerName`, in lower case.
    pub(crate) name: Option<ServerName>,
    /// `ServerAlias`, in lower case, with `*` and `?`.
    pub(crate) aliases: Vec<Str>,
    /// The addresses of `<VirtualHost …>`; none for the main server.
    pub(crate) addresses: Vec<Address>,
    pub(crate) document_root: Option<Str>,
    pub(crate) remote_ip: RemoteIp,
    pub(crate) user_dir: UserDir,
    pub(crate) host_roots: HostRoots,
    /// `ServerPath`: requests without a host that begin with it are for this server.
    pub(crate) path: Option<Str>,
    /// The configuration outside all sections.
    pub(crate) base: DirConfig,
    pub(crate) locations: Vec<Part<Section>>,
    /// Sorted as Apache walks them: by number of segments, then the regular expressions.
    pub(crate) directories: Vec<Part<Section>>,
    pub(crate) redirects: Vec<Part<AliasList>>,
    pub(crate) path_aliases: Vec<Part<AliasList>>,
    pub(crate) passes: Vec<Part<PassList>>,
    pub(crate) proxy: ProxyServer,
    /// `<Proxy>`
    pub(crate) proxy_sections: Vec<Part<Section>>,
    pub(crate) rewrite: Vec<Part<RewriteList>>,
    pub(crate) rewrite_options: RewriteOptions,
    /// `SetEnvIf` outside sections, the main server's first.
    pub(crate) env_if: Vec<Part<EnvRules>>,
    pub(crate) maps: HashMap<Box<[u8]>, Arc<Map>, RandomState>,
    /// The number of its database.
    pub(crate) database: usize,
    pub(crate) merge_slashes: bool,
    /// `TraceEnable`; `None`: on.
    pub(crate) trace: Option<Trace>,
    /// `AccessFileName`; none for the usual one.
    pub(crate) access_names: Vec<Str>,
    /// `LimitInternalRecursion`: internal redirects, subrequests.
    pub(crate) recursion_max: (u32, u32),
    pub(crate) place: Option<Place>,
    /// `TlsServer::class`; 0 where TLS is off.
    pub(crate) tls_class: u64,
    /// `SSLStrictSNIVHostCheck`
    pub(crate) strict_sni: bool,
}

/// `TraceEnable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace {
    Off,
    On,
    /// A request with content is answered too.
    Extended,
}

/// `ServerName [scheme://]host[:port]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerName {
    pub(crate) https: bool,
    pub(crate) host: Str,
    pub(crate) port: Option<u16>,
}

/// One address of a `<VirtualHost>`; `None` is any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    pub(crate) ip: Option<IpAddr>,
    pub(crate) port: Option<u16>,
    /// As it is written, without port and brackets.
    pub(crate) text: Str,
}

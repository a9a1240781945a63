//! Directives of httpd and its usual modules that cannot change where a request goes.
//!
//! They are accepted with a note, whether their module is loaded or not: what they do (types,
//! compression, caching, logs, processes) is not part of a redirect. Directives that guard access are
//! not here: leaving one of those out would open what was closed.
//!
//! Source: httpd 2.4.71, the `command_rec` tables of the modules named below.

/// Where a directive may stand besides the server configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Nowhere else.
    Server,
    /// In `.htaccess` files, with this class of `AllowOverride`.
    FileInfo,
    Indexes,
    Options,
    AuthConfig,
}

/// The class of a directive that is accepted without effect; `lower` is its name in lower case.
pub(super) fn class(lower: &[u8]) -> Option<Class> {
    let name = std::str::from_utf8(lower).ok()?;
    let mut tables = TABLES.iter();
    tables.find(|(_, names)| names.contains(&name)).map(|(class, _)| *class)
}

/// By module, and within it by class.
const TABLES: &[(Class, &[&str])] = &[
    // mod_proxy, mod_proxy_balancer: memory, forward proxies, status pages
    (
        Class::Server,
        &[
            "balancergrowth",
            "balancerinherit",
            "balancerpersist",
            "noproxy",
            "proxybadheader",
            "proxyblock",
            "proxydomain",
            "proxyiobuffersize",
            "proxymaxforwards",
            "proxyreceivebuffersize",
            "proxystatus",
        ],
    ),
    // core, the MPMs, mod_unixd, mod_so, mod_http
    (
        Class::Server,
        &[
            "acceptfilter",
            "chrootdir",
            "coredumpdirectory",
            "defaultruntimedir",
            "enableexceptionhook",
            "errorlogformat",
            "extendedstatus",
            "flushmaxpipelined",
            "flushmaxthreshold",
            "hostnamelookups",
            "httpprotocoloptions",
            "listencoresbucketsratio",
            "loadfile",
            "loglevel",
            "maxconnectionsperchild",
            "maxmemfree",
            "maxranges",
            "maxrangeoverlaps",
            "maxrangereversals",
            "maxrequestsperchild",
            "maxrequestsperthread",
            "maxspareservers",
            "maxsparethreads",
            "mergetrailers",
            "minspareservers",
            "minsparethreads",
            "mutex",
            "namevirtualhost",
            "receivebuffersize",
            "regexdefaultoptions",
            "registerhttpmethod",
            "rlimitcpu",
            "rlimitmem",
            "rlimitnproc",
            "scoreboardfile",
            "seerequesttail",
            "sendbuffersize",
            "serverlimit",
            "servertokens",
            "startservers",
            "startthreads",
            "stricthostcheck",
            "threadlimit",
            "threadsperchild",
            "threadstacksize",
            "traceenable",
            "typesconfig",
            "unsafealtsvc",
        ],
    ),
    (
        Class::FileInfo,
        &[
            "addoutputfilter",
            "addoutputfilterbytype",
            "addinputfilter",
            "adddefaultcharset",
            "cgimapextension",
            "cgipassauth",
            "cgivar",
            "contentdigest",
            "defaulttype",
            "enablemmap",
            "enablesendfile",
            "fileetag",
            "forcetype",
            "limitxmlrequestbody",
            "qualifyredirecturl",
            "readbuffersize",
            "serversignature",
            "sethandler",
            "setinputfilter",
            "setoutputfilter",
        ],
    ),
    // mod_mime, mod_mime_magic, mod_negotiation, mod_charset_lite
    (
        Class::FileInfo,
        &[
            "addcharset",
            "addencoding",
            "addhandler",
            "addlanguage",
            "addtype",
            "cachenegotiateddocs",
            "charsetdefault",
            "charsetoptions",
            "charsetsourceenc",
            "defaultlanguage",
            "forcelanguagepriority",
            "languagepriority",
            "mimemagicfile",
            "modmimeusepathinfo",
            "multiviewsmatch",
            "removecharset",
            "removeencoding",
            "removehandler",
            "removeinputfilter",
            "removelanguage",
            "removeoutputfilter",
            "removetype",
        ],
    ),
    // mod_expires, mod_autoindex
    (
        Class::Indexes,
        &[
            "addalt",
            "addaltbyencoding",
            "addaltbytype",
            "adddescription",
            "addicon",
            "addiconbyencoding",
            "addiconbytype",
            "defaulticon",
            "expiresactive",
            "expiresbytype",
            "expiresdefault",
            "headername",
            "indexheadinsert",
            "indexignore",
            "indexignorereset",
            "indexoptions",
            "indexorderdefault",
            "indexstylesheet",
            "readmename",
        ],
    ),
    // mod_deflate, mod_brotli, mod_filter, mod_include, mod_substitute, mod_ext_filter, mod_sed
    (
        Class::FileInfo,
        &[
            "addfilter",
            "brotlialteretag",
            "brotlicompressionmaxinputblock",
            "brotlicompressionquality",
            "brotlicompressionwindow",
            "brotlifilternote",
            "deflatealteretag",
            "deflatebuffersize",
            "deflatecompressionlevel",
            "deflatefilternote",
            "deflateinflatelimitrequestbody",
            "deflateinflateratioburst",
            "deflateinflateratiolimit",
            "deflatememlevel",
            "deflatewindowsize",
            "extfilterdefine",
            "extfilteroptions",
            "filterchain",
            "filterdeclare",
            "filterprotocol",
            "filterprovider",
            "filtertrace",
            "inputsed",
            "outputsed",
            "ssiendtag",
            "ssierrormsg",
            "ssietag",
            "ssilastmodified",
            "ssilegacyexprparser",
            "ssistarttag",
            "ssitimeformat",
            "ssiundefinedecho",
            "substitute",
            "substituteinheritbefore",
            "substitutemaxlinelength",
            "xbithack",
        ],
    ),
    // mod_cache and its kin, mod_file_cache, mod_http2, mod_status, mod_info, mod_userdir off, mod_cgi
    (
        Class::Server,
        &[
            "cachedefaultexpire",
            "cachedirlength",
            "cachedirlevels",
            "cachedisable",
            "cacheenable",
            "cachefile",
            "cacheheader",
            "cacheignorecachecontrol",
            "cacheignoreheaders",
            "cacheignorenolastmod",
            "cacheignorequerystring",
            "cacheignoreurlsessionidentifiers",
            "cachekeybaseurl",
            "cachelastmodifiedfactor",
            "cachelock",
            "cachelockmaxage",
            "cachelockpath",
            "cachemaxexpire",
            "cachemaxfilesize",
            "cacheminexpire",
            "cacheminfilesize",
            "cachequickhandler",
            "cachereadsize",
            "cachereadtime",
            "cacheroot",
            "cachesocache",
            "cachestaleonerror",
            "cachestoreexpired",
            "cachestorenostore",
            "cachestoreprivate",
            "h2copyfiles",
            "h2earlyhints",
            "h2maxworkeridleseconds",
            "h2maxworkers",
            "h2minworkers",
            "h2moderntlsonly",
            "h2outputbuffering",
            "h2padding",
            "h2push",
            "h2pushdiarysize",
            "h2pushpriority",
            "h2pushresource",
            "h2serializeheaders",
            "h2streammaxmemsize",
            "h2tlscooldownsize",
            "h2tlswarmupsize",
            "h2upgrade",
            "mmapfile",
            "scriptlog",
            "scriptlogbuffer",
            "scriptloglength",
            "scriptsock",
        ],
    ),
    // mod_log_config, mod_log_forensic, mod_logio, mod_usertrack, mod_unique_id, mod_ident
    (
        Class::Server,
        &[
            "bufferedlogs",
            "cookielog",
            "forensiclog",
            "identitycheck",
            "identitychecktimeout",
            "logiotrackttfb",
        ],
    ),
    (
        Class::FileInfo,
        &[
            "cookiedomain",
            "cookieexpires",
            "cookiename",
            "cookiestyle",
            "cookietracking",
            "metadir",
            "metafiles",
            "metasuffix",
        ],
    ),
    // mod_ssl: where randomness comes from, hardware, and how a responder would be asked
    (
        Class::Server,
        &[
            "sslcryptodevice",
            "sslocspdefaultresponder",
            "sslocspnoverify",
            "sslocspoverrideresponder",
            "sslocspproxyurl",
            "sslocsprespondercertificatefile",
            "sslocsprespondertimeout",
            "sslocspresponsemaxage",
            "sslocspresponsetimeskew",
            "sslocspuserequestnonce",
            "sslpassphrasedialog",
            "sslrandomseed",
            "sslstaplingcache",
            "sslstaplingerrorcachetimeout",
            "sslstaplingfaketrylater",
            "sslstaplingforceurl",
            "sslstaplingrespondertimeout",
            "sslstaplingresponsemaxage",
            "sslstaplingresponsetimeskew",
            "sslstaplingreturnrespondererrors",
            "sslstaplingstandardcachetimeout",
        ],
    ),
    (Class::AuthConfig, &["sslrenegbuffersize"]),
    // mod_php: settings of the interpreter, which never runs here
    (Class::Options, &["php_flag", "php_value"]),
    (Class::Server, &["php_admin_flag", "php_admin_value", "phpinidir"]),
    // names of realms and files of passwords alone guard nothing; `Require` does
    (
        Class::AuthConfig,
        &[
            "authbasicprovider",
            "authbasicauthoritative",
            "authdigestprovider",
            "authgroupfile",
            "authuserfile",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_lower_case_and_in_one_table() {
        let mut all: Vec<&str> =
            TABLES.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert!(all.iter().all(|name| !name.bytes().any(|byte| byte.is_ascii_uppercase())));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn what_guards_access_is_not_harmless() {
        for name in ["require", "satisfy", "order", "allow", "deny", "authzsendforbiddenonfailure"]
        {
            assert_eq!(class(name.as_bytes()), None, "{name}");
        }
    }
}

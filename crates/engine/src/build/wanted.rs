//! What values directives want that have no effect here: words, numbers, files.
//!
//! A table of what httpd refuses, so that a configuration that it does not load is not loaded here. Numbers
//! are read as httpd reads them, which for most means that what is no number is 0.
//!
//! Source: `httpd -t` of 2.4.71 on a score of values for each directive (`crates/testkit/examples/values.rs`).

mod refuse;

use milepost_syntax::Word;

use super::Builder;
use super::report::Finding;

/// What an argument has to be.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// One of these, in any case.
    Word(&'static [&'static str]),
    /// A word that begins with one of these, in any case.
    Start(&'static [&'static str]),
    /// From one number to the other, by the digits it begins with.
    Number(i64, i64),
    /// As `Number`, with nothing behind the digits.
    Whole(i64, i64),
    /// 0, or from this number on.
    ZeroOr(i64),
    /// A number of seconds, or of another unit behind it.
    Time,
    /// Something that begins with a digit.
    Digit,
    /// A file that is there and not empty.
    File,
    /// A directory that is there.
    Directory,
    /// A word that is not empty; without it, the directive is not whole.
    Present,
    /// A number as it is written, with a sign or a point.
    Decimal,
    /// Bytes, with `b`, `k`, `m` or `g` behind the digits.
    Bytes,
    /// As `Bytes`, with `k` or `m` alone, and from this number on.
    Size(i64),
    /// A number of days or of another unit, or a part of a hundred.
    Window,
    /// As `Window`, without parts, and not below this number of milliseconds.
    Span(i64),
    /// One of these, in any case, before a `:` or the end.
    Before(&'static [&'static str]),
    /// One of these, in any case, or a URL.
    UrlOr(&'static [&'static str]),
    /// As `File`, or one of these words.
    FileOr(&'static [&'static str]),
    /// Text with this in it.
    With(&'static str),
    /// An address, a network, or the name of a host.
    Address,
    /// A condition as in `<If>`.
    Condition,
}

use Wanted::{
    Address, Before, Bytes, Condition, Decimal, Digit, Directory, File, FileOr, Number, Present,
    Size, Span, Start, Time, UrlOr, Whole, Window, With, Word as OneOf, ZeroOr,
};

/// In the place of an argument's number: each argument.
const EACH: usize = usize::MAX;
/// In the place of an argument's number: each but the first.
const OTHERS: usize = usize::MAX - 1;

const MOST: i64 = i64::MAX;
const U32: i64 = u32::MAX as i64;
const I32: i64 = i32::MAX as i64;
const ON_OFF: Wanted = OneOf(&["on", "off"]);
const MUTEXES: Wanted =
    Start(&["none", "default", "flock", "fcntl", "file", "pthread", "sysvsem", "posixsem", "sem"]);
const PROTOCOL_OPTIONS: Wanted =
    OneOf(&["Unsafe", "Strict", "RegisteredMethods", "LenientMethods", "Require1.0", "Allow0.9"]);
const CHARSET_OPTIONS: Wanted =
    OneOf(&["ImplicitAdd", "NoImplicitAdd", "TranslateAllMimeTypes", "NoTranslateAllMimeTypes"]);
const RENEWALS: Wanted = OneOf(&["auto", "manual", "always"]);
const CACHES: Wanted = Before(&["dbm", "dc", "memcache", "redis", "shmcb"]);
const CERTIFICATES: Wanted = OneOf(&[
    "CA_DER",
    "CA_BASE64",
    "CA_CERT7_DB",
    "CA_SECMOD",
    "CERT_DER",
    "CERT_BASE64",
    "CERT_KEY3_DB",
    "CERT_NICKNAME",
    "CERT_PFX",
    "KEY_DER",
    "KEY_BASE64",
    "KEY_PFX",
]);
const REGEX_OPTIONS: Wanted = OneOf(&[
    "none",
    "icase",
    "+icase",
    "-icase",
    "dotall",
    "+dotall",
    "-dotall",
    "dollar_endonly",
    "+dollar_endonly",
    "-dollar_endonly",
]);

/// Name in lower case, how many arguments there are if that matters, which of them is meant, from 0 ([`EACH`]
/// and [`OTHERS`] for several), and what it has to be.
const WANTED: &[(&str, Option<usize>, usize, Wanted)] = &[
    ("allowconnect", None, 0, Whole(0, MOST)),
    ("authbasicusedigestalgorithm", None, 0, OneOf(&["Off", "MD5"])),
    ("authdigestalgorithm", None, 0, OneOf(&["MD5"])),
    ("authdigestnoncelifetime", None, 0, Whole(i64::MIN, MOST)),
    ("authdigestqop", None, 0, OneOf(&["auth"])),
    ("authdigestshmemsize", None, 0, Size(88)),
    ("authformsize", None, 0, Number(0, MOST - 1)),
    (
        "authldapdereferencealiases",
        None,
        0,
        OneOf(&["never", "searching", "finding", "always", "on", "off"]),
    ),
    ("authncachesocache", None, 0, CACHES),
    ("authnzfcgidefineprovider", None, 0, OneOf(&["authn", "authz", "authnz"])),
    ("authnzfcgidefineprovider", None, 0, Present),
    ("authnzfcgidefineprovider", None, 2, Start(&["fcgi://"])),
    ("authnzfcgidefineprovider", None, 2, Present),
    ("authnzfcgicheckauthnprovider", None, 0, Present),
    ("authldapurl", None, 0, Start(&["ldap://", "ldaps://", "ldapi://"])),
    ("balancergrowth", None, 0, Number(0, 1000)),
    ("brotlialteretag", None, 0, OneOf(&["AddSuffix", "NoChange", "Remove"])),
    ("brotlicompressionmaxinputblock", None, 0, Number(16, 24)),
    ("brotlicompressionquality", None, 0, Number(0, 11)),
    ("brotlicompressionwindow", None, 0, Number(10, 24)),
    ("brotlifilternote", Some(2), 0, OneOf(&["ratio", "input", "output"])),
    ("buffersize", None, 0, Number(1, MOST - 1)),
    ("cachedirlength", None, 0, Number(1, 20)),
    ("cachedirlevels", None, 0, Number(1, 20)),
    ("cachekeybaseurl", None, 0, UrlOr(&[])),
    ("cachelastmodifiedfactor", None, 0, Decimal),
    ("cachelockmaxage", None, 0, Number(1, MOST)),
    ("cachemaxfilesize", None, 0, Number(0, MOST - 1)),
    ("cacheminfilesize", None, 0, Number(0, MOST - 1)),
    ("cachereadsize", None, 0, Number(0, MOST - 1)),
    ("cachereadtime", None, 0, Number(0, MOST - 1)),
    ("cachesocache", None, 0, CACHES),
    ("cachesocachemaxsize", None, 0, Whole(1024, U32)),
    ("cachesocachemaxtime", None, 0, Number(0, MOST - 1)),
    ("cachesocachemintime", None, 0, Number(0, MOST - 1)),
    ("cachesocachereadsize", None, 0, Number(0, MOST - 1)),
    ("cachesocachereadtime", None, 0, Number(0, MOST - 1)),
    ("cgidscripttimeout", None, 0, Time),
    ("cgiscripttimeout", None, 0, Time),
    ("cgivar", None, 0, OneOf(&["REQUEST_URI"])),
    ("cgivar", None, 1, OneOf(&["original-uri", "current-uri"])),
    ("charsetoptions", None, 0, CHARSET_OPTIONS),
    ("chrootdir", None, 0, Directory),
    ("cookiedomain", None, 0, Start(&["."])),
    ("cookieexpires", None, 0, Digit),
    ("cookiesamesite", None, 0, OneOf(&["Strict", "Lax", "None"])),
    ("cookiestyle", None, 0, OneOf(&["Netscape", "Cookie", "Cookie2", "RFC2109", "RFC2965"])),
    ("coredumpdirectory", None, 0, Directory),
    ("dav", None, 0, OneOf(&["on", "off", "filesystem", "svn"])),
    ("davmintimeout", None, 0, Number(0, MOST - 1)),
    ("defaultruntimedir", None, 0, Directory),
    ("deflatealteretag", None, 0, OneOf(&["AddSuffix", "NoChange", "Remove"])),
    ("deflatefilternote", Some(2), 0, OneOf(&["ratio", "input", "output"])),
    ("deflateinflatelimitrequestbody", None, 0, Whole(0, MOST)),
    ("deflateinflateratioburst", None, 0, Number(1, I32)),
    ("deflateinflateratiolimit", None, 0, Number(1, I32)),
    (
        "extfilteroptions",
        None,
        EACH,
        Start(&["debuglevel=", "logstderr", "nologstderr", "onfail="]),
    ),
    ("errorlogformat", Some(2), 0, OneOf(&["request", "connection"])),
    ("flushmaxpipelined", None, 0, Whole(-1, I32)),
    ("flushmaxthreshold", None, 0, Whole(0, U32)),
    ("h2copyfiles", None, 0, ON_OFF),
    ("h2earlyhints", None, 0, ON_OFF),
    ("h2maxdataframelen", None, 0, Number(0, MOST - 1)),
    ("h2maxheaderblocklen", None, 0, Number(0, MOST - 1)),
    ("h2maxstreamerrors", None, 0, Number(0, MOST - 1)),
    ("h2maxworkeridleseconds", None, 0, Time),
    ("h2maxworkers", None, 0, Number(1, I32)),
    ("h2minworkers", None, 0, Number(1, I32)),
    ("h2moderntlsonly", None, 0, ON_OFF),
    ("h2outputbuffering", None, 0, ON_OFF),
    ("h2padding", None, 0, Number(0, 8)),
    ("h2proxyrequests", None, 0, ON_OFF),
    ("h2push", None, 0, ON_OFF),
    ("h2pushdiarysize", None, 0, Number(0, MOST - 1)),
    ("h2pushpriority", Some(2), 1, OneOf(&["after", "before", "interleaved"])),
    ("h2pushpriority", Some(3), 1, OneOf(&["after", "before", "interleaved"])),
    ("h2streammaxmemsize", None, 0, Number(1024, I32)),
    ("h2streamtimeout", None, 0, Time),
    ("h2upgrade", None, 0, ON_OFF),
    ("h2websockets", None, 0, ON_OFF),
    ("heartbeataddress", None, 0, With(":")),
    ("heartbeatlisten", None, 0, With(":")),
    ("heartbeatmaxservers", None, 0, ZeroOr(10)),
    ("httpprotocoloptions", None, 0, PROTOCOL_OPTIONS),
    ("keptbodysize", None, 0, Whole(0, MOST)),
    ("ldapconnectionpoolttl", None, 0, Time),
    ("ldapreferralhoplimit", None, 0, Number(1, MOST)),
    ("ldapreferrals", None, 0, OneOf(&["on", "off", "default"])),
    ("ldapretries", None, 0, Number(0, MOST - 1)),
    ("ldapretrydelay", None, 0, Time),
    ("ldaptimeout", None, 0, Whole(0, MOST)),
    ("ldaptrustedclientcert", Some(2), 0, CERTIFICATES),
    ("ldaptrustedclientcert", Some(3), 0, CERTIFICATES),
    ("ldaptrustedglobalcert", Some(2), 0, CERTIFICATES),
    ("ldaptrustedglobalcert", Some(3), 0, CERTIFICATES),
    ("ldaptrustedmode", None, 0, OneOf(&["NONE", "SSL", "TLS", "STARTTLS"])),
    ("limitxmlrequestbody", None, 0, Number(0, 3_074_457_345_618_258_601)),
    ("listencoresbucketsratio", None, 0, Number(1, MOST)),
    ("listentcpdeferaccept", None, 0, Number(1, MOST)),
    ("listenbacklog", None, 0, Number(1, MOST)),
    ("logmessage", None, OTHERS, Start(&["hook=", "expr="])),
    ("luacodecache", None, 0, OneOf(&["never", "stat", "forever"])),
    ("luahookaccesschecker", Some(3), 2, OneOf(&["early", "late"])),
    ("luahookauthchecker", Some(3), 2, OneOf(&["early", "late"])),
    ("luainherit", None, 0, OneOf(&["none", "parent-first", "parent-last"])),
    ("luascope", None, 0, OneOf(&["once", "request", "conn", "thread", "server"])),
    ("maxmemfree", None, 0, Number(0, U32)),
    ("mdactivationdelay", None, 0, Span(i64::MIN)),
    ("mdbaseserver", None, 0, ON_OFF),
    (
        "mdcertificateauthority",
        None,
        EACH,
        UrlOr(&["letsencrypt", "letsencrypt-test", "buypass", "buypass-test"]),
    ),
    ("mdcertificatefile", None, 0, File),
    ("mdcertificatekeyfile", None, 0, File),
    ("mdcertificatestatus", None, 0, ON_OFF),
    ("mdchallengedns01version", None, 0, OneOf(&["1", "2"])),
    ("mdcheckinterval", None, 0, Span(1000)),
    ("mddrivemode", None, 0, RENEWALS),
    ("mdexternalaccountbinding", Some(1), 0, FileOr(&["none"])),
    ("mdhttpproxy", None, 0, UrlOr(&[])),
    ("mdinitialdelay", None, 0, Span(0)),
    ("mdmatchnames", None, 0, OneOf(&["all", "servernames"])),
    ("mdmember", None, EACH, OneOf(&["auto", "manual"])),
    ("mdmember", None, 0, Present),
    ("mdmembers", None, EACH, OneOf(&["auto", "manual"])),
    ("mdmembers", None, 0, Present),
    ("mdomain", None, 0, Present),
    ("mdportmap", None, EACH, With(":")),
    ("mdprivatekeys", None, 0, Present),
    ("mdmuststaple", None, 0, ON_OFF),
    ("mdprofilemandatory", None, 0, ON_OFF),
    ("mdrenewmode", None, 0, RENEWALS),
    ("mdrenewwindow", None, 0, Window),
    ("mdretrydelay", None, 0, Span(1)),
    ("mdstaplingkeepresponse", None, 0, Window),
    ("mdstaplingrenewwindow", None, 0, Window),
    ("mdwarnwindow", None, 0, Window),
    ("mdrenewviaari", None, 0, ON_OFF),
    ("mdretryfailover", None, 0, Number(1, MOST)),
    ("mdserverstatus", None, 0, ON_OFF),
    ("mdstapleothers", None, 0, ON_OFF),
    ("mdstapling", None, 0, ON_OFF),
    ("memcacheconnttl", None, 0, Time),
    ("modemstandard", None, 0, OneOf(&["V.21", "V.26bis", "V.32", "V.34", "V.92"])),
    ("mutex", None, 0, MUTEXES),
    ("mutex", None, 0, Present),
    ("proxybadheader", None, 0, OneOf(&["IsError", "Ignore", "StartBody"])),
    ("proxydomain", None, 0, Start(&["."])),
    ("proxyfcgibackendtype", None, 0, OneOf(&["GENERIC", "FPM"])),
    ("proxyfcgisetenvif", None, 0, Condition),
    ("proxyhcexpr", None, 0, Present),
    ("proxyhcexpr", None, 1, Present),
    ("proxyhctemplate", None, 0, Present),
    ("proxyhctemplate", None, OTHERS, With("=")),
    ("proxyhctpsize", None, 0, Number(0, MOST - 1)),
    ("proxyremote", None, 1, With("://")),
    ("proxyremotematch", None, 1, With("://")),
    ("proxyhtmlbufsize", None, 0, Whole(i64::MIN, MOST)),
    ("proxyiobuffersize", None, 0, ZeroOr(512)),
    ("proxyreceivebuffersize", None, 0, ZeroOr(512)),
    ("proxystatus", None, 0, OneOf(&["on", "off", "full"])),
    ("readbuffersize", None, 0, Whole(0, U32)),
    ("receivebuffersize", None, 0, ZeroOr(512)),
    ("redisconnpoolttl", None, 0, Time),
    ("regexdefaultoptions", None, EACH, REGEX_OPTIONS),
    ("redistimeout", None, 0, Time),
    ("remoteipinternalproxy", None, EACH, Address),
    ("remoteipproxyprotocolexceptions", None, EACH, Address),
    ("remoteipproxyprotocolexceptions", None, 0, Present),
    ("remoteiptrustedproxy", None, EACH, Address),
    ("remoteipinternalproxylist", None, 0, File),
    ("remoteiptrustedproxylist", None, 0, File),
    ("sendbuffersize", None, 0, ZeroOr(512)),
    ("sessioncryptopassphrasefile", None, 0, File),
    ("sessioncookiename", None, 0, Present),
    ("sessioncookiename2", None, 0, Present),
    ("sessionexpiryupdateinterval", None, 0, Number(0, MOST - 1)),
    ("sslciphersuite", Some(2), 0, OneOf(&["SSL", "TLSv1.3"])),
    ("sslverifydepth", None, 0, Number(0, I32)),
    ("sslcryptodevice", None, 0, OneOf(&["builtin", "dynamic"])),
    ("sslocspenable", None, EACH, OneOf(&["on", "off", "leaf", "no_ocsp_for_cert_ok"])),
    ("sslocsprespondercertificatefile", None, 0, File),
    ("sslocsprespondertimeout", None, 0, Number(0, MOST - 1)),
    ("sslocspresponsemaxage", None, 0, Number(0, MOST - 1)),
    ("sslocspresponsetimeskew", None, 0, Number(0, MOST - 1)),
    ("sslpassphrasedialog", None, 0, Start(&["builtin", "exec:", "|"])),
    ("sslproxycarevocationcheck", None, 0, OneOf(&["none", "leaf", "chain"])),
    ("sslproxycarevocationfile", None, 0, File),
    ("sslproxycarevocationpath", None, 0, Directory),
    ("sslproxymachinecertificatechainfile", None, 0, File),
    ("sslproxymachinecertificatepath", None, 0, Directory),
    ("sslrandomseed", None, 0, OneOf(&["startup", "connect"])),
    ("sslrenegbuffersize", None, 0, Number(0, MOST - 1)),
    ("sslsrpverifierfile", None, 0, File),
    ("sslstaplingcache", None, 0, Start(&["dbm:", "shmcb", "memcache:", "redis:", "default"])),
    ("sslstaplingerrorcachetimeout", None, 0, Number(0, MOST - 1)),
    ("sslstaplingrespondertimeout", None, 0, Number(0, MOST - 1)),
    ("sslstaplingresponsemaxage", None, 0, Number(0, MOST - 1)),
    ("sslstaplingresponsetimeskew", None, 0, Number(0, MOST - 1)),
    ("sslstaplingstandardcachetimeout", None, 0, Number(0, MOST - 1)),
    ("substitutemaxlinelength", None, 0, Bytes),
    ("threadstacksize", None, 0, Number(0, I32)),
    ("userdir", None, 0, Present),
    ("virtualdocumentroot", None, 0, Start(&["/", "none"])),
    ("virtualdocumentrootip", None, 0, Start(&["/", "none"])),
    ("virtualscriptalias", None, 0, Start(&["/", "none"])),
    ("virtualscriptaliasip", None, 0, Start(&["/", "none"])),
    ("watchdoginterval", None, 0, Time),
];

impl Builder<'_> {
    /// The first argument that httpd would refuse, and what is wrong with it.
    pub(super) fn unwanted(
        &self,
        lower: &[u8],
        words: &[Word<'_>],
    ) -> Option<(usize, usize, Finding)> {
        let of_name = WANTED.iter().filter(|(name, ..)| name.as_bytes() == lower);
        of_name.filter(|(_, count, ..)| count.is_none_or(|count| count == words.len())).find_map(
            |(name, _, which, wanted)| {
                let which = *which;
                let meant = match which {
                    EACH => words,
                    OTHERS => words.get(1..).unwrap_or_default(),
                    which => words.get(which..=which).unwrap_or_default(),
                };
                if matches!(wanted, Present) && meant.iter().all(|word| word.text.is_empty()) {
                    let finding = Finding::error(format!("`{name}` has too few arguments"));
                    return Some((0, 0, finding));
                }
                meant.iter().find_map(|word| {
                    let finding = self.refuse(&word.text, *wanted)?;
                    Some((word.at, word.len, finding))
                })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_names_that_are_known() {
        for (name, ..) in WANTED {
            assert!(super::super::known::find(name.as_bytes()).is_some(), "{name}");
        }
    }
}

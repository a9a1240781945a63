//! What values directives want that have no effect here: words, numbers, files.
//!
//! A table of what httpd refuses, so that a configuration that it does not load is not loaded here. Numbers
//! are read as httpd reads them, which for most means that what is no number is 0.
//!
//! Source: `httpd -t` of 2.4.71 on a score of values for each directive (`crates/testkit/examples/values.rs`).

use milepost_syntax::Word;

use super::Builder;
use super::report::{Finding, show};
use crate::number::leading_number;
use crate::outside::FileKind;

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
}

use Wanted::{Digit, Directory, File, Number, Start, Time, Whole, Word as OneOf, ZeroOr};

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

/// Name in lower case, how many arguments there are if that matters, which of them is meant, from 0, and what
/// it has to be.
const WANTED: &[(&str, Option<usize>, usize, Wanted)] = &[
    ("allowconnect", None, 0, Whole(0, MOST)),
    ("authbasicusedigestalgorithm", None, 0, OneOf(&["Off", "MD5"])),
    ("authdigestalgorithm", None, 0, OneOf(&["MD5"])),
    ("authdigestnoncelifetime", None, 0, Whole(i64::MIN, MOST)),
    ("authdigestqop", None, 0, OneOf(&["auth"])),
    ("authformsize", None, 0, Number(0, MOST - 1)),
    (
        "authldapdereferencealiases",
        None,
        0,
        OneOf(&["never", "searching", "finding", "always", "on", "off"]),
    ),
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
    ("cachelastmodifiedfactor", None, 0, Digit),
    ("cachelockmaxage", None, 0, Number(1, MOST)),
    ("cachemaxfilesize", None, 0, Number(0, MOST - 1)),
    ("cacheminfilesize", None, 0, Number(0, MOST - 1)),
    ("cachereadsize", None, 0, Number(0, MOST - 1)),
    ("cachereadtime", None, 0, Number(0, MOST - 1)),
    ("cachesocachemaxsize", None, 0, Whole(1024, MOST)),
    ("cachesocachemaxtime", None, 0, Number(0, MOST - 1)),
    ("cachesocachemintime", None, 0, Number(0, MOST - 1)),
    ("cachesocachereadsize", None, 0, Number(0, MOST - 1)),
    ("cachesocachereadtime", None, 0, Number(0, MOST - 1)),
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
    ("h2streammaxmemsize", None, 0, Number(1024, I32)),
    ("h2streamtimeout", None, 0, Time),
    ("h2upgrade", None, 0, ON_OFF),
    ("h2websockets", None, 0, ON_OFF),
    ("httpprotocoloptions", None, 0, PROTOCOL_OPTIONS),
    ("keptbodysize", None, 0, Whole(0, MOST)),
    ("ldapconnectionpoolttl", None, 0, Time),
    ("ldapreferralhoplimit", None, 0, Number(1, MOST)),
    ("ldapreferrals", None, 0, OneOf(&["on", "off", "default"])),
    ("ldapretries", None, 0, Number(0, MOST - 1)),
    ("ldapretrydelay", None, 0, Time),
    ("ldaptimeout", None, 0, Digit),
    ("ldaptrustedmode", None, 0, OneOf(&["NONE", "SSL", "TLS", "STARTTLS"])),
    ("limitxmlrequestbody", None, 0, Number(0, 3_074_457_345_618_258_601)),
    ("listencoresbucketsratio", None, 0, Number(1, MOST)),
    ("listentcpdeferaccept", None, 0, Number(1, MOST)),
    ("luacodecache", None, 0, OneOf(&["never", "stat", "forever"])),
    ("luahookaccesschecker", Some(3), 2, OneOf(&["early", "late"])),
    ("luahookauthchecker", Some(3), 2, OneOf(&["early", "late"])),
    ("luainherit", None, 0, OneOf(&["none", "parent-first", "parent-last"])),
    ("luascope", None, 0, OneOf(&["once", "request", "conn", "thread", "server"])),
    ("maxmemfree", None, 0, Number(0, U32)),
    ("mdbaseserver", None, 0, ON_OFF),
    ("mdcertificatestatus", None, 0, ON_OFF),
    ("mdchallengedns01version", None, 0, OneOf(&["1", "2"])),
    ("mddrivemode", None, 0, RENEWALS),
    ("mdmatchnames", None, 0, OneOf(&["all", "servernames"])),
    ("mdmuststaple", None, 0, ON_OFF),
    ("mdprofilemandatory", None, 0, ON_OFF),
    ("mdrenewmode", None, 0, RENEWALS),
    ("mdrenewviaari", None, 0, ON_OFF),
    ("mdretryfailover", None, 0, Number(1, MOST)),
    ("mdserverstatus", None, 0, ON_OFF),
    ("mdstapleothers", None, 0, ON_OFF),
    ("mdstapling", None, 0, ON_OFF),
    ("memcacheconnttl", None, 0, Time),
    ("mutex", None, 0, MUTEXES),
    ("proxybadheader", None, 0, OneOf(&["IsError", "Ignore", "StartBody"])),
    ("proxydomain", None, 0, Start(&["."])),
    ("proxyfcgibackendtype", None, 0, OneOf(&["GENERIC", "FPM"])),
    ("proxyhtmlbufsize", None, 0, Whole(i64::MIN, MOST)),
    ("proxyiobuffersize", None, 0, ZeroOr(512)),
    ("proxyreceivebuffersize", None, 0, ZeroOr(512)),
    ("proxystatus", None, 0, OneOf(&["on", "off", "full"])),
    ("readbuffersize", None, 0, Whole(0, U32)),
    ("receivebuffersize", None, 0, ZeroOr(512)),
    ("redisconnpoolttl", None, 0, Time),
    ("redistimeout", None, 0, Time),
    ("remoteipinternalproxylist", None, 0, File),
    ("remoteiptrustedproxylist", None, 0, File),
    ("sendbuffersize", None, 0, ZeroOr(512)),
    ("sessioncryptopassphrasefile", None, 0, File),
    ("sessionexpiryupdateinterval", None, 0, Number(0, MOST - 1)),
    ("sslcryptodevice", None, 0, OneOf(&["builtin", "dynamic"])),
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
    ("threadstacksize", None, 0, Number(0, I32)),
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
            |(_, _, which, wanted)| {
                let word = words.get(*which)?;
                let finding = self.refuse(&word.text, *wanted)?;
                Some((word.at, word.len, finding))
            },
        )
    }

    fn refuse(&self, text: &[u8], wanted: Wanted) -> Option<Finding> {
        let hint = |what: &str| {
            let finding = Finding::error(format!("{} is not known here", show(text)));
            Some(finding.hint(what))
        };
        match wanted {
            OneOf(words) if words.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(text)) => {
                None
            }
            OneOf(words) | Start(words) if !begins(text, words, wanted) => {
                hint(&format!("write one of {}", words.join(", ")))
            }
            OneOf(_) | Start(_) => None,
            Number(least, most) => out_of_range(text, leading_number(text), least, most),
            ZeroOr(least) => match leading_number(text) {
                0 => None,
                number => out_of_range(text, number, least, MOST),
            },
            Whole(least, most) => {
                let digits = text.strip_prefix(b"-").unwrap_or(text);
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                    return hint("write a number");
                }
                out_of_range(text, leading_number(text), least, most)
            }
            Time if is_time(text) => None,
            Time => hint("write a number of seconds, or `500ms`, `2min`, `1h`"),
            Digit if text.first().is_some_and(u8::is_ascii_digit) => None,
            Digit => hint("write a number"),
            File | Directory => {
                let kind = self.outside.kind(&self.resolve(text));
                let (is_there, what) = match wanted {
                    File => (matches!(kind, FileKind::File(1..)), "file"),
                    _ => (kind == FileKind::Directory, "directory"),
                };
                let message = format!("the {what} {} does not exist", show(text));
                (!is_there).then(|| Finding::error(message))
            }
        }
    }
}

fn begins(text: &[u8], words: &[&str], wanted: Wanted) -> bool {
    matches!(wanted, Start(_))
        && words.iter().any(|word| {
            text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
        })
}

/// Source: `server/util.c`, `ap_timeout_parameter_parse`.
fn is_time(text: &[u8]) -> bool {
    /// More digits than a time has.
    const DIGITS_MAX: usize = 15;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unit = text[digits..].to_ascii_lowercase();
    let known = [&b"s"[..], b"h", b"ms", b"mi"].iter().any(|begin| unit.starts_with(begin));
    (1..=DIGITS_MAX).contains(&digits) && (unit.is_empty() || known)
}

fn out_of_range(text: &[u8], number: i64, least: i64, most: i64) -> Option<Finding> {
    (!(least..=most).contains(&number)).then(|| {
        let finding = Finding::error(format!("{} is out of range", show(text)));
        match most {
            MOST.. => finding.hint(format!("write a number from {least} on")),
            most => finding.hint(format!("write a number from {least} to {most}")),
        }
    })
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

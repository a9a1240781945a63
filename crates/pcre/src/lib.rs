//! PCRE2 as Apache uses it: byte patterns, dot matches newline, `$` only at the very end, ten groups.
//!
//! The published `pcre2` crate offers neither `DOLLAR_ENDONLY` nor a match buffer that many patterns
//! share, and a million rules cannot each own one. So this crate wraps `pcre2-sys` itself; it is one
//! of the two in the workspace that may use `unsafe`.
//!
//! Limits: PCRE2's own defaults, which are Apache's too (10,000,000 match steps, 20 MB of heap).
//!
//! Source: httpd 2.4.71 `server/util_pcre.c`, `ap_regcomp` and `ap_regexec_len`; pcre2api(3).
#![allow(unsafe_code, reason = "calls into the PCRE2 C library")]

use std::fmt;
use std::ptr::{self, NonNull};

use pcre2_sys as sys;

/// Groups that a match remembers, the whole match included: `$0` to `$9`, `AP_MAX_REG_MATCH`.
pub const GROUPS_MAX: usize = 10;

/// A compiled pattern. Shared between threads; matching needs a [`Matcher`].
pub struct Regex {
    code: NonNull<sys::pcre2_code_8>,
}

// SAFETY: a compiled pattern is never written to after `Regex::new` returns (pcre2api(3),
// "Multithreading": compiled patterns, JIT code included, may be used by several threads at once).
unsafe impl Send for Regex {}
// SAFETY: as above; all methods take `&self` and only read.
unsafe impl Sync for Regex {}

/// Whether ASCII letters match in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// Letters match themselves.
    Sensitive,
    /// ASCII letters match in both cases.
    Insensitive,
}

/// What a pattern means beyond its text: what `RegexDefaultOptions` changes. By default as httpd has it
/// where nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Whether ASCII letters match in both cases (`ICASE`).
    pub case: Case,
    /// `.` matches the end of a line too (`DOTALL`).
    pub dot_matches_all: bool,
    /// `$` does not match before a newline at the very end (`DOLLAR_ENDONLY`).
    pub dollar_at_end_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { case: Case::Sensitive, dot_matches_all: true, dollar_at_end_only: true }
    }
}

impl From<Case> for Options {
    fn from(case: Case) -> Self {
        Options { case, ..Options::default() }
    }
}

impl Options {
    /// These, for a directive that says something of its own about letters: either may fold them.
    pub fn with(self, case: Case) -> Options {
        match case {
            Case::Sensitive => self,
            Case::Insensitive => Options { case, ..self },
        }
    }
}

/// The pattern does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at byte {offset} of the pattern")]
pub struct CompileError {
    /// What PCRE2 says.
    pub message: String,
    /// Where in the pattern, in bytes from 0.
    pub offset: usize,
}

/// The match was given up, neither found nor ruled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// More than the allowed steps, depth or heap: catastrophic backtracking.
    #[error("the match limit of PCRE2 was reached")]
    Limit,
    /// Any other error code of pcre2_match(3).
    #[error("PCRE2 error {0}")]
    Code(i32),
}

impl Regex {
    /// Compiles `pattern` with JIT where the machine has it.
    ///
    /// # Errors
    /// [`CompileError`] with PCRE2's own words.
    pub fn new(pattern: &[u8], options: impl Into<Options>) -> Result<Regex, CompileError> {
        let regex = Regex::without_jit(pattern, options)?;
        // SAFETY: `code` is a live pattern that nobody else has seen yet. A failure (no JIT on this
        // machine, no executable memory) leaves it usable by the interpreter, so it is ignored.
        unsafe { sys::pcre2_jit_compile_8(regex.code.as_ptr(), sys::PCRE2_JIT_COMPLETE) };
        Ok(regex)
    }

    /// Compiles `pattern` for the interpreter only: to see whether it is valid.
    ///
    /// # Errors
    /// [`CompileError`] with PCRE2's own words.
    pub fn without_jit(pattern: &[u8], options: impl Into<Options>) -> Result<Regex, CompileError> {
        let wanted = options.into();
        let mut options = sys::PCRE2_DUPNAMES;
        for (is_wanted, option) in [
            (wanted.case == Case::Insensitive, sys::PCRE2_CASELESS),
            (wanted.dot_matches_all, sys::PCRE2_DOTALL),
            (wanted.dollar_at_end_only, sys::PCRE2_DOLLAR_ENDONLY),
        ] {
            options |= if is_wanted { option } else { 0 };
        }
        let (mut code, mut offset) = (0, 0);
        // SAFETY: pattern and length describe one live slice; the two out-parameters outlive the
        // call; no compile context is the documented default.
        let compiled = unsafe {
            sys::pcre2_compile_8(
                pattern.as_ptr(),
                pattern.len(),
                options,
                &mut code,
                &mut offset,
                ptr::null_mut(),
            )
        };
        match NonNull::new(compiled) {
            Some(code) => Ok(Regex { code }),
            None => Err(CompileError { message: message(code), offset }),
        }
    }

    /// Returns the number of capturing groups, the whole match not counted.
    pub fn groups(&self) -> u32 {
        let mut count = 0_u32;
        // SAFETY: `PCRE2_INFO_CAPTURECOUNT` writes one `uint32_t`.
        unsafe {
            sys::pcre2_pattern_info_8(
                self.code.as_ptr(),
                sys::PCRE2_INFO_CAPTURECOUNT,
                ptr::from_mut(&mut count).cast(),
            )
        };
        count
    }

    /// Returns the named groups with their numbers, in the order of their names.
    pub fn names(&self) -> Vec<(String, u32)> {
        let (mut count, mut entry_bytes) = (0_u32, 0_u32);
        let mut table: *const u8 = ptr::null();
        // SAFETY: the three items write a `uint32_t`, a `uint32_t` and a pointer, in this order.
        unsafe {
            let code = self.code.as_ptr();
            sys::pcre2_pattern_info_8(
                code,
                sys::PCRE2_INFO_NAMECOUNT,
                ptr::from_mut(&mut count).cast(),
            );
            sys::pcre2_pattern_info_8(
                code,
                sys::PCRE2_INFO_NAMEENTRYSIZE,
                ptr::from_mut(&mut entry_bytes).cast(),
            );
            sys::pcre2_pattern_info_8(
                code,
                sys::PCRE2_INFO_NAMETABLE,
                ptr::from_mut(&mut table).cast(),
            );
        }
        if table.is_null() || entry_bytes < 3 {
            return Vec::new();
        }
        // SAFETY: the name table is `count` entries of `entry_bytes` bytes inside the live pattern.
        let table =
            unsafe { std::slice::from_raw_parts(table, count as usize * entry_bytes as usize) };
        // An entry is the group number, high byte first, then the name, zero-terminated.
        let entries = table.chunks_exact(entry_bytes as usize).map(|entry| {
            let name = entry[2..].split(|&byte| byte == 0).next().unwrap_or_default();
            (
                String::from_utf8_lossy(name).into_owned(),
                u32::from(entry[0]) << 8 | u32::from(entry[1]),
            )
        });
        entries.collect()
    }
}

impl Drop for Regex {
    fn drop(&mut self) {
        // SAFETY: `code` came from pcre2_compile and is freed once, here.
        unsafe { sys::pcre2_code_free_8(self.code.as_ptr()) }
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Regex").field("groups", &self.groups()).finish()
    }
}

/// The buffer that matching writes to. One for each thread, used for all patterns.
pub struct Matcher {
    data: NonNull<sys::pcre2_match_data_8>,
}

// SAFETY: the match data belongs to this value alone and has no ties to the thread that made it.
unsafe impl Send for Matcher {}

/// Where the groups of the last match begin and end in its subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    spans: [(u32, u32); GROUPS_MAX],
    count: u8,
}

impl Captures {
    /// No group at all.
    pub const NONE: Captures = Captures { spans: [(0, 0); GROUPS_MAX], count: 0 };

    /// Forgets all groups.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Returns what each group of a match in `subject` holds; an unset group is empty.
    pub fn texts(&self, subject: &[u8]) -> Vec<Vec<u8>> {
        let text = |group| self.get(group).map(|span| subject[span].to_vec()).unwrap_or_default();
        (0..self.count as usize).map(text).collect()
    }

    /// Makes captures of byte ranges, for a match that was found without PCRE2.
    pub fn of<const COUNT: usize>(spans: [(usize, usize); COUNT]) -> Captures {
        const { assert!(COUNT <= GROUPS_MAX) };
        let mut captures = Captures::default();
        for (group, (start, end)) in spans.into_iter().enumerate() {
            captures.set(group, start, end);
        }
        captures
    }

    /// Says where a group is. The groups before it have to be set too.
    ///
    /// # Panics
    /// When it is not below [`GROUPS_MAX`].
    #[inline]
    pub fn set(&mut self, group: usize, start: usize, end: usize) {
        self.spans[group] = (start as u32, end as u32);
        self.count = self.count.max(group as u8 + 1);
    }

    /// Returns the byte range of group `index` (0 is the whole match), unless the group was not set.
    pub fn get(&self, index: usize) -> Option<std::ops::Range<usize>> {
        let &(start, end) = self.spans[..self.count as usize].get(index)?;
        (start <= end).then_some(start as usize..end as usize)
    }
}

impl Matcher {
    /// Makes a buffer for [`GROUPS_MAX`] groups.
    ///
    /// # Panics
    /// When memory is exhausted.
    pub fn new() -> Matcher {
        // SAFETY: a plain constructor; no context is the documented default.
        let data = unsafe { sys::pcre2_match_data_create_8(GROUPS_MAX as u32, ptr::null_mut()) };
        Matcher { data: NonNull::new(data).expect("memory for ten match offsets") }
    }

    /// Searches `subject` for `regex`, unanchored.
    ///
    /// # Errors
    /// [`MatchError`] when PCRE2 gives up: the answer is then unknown.
    pub fn find(&mut self, regex: &Regex, subject: &[u8]) -> Result<Option<Captures>, MatchError> {
        let mut code = self.run(regex, subject, 0);
        if code == sys::PCRE2_ERROR_JIT_STACKLIMIT {
            // The machine stack of JIT code is small; the interpreter uses the heap, up to its limit.
            code = self.run(regex, subject, sys::PCRE2_NO_JIT);
        }
        match code {
            sys::PCRE2_ERROR_NOMATCH => Ok(None),
            // 0: more groups than the buffer holds, the first ten are there.
            0 => Ok(Some(self.captures(GROUPS_MAX))),
            1.. => Ok(Some(self.captures(code as usize))),
            sys::PCRE2_ERROR_MATCHLIMIT
            | sys::PCRE2_ERROR_DEPTHLIMIT
            | sys::PCRE2_ERROR_HEAPLIMIT => Err(MatchError::Limit),
            code => Err(MatchError::Code(code)),
        }
    }

    fn run(&mut self, regex: &Regex, subject: &[u8], options: u32) -> i32 {
        // SAFETY: pattern and match data are live, the subject is one slice, and PCRE2 keeps no
        // pointer into it that is used after this call (only offsets are read, in `captures`).
        unsafe {
            sys::pcre2_match_8(
                regex.code.as_ptr(),
                subject.as_ptr(),
                subject.len(),
                0,
                options,
                self.data.as_ptr(),
                ptr::null_mut(),
            )
        }
    }

    fn captures(&self, count: usize) -> Captures {
        // SAFETY: the match data was made with room for `GROUPS_MAX` pairs of offsets.
        let offsets = unsafe {
            let first = sys::pcre2_get_ovector_pointer_8(self.data.as_ptr());
            std::slice::from_raw_parts(first, 2 * GROUPS_MAX)
        };
        let mut captures = Captures { count: count as u8, ..Captures::default() };
        for (span, pair) in captures.spans.iter_mut().zip(offsets.chunks_exact(2)).take(count) {
            // An unset group has offsets of all ones: make start > end, which `get` reads as unset.
            let unset = pair[0] > u32::MAX as usize || pair[1] > u32::MAX as usize;
            *span = if unset { (1, 0) } else { (pair[0] as u32, pair[1] as u32) };
        }
        captures
    }
}

impl Default for Matcher {
    fn default() -> Self {
        Matcher::new()
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Matcher")
    }
}

impl Drop for Matcher {
    fn drop(&mut self) {
        // SAFETY: `data` came from pcre2_match_data_create and is freed once, here.
        unsafe { sys::pcre2_match_data_free_8(self.data.as_ptr()) }
    }
}

/// Returns PCRE2's text for an error code.
fn message(code: i32) -> String {
    /// Longest message of PCRE2 10.4x, doubled.
    const MESSAGE_BYTES_MAX: usize = 256;
    let mut buffer = [0_u8; MESSAGE_BYTES_MAX];
    // SAFETY: pointer and length describe one live buffer; the text comes back zero-terminated.
    let length = unsafe { sys::pcre2_get_error_message_8(code, buffer.as_mut_ptr(), buffer.len()) };
    let end = usize::try_from(length).unwrap_or(MESSAGE_BYTES_MAX - 1).min(MESSAGE_BYTES_MAX);
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollar_is_the_very_end() {
        check("^/a$", "/a", Some(&["/a"]));
        check("^/a$", "/a\n", None);
        check("a.b", "a\nb", Some(&["a\nb"]));
    }

    #[test]
    fn unset_and_surplus_groups() {
        check("(a)|(b)", "b", Some(&["b", "-", "b"]));
        check("(a)|(b)", "a", Some(&["a", "a"]));
        let many = "(.)".repeat(12);
        check(
            &many,
            "abcdefghijkl",
            Some(&["abcdefghijkl", "a", "b", "c", "d", "e", "f", "g", "h", "i"]),
        );
    }

    #[test]
    fn errors_name_the_byte() {
        let error = Regex::new(b"a(b", Case::Sensitive).unwrap_err();
        assert_eq!((error.offset, error.message.as_str()), (3, "missing closing parenthesis"));
    }

    #[test]
    fn catastrophic_patterns_end_at_the_limit() {
        let regex = Regex::new(b"^(a+)+$", Case::Sensitive).unwrap();
        let subject = [vec![b'a'; 40], b"!".to_vec()].concat();
        assert_eq!(Matcher::new().find(&regex, &subject), Err(MatchError::Limit));
    }

    #[test]
    fn names_come_with_numbers() {
        let regex = Regex::new(b"(?<part>a)(?<also>b)", Case::Sensitive).unwrap();
        assert_eq!(regex.names(), [("also".to_owned(), 2), ("part".to_owned(), 1)]);
    }

    #[track_caller]
    fn check(pattern: &str, subject: &str, groups: Option<&[&str]>) {
        let regex = Regex::new(pattern.as_bytes(), Case::Sensitive).unwrap();
        let found = Matcher::new().find(&regex, subject.as_bytes()).unwrap();
        let texts = found.map(|captures| {
            let count = captures.count as usize;
            (0..count)
                .map(|i| captures.get(i).map_or("-", |span| &subject[span]))
                .collect::<Vec<_>>()
        });
        assert_eq!(texts.as_deref(), groups);
    }
}

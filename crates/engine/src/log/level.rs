//! `LogLevel`, as far as it is about what mod_rewrite and the proxy say.
//!
//! Source: httpd 2.4.71 `server/core.c`, `set_loglevel`; `server/util_debug.c`, `ap_parse_log_level`.

/// `debug`, the last level before `trace1`.
const DEBUG: u8 = 7;

/// `warn`, the level where nothing is said.
const WARN: u8 = 4;

/// The names of the levels up to [`DEBUG`], by their numbers.
const LEVELS: [&[u8]; 8] =
    [b"emerg", b"alert", b"crit", b"error", b"warn", b"notice", b"info", b"debug"];

/// The levels that servers have asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LogLevels {
    said: Vec<Said>,
    /// Whether a section asks for a trace.
    section_traces: bool,
}

/// What one directive says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Said {
    server: usize,
    /// `None`: of all modules.
    module: Option<Module>,
    /// 0 is `emerg`, 15 `trace8`.
    level: u8,
}

/// Whose level it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Module {
    Rewrite,
    Proxy,
    /// One that has nothing to say here.
    Other,
}

impl LogLevels {
    /// Notes one word of the directive, `warn` or `rewrite:trace3`.
    pub(crate) fn set(&mut self, server: usize, word: &[u8]) {
        let (module, level) = parse(word);
        if module.is_none() {
            // A level for all takes the place of those for one.
            self.said.retain(|said| said.server != server);
        }
        self.said.push(Said { server, module, level });
    }

    /// Notes what a section asks for.
    pub(crate) fn set_in_section(&mut self, levels: SectionLevels) {
        self.section_traces |= levels.rewrite().is_some_and(|trace| trace > 0);
    }

    /// How much of mod_rewrite a server logs: 1 to 8 for `trace1` to `trace8`, or 0.
    pub(crate) fn rewrite(&self, server: usize) -> u8 {
        trace(self.of(server, Module::Rewrite))
    }

    /// The last level of what the proxy says that a server logs.
    pub(crate) fn proxy(&self, server: usize) -> u8 {
        self.of(server, Module::Proxy)
    }

    /// The level of a module; without a `LogLevel` that of the main server.
    fn of(&self, server: usize, module: Module) -> u8 {
        let find = |server, module| {
            let wanted = |said: &&Said| said.server == server && said.module == module;
            self.said.iter().rev().find(wanted).map(|said| said.level)
        };
        let of = |server| find(server, Some(module)).or_else(|| find(server, None));
        of(server).or_else(|| of(0)).unwrap_or(WARN)
    }

    /// Whether any server logs anything of mod_rewrite.
    pub(crate) fn any_rewrite(&self) -> bool {
        let is_of_rewrite = |said: &Said| matches!(said.module, None | Some(Module::Rewrite));
        let traces = |said: &Said| trace(said.level) > 0 && is_of_rewrite(said);
        self.section_traces || self.said.iter().any(traces)
    }
}

/// What the `LogLevel`s of a section say; what they do not, the sections around it do, and then the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SectionLevels {
    rewrite: Option<u8>,
    proxy: Option<u8>,
}

impl SectionLevels {
    /// Notes one word of the directive.
    pub(crate) fn set(&mut self, word: &[u8]) {
        let (module, level) = parse(word);
        let level = Some(level);
        match module {
            None => *self = SectionLevels { rewrite: level, proxy: level },
            Some(Module::Rewrite) => self.rewrite = level,
            Some(Module::Proxy) => self.proxy = level,
            Some(Module::Other) => {}
        }
    }

    /// Lets the more specific `over` override.
    pub(crate) fn merge(&mut self, over: SectionLevels) {
        self.rewrite = over.rewrite.or(self.rewrite);
        self.proxy = over.proxy.or(self.proxy);
    }

    /// How much of mod_rewrite is logged: 1 to 8 for `trace1` to `trace8`, or 0.
    pub(crate) fn rewrite(self) -> Option<u8> {
        self.rewrite.map(trace)
    }

    /// The last level of what the proxy says that is logged: 0 is `emerg`, 15 `trace8`.
    pub(crate) fn proxy(self) -> Option<u8> {
        self.proxy
    }
}

/// How much of a trace a level is: 1 to 8 for `trace1` to `trace8`, 0 for those before.
fn trace(level: u8) -> u8 {
    level.saturating_sub(DEBUG)
}

/// Takes one word apart: whose level, and which.
fn parse(word: &[u8]) -> (Option<Module>, u8) {
    let lower = word.to_ascii_lowercase();
    let (module, level) = match memchr::memchr(b':', &lower) {
        None => (None, &lower[..]),
        Some(at) => (Some(module(&lower[..at])), &lower[at + 1..]),
    };
    let level = match level.strip_prefix(b"trace") {
        Some(&[digit @ b'1'..=b'8']) => DEBUG + (digit - b'0'),
        _ => (0..).zip(LEVELS).find(|(_, name)| *name == level).map_or(WARN, |(number, _)| number),
    };
    (module, level)
}

/// A module by any of its names.
fn module(name: &[u8]) -> Module {
    match name {
        b"rewrite" | b"mod_rewrite.c" | b"rewrite_module" | b"mod_rewrite" => Module::Rewrite,
        b"proxy" | b"mod_proxy.c" | b"proxy_module" | b"mod_proxy" => Module::Proxy,
        _ => Module::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_counts_before_all_and_the_server_before_the_main_one() {
        let mut levels = LogLevels::default();
        assert!(!levels.any_rewrite());
        levels.set(0, b"trace1");
        levels.set(0, b"Rewrite:Trace3");
        levels.set(0, b"ssl:trace8");
        levels.set(2, b"info");
        levels.set(3, b"rewrite:trace8");
        levels.set(3, b"trace2");
        let found: Vec<u8> = (0..4).map(|server| levels.rewrite(server)).collect();
        assert_eq!(found, [3, 3, 0, 2]);
        assert!(levels.any_rewrite());
        levels.set(4, b"proxy:crit");
        let found: Vec<u8> = (0..5).map(|server| levels.proxy(server)).collect();
        assert_eq!(found, [8, 8, 6, 9, 2]);
        assert_eq!(LogLevels::default().proxy(0), WARN);
    }
}

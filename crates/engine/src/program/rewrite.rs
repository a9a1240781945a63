//! The rules of mod_rewrite, as data.

use std::cmp::Ordering;
use std::hint::black_box;

use crate::decision::Place;
use crate::index::{Filing, Index, Lookup, Subject};
use crate::pattern::Pattern;
use crate::pool::{Pool, Str};

/// Lists with fewer rules are in the processor's caches as they are.
const FETCHED_RULES_MIN: usize = 1 << 12;

/// The rules of one context in order, with their conditions and their index.
#[derive(Debug, Default)]
pub(crate) struct RewriteList {
    pub(crate) rules: Vec<RewriteRule>,
    /// The conditions of all rules; each rule has a range of them.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) index: Index,
    spread: Option<Spread>,
}

/// How conditions are spread over rules, if evenly: where those of a rule stand, without a look at it.
#[derive(Debug, Clone, Copy)]
struct Spread {
    /// The first rule with conditions.
    rule: u32,
    /// Conditions for each rule from there on.
    each: u32,
}

impl Spread {
    /// Looks at the first rule and at the last that have conditions.
    fn of(rules: &[RewriteRule]) -> Option<Spread> {
        let has_some = |rule: &RewriteRule| rule.conditions.1 > 0;
        let (first, last) = (rules.iter().position(has_some)?, rules.iter().rposition(has_some)?);
        let each = rules[last].conditions.0.checked_div((last - first) as u32)?;
        Some(Spread { rule: first as u32, each })
    }
}

/// One `RewriteRule`: a cache line, so that a rule among a million costs one miss.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct RewriteRule {
    pub(crate) pattern: Pattern,
    pub(crate) substitution: Substitution,
    pub(crate) flags: Flags,
    /// The status of `R`, 302 without one.
    pub(crate) status: u16,
    /// Its conditions: the number of the first, and how many.
    pub(crate) conditions: (u32, u32),
    /// What few rules have.
    pub(crate) extra: Option<Box<Extra>>,
    pub(crate) place: Place,
}

/// What a rule puts in place of the string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Substitution {
    /// `-`, or a status that is no redirect: the string stays.
    None,
    /// Text with nothing to expand.
    Plain(Str),
    /// Text with backreferences, variables, map calls or escapes, and how many bytes of it at least stand for
    /// themselves.
    Expanded(Str, u16),
}

/// Arguments of the rarer flags.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    /// `S=n`
    pub(crate) skip: u32,
    /// `N=n`: rounds that end in a 500.
    pub(crate) rounds_max: Option<u32>,
    /// `E=` and `CO=`, in order.
    pub(crate) effects: Vec<Effect>,
    /// `B` and its relatives.
    pub(crate) escape: BackrefEscape,
}

/// A side effect of a rule that matched.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effect {
    /// `E=name:value`, the whole text to be expanded.
    Env(Str),
    /// `CO=name:value:domain…`, the whole text to be expanded.
    Cookie(Str),
    /// `T=type`, to be expanded.
    Type(Str),
}

/// Which bytes of a backreference `B` escapes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BackrefEscape {
    /// `B=`: only these. `None`: all that are not letters, digits or `_`.
    pub(crate) only: Option<Str>,
    /// `BNE=`: not these.
    pub(crate) except: Option<Str>,
    /// `BCTLS`: only blanks and control bytes (besides those of `only`).
    pub(crate) controls: bool,
    /// `BNP`: a blank becomes `%20`, not `+`.
    pub(crate) no_plus: bool,
}

/// The flags of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    pub(crate) const NEGATED: Flags = Flags(1 << 0);
    pub(crate) const REDIRECT: Flags = Flags(1 << 1);
    pub(crate) const LAST: Flags = Flags(1 << 2);
    pub(crate) const END: Flags = Flags(1 << 3);
    pub(crate) const NEXT: Flags = Flags(1 << 4);
    pub(crate) const CHAIN: Flags = Flags(1 << 5);
    pub(crate) const SKIP: Flags = Flags(1 << 6);
    pub(crate) const NO_SUBREQUEST: Flags = Flags(1 << 7);
    pub(crate) const PROXY: Flags = Flags(1 << 8);
    pub(crate) const PASS_THROUGH: Flags = Flags(1 << 9);
    pub(crate) const QUERY_APPEND: Flags = Flags(1 << 10);
    pub(crate) const QUERY_DISCARD: Flags = Flags(1 << 11);
    pub(crate) const QUERY_LAST: Flags = Flags(1 << 12);
    /// The query string goes and none is looked for in the result.
    pub(crate) const QUERY_NONE: Flags = Flags(1 << 13);
    pub(crate) const NO_ESCAPE: Flags = Flags(1 << 14);
    pub(crate) const DISCARD_PATH_INFO: Flags = Flags(1 << 15);
    /// `F`, `G` or `R` with a status that is no redirect.
    pub(crate) const STATUS: Flags = Flags(1 << 16);
    pub(crate) const ESCAPE_BACKREFS: Flags = Flags(1 << 17);
    pub(crate) const UNSAFE_ALLOW_3F: Flags = Flags(1 << 18);
    pub(crate) const UNSAFE_PREFIX_STAT: Flags = Flags(1 << 19);
    pub(crate) const UNC: Flags = Flags(1 << 20);
    pub(crate) const NO_CASE: Flags = Flags(1 << 21);
    /// `R`, with whatever status.
    pub(crate) const FORCED: Flags = Flags(1 << 22);
    /// The rule before it in its list has `C`.
    pub(crate) const FOLLOWS: Flags = Flags(1 << 23);

    pub(crate) fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    /// Whether a subrequest passes the rule over: `NS`, and every `R`.
    pub(crate) fn skips_subrequests(self) -> bool {
        self.has(Flags::NO_SUBREQUEST) || self.has(Flags::FORCED)
    }

    pub(crate) fn set(&mut self, flag: Flags) {
        self.0 |= flag.0;
    }
}

/// One `RewriteCond`: a cache line, as its rule.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Condition {
    /// The test string, to be expanded.
    pub(crate) input: Str,
    /// The variable that the test string is, if it is one of these and nothing besides.
    pub(crate) subject: Option<Subject>,
    pub(crate) test: Test,
    pub(crate) negated: bool,
    /// `OR`
    pub(crate) or: bool,
    pub(crate) no_case: bool,
    /// `NV`: the response does not say that it depends on the request fields looked at.
    pub(crate) no_vary: bool,
    pub(crate) place: Place,
}

/// The kinds of condition patterns.
#[derive(Debug)]
pub(crate) enum Test {
    Pattern(Box<Pattern>),
    /// `=text`, `<text` and their like.
    Text(Comparison, Str),
    /// `-eq n` and its like.
    Integer(Comparison, Str),
    File(FileTest),
    /// `RewriteCond expr`
    Expression(Box<crate::expr::Condition>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether two values in this order fit the comparison.
    pub(crate) fn fits(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// Tests of what a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileTest {
    /// `-f`
    Regular,
    /// `-s`
    NotEmpty,
    /// `-d`
    Directory,
    /// `-l`, `-L`, `-h`
    Link,
    /// `-x`
    Executable,
    /// `-U`: a URL that a subrequest would answer well.
    Url,
    /// `-F`: a file that a subrequest would answer with.
    File,
}

/// `RewriteOptions`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RewriteOptions {
    pub(crate) inherit: bool,
    pub(crate) inherit_before: bool,
    pub(crate) inherit_down: bool,
    pub(crate) inherit_down_before: bool,
    pub(crate) ignore_inherit: bool,
    pub(crate) allow_no_slash: bool,
    pub(crate) allow_any_uri: bool,
    pub(crate) merge_base: bool,
    pub(crate) ignore_context_info: bool,
    pub(crate) legacy_prefix_doc_root: bool,
    pub(crate) unsafe_prefix_stat: bool,
}

const _: () = assert!(size_of::<RewriteRule>() == 64 && size_of::<Condition>() == 64);

impl RewriteList {
    /// Makes a list of rules and of how each is filed.
    pub(crate) fn new(
        pool: &Pool,
        rules: Vec<RewriteRule>,
        conditions: Vec<Condition>,
        filings: &[Filing],
        lookup: Lookup,
    ) -> RewriteList {
        let index = Index::build(pool, filings, lookup);
        let spread = Spread::of(&rules).filter(|_| rules.len() >= FETCHED_RULES_MIN);
        RewriteList { rules, conditions, index, spread }
    }

    /// The conditions of one of its rules.
    pub(crate) fn conditions_of(&self, rule: &RewriteRule) -> &[Condition] {
        let (first, count) = (rule.conditions.0 as usize, rule.conditions.1 as usize);
        &self.conditions[first..first + count]
    }

    /// Touches the first condition of a rule, so that it is waited for together with the rule.
    pub(crate) fn fetch_condition(&self, number: u32) {
        if let Some(Spread { rule, each }) = self.spread {
            let at = number.wrapping_sub(rule).wrapping_mul(each) as usize;
            black_box(self.conditions.get(at).map(|condition| condition.or));
        }
    }

    /// Touches what a rule needs if it matches. Among a million rules none of it is in the processor's
    /// cache, which then waits for all of it at once and not for one after the other.
    pub(crate) fn fetch(&self, rule: &RewriteRule, pool: &Pool) {
        if self.rules.len() < FETCHED_RULES_MIN {
            return;
        }
        let substitution = match rule.substitution {
            Substitution::None => &[],
            Substitution::Plain(text) | Substitution::Expanded(text, _) => pool.get(text),
        };
        let pattern = rule.pattern.text(pool);
        let condition = self.conditions_of(rule).first().map(|condition| condition.or);
        black_box((substitution.first().copied(), pattern.first().copied(), condition));
    }
}

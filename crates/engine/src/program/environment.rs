//! Variables that directives set: mod_setenvif's conditions, and mod_env's fixed values.

use crate::expr::Condition;
use crate::pattern::Pattern;
use crate::pool::Str;

/// `SetEnvIf` and its relatives, in order.
#[derive(Debug, Default)]
pub(crate) struct EnvRules {
    pub(crate) rules: Vec<EnvRule>,
}

/// One `SetEnvIf`.
#[derive(Debug)]
pub(crate) struct EnvRule {
    pub(crate) test: EnvTest,
    pub(crate) changes: Vec<EnvChange>,
}

/// When a rule sets its variables.
#[derive(Debug)]
pub(crate) enum EnvTest {
    Pattern {
        looks_at: Attribute,
        /// The pattern before looks at the same: its value is taken again, though the variable that it names
        /// may have changed since, or an expression between them looked at another value. So does httpd.
        again: bool,
        pattern: Pattern,
        /// Whether `$0` to `$9` in values stand for groups. Not after a pattern without special characters.
        has_groups: bool,
    },
    Expression(Condition),
}

/// What a rule matches its pattern against.
#[derive(Debug)]
pub(crate) enum Attribute {
    RemoteAddress,
    RemoteUser,
    ServerAddress,
    RequestUri,
    RequestMethod,
    RequestProtocol,
    /// The request field of this name, else the variable.
    Name(Str),
    /// The last request field with a name that matches.
    Names(Box<Pattern>),
}

/// What a rule does with one variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnvChange {
    /// `NAME` or `NAME=value`.
    Set(Str, Str),
    /// `!NAME`
    Unset(Str),
}

/// `SetEnv`, `PassEnv` and `UnsetEnv` of one section; merged, of all that apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FixedEnv {
    /// Names and values.
    pub(crate) set: Vec<[Box<[u8]>; 2]>,
    /// What this section takes away from those around it.
    unset: Vec<Box<[u8]>>,
}

impl FixedEnv {
    /// `SetEnv` or `PassEnv`.
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) {
        match self.set.iter_mut().find(|[known, _]| known.eq_ignore_ascii_case(name)) {
            Some([_, old]) => *old = value.into(),
            None => self.set.push([name.into(), value.into()]),
        }
    }

    /// `UnsetEnv`: it undoes what stands before it, and what surrounding sections say.
    pub(crate) fn unset(&mut self, name: &[u8]) {
        self.set.retain(|[known, _]| !known.eq_ignore_ascii_case(name));
        self.unset.push(name.into());
    }

    /// Lets the more specific `over` override.
    pub(crate) fn merge(&mut self, over: &FixedEnv) {
        self.set
            .retain(|[known, _]| !over.unset.iter().any(|name| name.eq_ignore_ascii_case(known)));
        self.unset.extend(over.unset.iter().cloned());
        for [name, value] in &over.set {
            self.set(name, value);
        }
    }
}

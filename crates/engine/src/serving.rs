//! How a file is to be sent: what its entity tag is made of, and how many ranges it may be asked for.
//!
//! Source: httpd 2.4.71 `server/core.c`, `set_etag_bits`, `merge_core_dir_configs`, `set_max_ranges`.

/// What a decision says of sending its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serving {
    /// What the entity tag is made of; `None`: there is none.
    pub etag: Option<EtagParts>,
    /// `MaxRanges`: with more, the whole file is sent.
    pub ranges_max: RangeLimit,
    /// `MaxRangeOverlaps`: with more ranges that touch their predecessor, the whole file is sent.
    pub overlaps_max: RangeLimit,
    /// `MaxRangeReversals`: with more ranges that begin before their predecessor, the whole file is sent.
    pub reversals_max: RangeLimit,
}

/// The parts of an entity tag, from `FileETag`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtagParts {
    /// The number of the file.
    pub inode: bool,
    /// Its time of modification.
    pub modified: bool,
    /// Its length.
    pub size: bool,
    /// A digest of its content, which takes the place of the others.
    pub digest: bool,
}

/// How many of something a `Range` may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeLimit {
    /// None at all: for `MaxRanges`, no range is ever sent.
    None,
    /// So many.
    Most(u32),
    /// Any number.
    Unlimited,
}

/// `MaxRanges` where nothing is said.
const RANGES_MAX: RangeLimit = RangeLimit::Most(200);
/// `MaxRangeOverlaps` and `MaxRangeReversals` where nothing is said.
const IRREGULAR_MAX: RangeLimit = RangeLimit::Most(20);

impl Default for Serving {
    fn default() -> Serving {
        ServingDir::default().resolve()
    }
}

/// What a section says of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ServingDir {
    pub(crate) etag: EtagBits,
    pub(crate) ranges_max: Option<RangeLimit>,
    pub(crate) overlaps_max: Option<RangeLimit>,
    pub(crate) reversals_max: Option<RangeLimit>,
}

/// `FileETag` as bits: what is set, and what is added and taken away. All 0: nothing was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EtagBits {
    pub(crate) set: u8,
    pub(crate) added: u8,
    pub(crate) removed: u8,
}

impl EtagBits {
    pub(crate) const NONE: u8 = 1;
    pub(crate) const INODE: u8 = 2;
    pub(crate) const MODIFIED: u8 = 4;
    pub(crate) const SIZE: u8 = 8;
    pub(crate) const DIGEST: u8 = 16;
    /// `All`, which leaves the digest out.
    pub(crate) const ALL: u8 = Self::INODE | Self::MODIFIED | Self::SIZE;
    /// Where nothing is said.
    const DEFAULT: u8 = Self::MODIFIED | Self::SIZE;

    /// As httpd does it: what sections add to nothing counts as set once two of them are merged.
    fn merge(&mut self, over: EtagBits) {
        if over.set == 0 {
            self.added = self.added & !over.removed | over.added;
            self.removed = self.removed & !over.added | over.removed;
            self.set = self.set & !self.removed | self.added;
        } else {
            *self = over;
        }
        if self.set != Self::NONE {
            self.set &= !Self::NONE;
        }
    }

    fn resolve(self) -> Option<EtagParts> {
        let bits = match self.set & !self.removed | self.added {
            0 => Self::DEFAULT,
            bits => bits,
        };
        let has = |bit: u8| bits & bit != 0;
        (has(Self::DIGEST) || !has(Self::NONE)).then_some(EtagParts {
            inode: has(Self::INODE),
            modified: has(Self::MODIFIED),
            size: has(Self::SIZE),
            digest: has(Self::DIGEST),
        })
    }
}

impl ServingDir {
    /// Lets the more specific `over` override.
    pub(crate) fn merge(&mut self, over: ServingDir) {
        self.etag.merge(over.etag);
        self.ranges_max = over.ranges_max.or(self.ranges_max);
        self.overlaps_max = over.overlaps_max.or(self.overlaps_max);
        self.reversals_max = over.reversals_max.or(self.reversals_max);
    }

    /// What holds in the end.
    pub(crate) fn resolve(&self) -> Serving {
        Serving {
            etag: self.etag.resolve(),
            ranges_max: self.ranges_max.unwrap_or(RANGES_MAX),
            overlaps_max: self.overlaps_max.unwrap_or(IRREGULAR_MAX),
            reversals_max: self.reversals_max.unwrap_or(IRREGULAR_MAX),
        }
    }
}

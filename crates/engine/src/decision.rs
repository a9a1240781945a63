//! What is to be answered, and which rule said so.

use std::fmt;
use std::path::Path;

use crate::pool::Pool;
use crate::proxy::Proxied;
use crate::response::AddedFields;
use crate::serving::Serving;

/// The answer to one request. Borrows the location and the path from the scratch it was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'s> {
    /// What to answer.
    pub outcome: Outcome<'s>,
    /// The directive that answered, if one did.
    pub rule: Option<Rule<'s>>,
    /// The response fields that directives add.
    pub fields: AddedFields<'s>,
}

/// The kinds of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'s> {
    /// A status with a `Location`: from 300 to 399, or 500 where httpd does not know the status.
    Redirect {
        /// The status code.
        status: u16,
        /// The field value of `Location`, ready to send: it holds no control byte.
        location: &'s [u8],
    },
    /// A response with no content of ours: an error page, or `200` for `OPTIONS`.
    Status(u16),
    /// The text of an `ErrorDocument`, in HTML.
    Text {
        /// The status code.
        status: u16,
        /// The content.
        text: &'s [u8],
    },
    /// A regular file; the engine has seen that it exists.
    File {
        /// 200, or the status of the error whose document it is: such a response has no validators.
        status: u16,
        /// The file's absolute path, as bytes.
        path: &'s [u8],
        /// How it is sent. Its type, encoding and languages are among [`Decision::fields`].
        serving: Serving,
    },
    /// What a server behind this one answers. The decision goes on when it has: see
    /// [`crate::Scratch::suspend`].
    Proxy(Proxied<'s>),
    /// The answer of that server is passed on, with this status and [`Decision::fields`].
    Passed(u16),
}

/// A directive that answered.
#[derive(Clone, Copy)]
pub struct Rule<'s> {
    pub(crate) pool: &'s Pool,
    pub(crate) place: Place,
}

impl<'s> Rule<'s> {
    /// The file that the directive stands in.
    pub fn file(&self) -> &'s Path {
        self.pool.path(self.place.file)
    }

    /// A number of the directive among those of the site, as long as [`Rule::is_lasting`].
    pub fn id(&self) -> (u32, u32) {
        (self.place.file, self.place.offset)
    }

    /// Whether the directive belongs to the site itself, and not to a `.htaccess` file.
    pub fn is_lasting(&self) -> bool {
        self.file().file_name().is_none_or(|name| name != ".htaccess")
    }

    /// The line that it begins on, from 1. Costs a pass over the file.
    pub fn line(&self) -> u32 {
        self.pool.describe(self.place).1
    }
}

impl PartialEq for Rule<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place && self.file() == other.file()
    }
}

impl Eq for Rule<'_> {}

impl fmt::Debug for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file().display(), self.line())
    }
}

/// Where a directive stands in the text of its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) file: u32,
    pub(crate) offset: u32,
}

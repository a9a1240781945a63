//! What is to be answered, and which rule said so.

/// The answer to one request. Borrows the location and the path from the scratch it was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'s> {
    /// What to answer.
    pub outcome: Outcome<'s>,
    /// The directive that answered, if one did.
    pub rule: Option<Place>,
}

/// The kinds of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'s> {
    /// A status from 300 to 399 with a `Location`.
    Redirect {
        /// The status code.
        status: u16,
        /// The field value of `Location`, ready to send: it holds no control byte.
        location: &'s [u8],
    },
    /// A response with no content of ours: an error page, or `200` for `OPTIONS *`.
    Status(u16),
    /// A regular file; the engine has seen that it exists.
    File {
        /// The file's absolute path, as bytes.
        path: &'s [u8],
    },
}

/// Where a directive stands: resolve it with [`crate::Site::describe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub(crate) file: u32,
    pub(crate) offset: u32,
}

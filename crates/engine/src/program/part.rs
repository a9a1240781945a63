//! A part of the configuration together with the text that it points into.

use std::sync::Arc;

use crate::pool::Pool;

/// Rules or a section, and their text. A `.htaccess` file brings its own text; everything else is in
/// the program's.
#[derive(Debug)]
pub(crate) struct Part<T> {
    pub(crate) value: Arc<T>,
    text: Option<Arc<Pool>>,
}

impl<T> Part<T> {
    /// A part whose text is the program's, until [`Part::adopt`] says otherwise.
    pub(crate) fn new(value: T) -> Part<T> {
        Part { value: Arc::new(value), text: None }
    }

    /// The pool to read its text from.
    pub(crate) fn pool<'p>(&'p self, program: &'p Pool) -> &'p Pool {
        self.text.as_deref().unwrap_or(program)
    }

    /// The text, if it is not the program's.
    pub(crate) fn own_text(&self) -> Option<&Arc<Pool>> {
        self.text.as_ref()
    }

    /// Says which text the part points into.
    pub(crate) fn adopt(&mut self, text: &Arc<Pool>) {
        self.text = Some(Arc::clone(text));
    }
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        Part { value: Arc::clone(&self.value), text: self.text.clone() }
    }
}

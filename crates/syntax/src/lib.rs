//! Apache configuration text to directives with spans, and back.

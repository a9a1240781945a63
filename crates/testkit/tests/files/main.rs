//! Files are answered as httpd answers them: real httpd and milepost side by side, field by field.

mod connections;
mod content;
mod expiry;
mod links;
mod listing;
mod parts;
mod support;
mod unread;
mod validators;

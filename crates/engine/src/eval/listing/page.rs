//! The page of a list: a list of names, columns of text, or a table.
//!
//! Source: httpd 2.4.71 `modules/generators/mod_autoindex.c`, `emit_preamble`, `output_directories`,
//! `emit_link`.

use std::io::Write;

use milepost_http::path;

use super::entry::Entry;
use super::shown::{cut_description, short_size};
use super::{Document, Wanted, write_escaped};
use crate::eval::variable::civil;
use crate::program::{Column, ListFlags, Listed, Listing, Width, find_attached};

/// The width of names and descriptions where nothing is said, in bytes.
const WIDTH: usize = 23;

/// Bytes that a description wins where another column is left out: icon, time, size.
const WON: [(ListFlags, usize); 3] =
    [(ListFlags::NO_ICON, 6), (ListFlags::NO_MODIFIED, 19), (ListFlags::NO_SIZE, 7)];

/// The width of a date with the blanks behind it, in bytes; that of `UseOldDateFormat`, as in httpd.
const DATE_WIDTH: usize = 19;

/// A page that is being written.
pub(super) struct Page<'p> {
    listing: &'p Listing,
    wanted: &'p Wanted,
    title: Vec<u8>,
    out: Vec<u8>,
}

impl<'p> Page<'p> {
    pub(super) fn new(listing: &'p Listing, wanted: &'p Wanted, title: Vec<u8>) -> Page<'p> {
        Page { listing, wanted, title, out: Vec::new() }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    fn has(&self, flags: ListFlags) -> bool {
        self.wanted.flags.has(flags)
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn put_all(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
    }

    /// How an element without content ends.
    fn end_of_empty(&self) -> &'static str {
        if self.has(ListFlags::XHTML) { " />" } else { ">" }
    }

    /// Everything before the list.
    pub(super) fn begin(&mut self, header: Option<&Document>) {
        let is_own =
            header.is_some_and(|header| header.is_html) && self.has(ListFlags::NO_PREAMBLE);
        if !is_own {
            self.preamble();
        }
        match header {
            Some(header) => self.out.extend_from_slice(&header.html),
            None => {
                let title = std::mem::take(&mut self.title);
                let start: &[u8] = match self.listing.style_sheet {
                    None => b"<h1>",
                    Some(_) => b"  <h1 id=\"indextitle\">",
                };
                self.put_all(&[start, b"Index of ", &title, b"</h1>\n"]);
            }
        }
    }

    fn preamble(&mut self) {
        self.put(if self.has(ListFlags::XHTML) {
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\"\n\
             \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n\
             <html xmlns=\"http://www.w3.org/1999/xhtml\">\n"
        } else {
            "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \
             \"http://www.w3.org/TR/html4/strict.dtd\">\n<html>\n"
        });
        let title = self.title.clone();
        self.put_all(&[b" <head>\n  <title>Index of ", &title, b"</title>\n"]);
        if let Some(sheet) = &self.listing.style_sheet {
            let end = self.end_of_empty().as_bytes();
            let parts = [b"  <link rel=\"stylesheet\" href=\"", &sheet[..]];
            self.put_all(&[&parts.concat(), b"\" type=\"text/css\"", end, b"\n"]);
        }
        let listing = self.listing;
        self.put_all(&[listing.head_insert.as_deref().unwrap_or_default()]);
        self.put(" </head>\n <body>\n");
    }

    /// Everything after the list.
    pub(super) fn end(&mut self, readme: Option<&Document>) {
        self.put_all(&[readme.map(|readme| &readme.html[..]).unwrap_or_default()]);
        let is_own =
            readme.is_some_and(|readme| readme.is_html) && self.has(ListFlags::NO_PREAMBLE);
        if !is_own {
            self.put("</body></html>\n");
        }
    }

    /// The list itself.
    pub(super) fn list(&mut self, entries: &[Entry]) {
        if self.has(ListFlags::TABLE) {
            self.table(entries);
        } else if self.has(ListFlags::FANCY) {
            self.columns(entries);
        } else {
            self.put("<ul>");
            for entry in entries {
                self.put("<li>");
                self.link(entry, b" ", usize::MAX);
                self.put("</li>\n");
            }
            self.put("</ul>\n");
        }
    }

    /// The columns that are shown after icon and name, with their titles.
    fn shown(&self) -> impl Iterator<Item = (Column, &'static str)> + use<> {
        let flags = self.wanted.flags;
        let columns = [
            (Column::Modified, "Last modified", ListFlags::NO_MODIFIED),
            (Column::Size, "Size", ListFlags::NO_SIZE),
            (Column::Description, "Description", ListFlags::NO_DESCRIPTION),
        ];
        let shown = columns.into_iter().filter(move |(.., without)| !flags.has(*without));
        shown.map(|(column, title, _)| (column, title))
    }

    /// The title of a column, which leads to the list in its order.
    fn title(&mut self, column: Column, title: &str) {
        if self.has(ListFlags::NO_SORTING) {
            return self.put(title);
        }
        let reverses = self.wanted.column == column && !self.wanted.downwards;
        let direction = if reverses { b'D' } else { b'A' };
        self.put_all(&[b"<a href=\"?C=", &[column.letter()], b";O=", &[direction]]);
        self.wanted.write_kept(&mut self.out);
        self.put_all(&[b"\">", title.as_bytes(), b"</a>"]);
    }

    /// The name of an entry, cut to `width`, as a link; returns how many bytes are shown.
    fn link(&mut self, entry: &Entry, before: &[u8], width: usize) -> usize {
        let shown: &[u8] = if entry.is_parent { b"Parent Directory" } else { &entry.name };
        let cut = [&shown[..shown.len().min(width.saturating_sub(3))], b"..>"].concat();
        let shown = if shown.len() > width { &cut[..] } else { shown };
        self.put("<a href=\"");
        self.anchor(entry);
        self.put("\">");
        self.put_all(&[before]);
        write_escaped(shown, &mut self.out);
        self.put("</a>");
        shown.len()
    }

    fn anchor(&mut self, entry: &Entry) {
        let mut escaped = Vec::new();
        // Without the dot, a name with a colon would be a scheme.
        let before_slash = entry.name.split(|&byte| byte == b'/').next().unwrap_or_default();
        if before_slash.contains(&b':') {
            escaped.extend_from_slice(b"./");
        }
        path::escape(&entry.name, &mut escaped);
        write_escaped(&escaped, &mut self.out);
    }

    /// An icon with its text; false if there is none.
    fn image(&mut self, icon: Option<&[u8]>, text: &[u8]) -> bool {
        let Some(icon) = icon else { return false };
        self.put("<img src=\"");
        write_escaped(icon, &mut self.out);
        self.put_all(&[b"\" alt=\"", text, b"\""]);
        for (name, pixels) in ["width", "height"].into_iter().zip(self.listing.icon_size) {
            if let Some(pixels) = pixels.filter(|pixels| *pixels > 0) {
                // Writing to memory does not fail.
                let _ = write!(self.out, " {name}=\"{pixels}\"");
            }
        }
        self.put(self.end_of_empty());
        true
    }

    /// The icon of an entry, or what has its place.
    fn icon(&mut self, entry: &Entry, otherwise: &str) {
        let is_link = self.has(ListFlags::ICONS_ARE_LINKS);
        if is_link {
            self.put("<a href=\"");
            self.anchor(entry);
            self.put("\">");
        }
        let text = [b"[", entry.text.as_deref().unwrap_or(b"   "), b"]"].concat();
        let icon = entry.icon.as_deref().or(self.listing.default_icon.as_deref());
        if !self.image(icon, &text) {
            self.put(otherwise);
        }
        if is_link {
            self.put("</a>");
        }
    }

    fn blank_icon(&mut self, text: &[u8]) -> bool {
        let icon = find_attached(&self.listing.icons, Listed::at(b"^^BLANKICON^^"));
        self.image(icon, text)
    }

    /// How wide names are; `None`: as wide as they need.
    fn name_width(&self) -> Option<usize> {
        match self.listing.name_width {
            Some(Width::Fixed(0)) | None => Some(WIDTH),
            Some(Width::Fixed(width)) => Some(width),
            Some(Width::Needed) => None,
        }
    }

    /// Columns of text.
    fn columns(&mut self, entries: &[Entry]) {
        let longest = || entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
        let width = self.name_width().unwrap_or_else(|| longest().max(WIDTH));
        let has_icons = !self.has(ListFlags::NO_ICON);
        self.put("<pre>");
        if has_icons {
            if self.blank_icon(b"Icon ") {
                self.put(" ");
            } else {
                self.put("      ");
            }
        }
        self.title(Column::Name, "Name");
        self.blanks(width + 1 - "Name".len());
        for (column, title) in self.shown() {
            self.title(column, title);
            match column {
                Column::Modified => self.put("      "),
                Column::Size => self.put("  "),
                Column::Name | Column::Description => {}
            }
        }
        self.rule("\n");
        for entry in entries {
            if has_icons {
                self.icon(entry, "     ");
                self.put(" ");
            }
            let shown = self.link(entry, b"", width);
            self.blanks(width + 1 - shown);
            for (column, _) in self.shown() {
                match (column, entry.modified) {
                    (Column::Modified, Some(modified)) => self.date(modified),
                    (Column::Modified, None) => self.blanks(DATE_WIDTH),
                    (Column::Size, _) => {
                        self.size(entry.size);
                        self.put("  ");
                    }
                    _ => self.description(entry),
                }
            }
            self.put("\n");
        }
        self.rule("");
        self.put("</pre>\n");
    }

    fn rule(&mut self, otherwise: &str) {
        if self.has(ListFlags::NO_RULES) {
            self.put(otherwise);
        } else {
            self.put("<hr");
            self.put(self.end_of_empty());
        }
    }

    fn blanks(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, b' ');
    }

    /// A table.
    fn table(&mut self, entries: &[Entry]) {
        let has_classes = self.listing.style_sheet.is_some();
        let class = |name: &str, otherwise: &'static str| {
            if has_classes { format!(" class=\"index{name}\"") } else { otherwise.to_owned() }
        };
        let has_icons = !self.has(ListFlags::NO_ICON);
        let columns = 1 + usize::from(has_icons) + self.shown().count();
        self.put(if has_classes { "  <table id=\"indexlist\">\n" } else { "  <table>\n" });
        self.put(&format!("   <tr{}>", class("head", "")));
        if has_icons {
            self.put(&format!("<th{}>", class("colicon", " valign=\"top\"")));
            if !self.blank_icon(b"[ICO]") {
                self.put("&nbsp;");
            }
            self.put("</th>");
        }
        self.put(&format!("<th{}>", class("colname", "")));
        self.title(Column::Name, "Name");
        for (column, title) in self.shown() {
            self.put(&format!("</th><th{}>", class(class_of(column), "")));
            self.title(column, title);
        }
        self.put("</th></tr>\n");
        let rule = if self.has(ListFlags::NO_RULES) {
            String::new()
        } else {
            let end = self.end_of_empty();
            let class = class("breakrow", "");
            format!("   <tr{class}><th colspan=\"{columns}\"><hr{end}</th></tr>\n")
        };
        self.put(&rule);
        let width = self.name_width();
        for (number, entry) in entries.iter().enumerate() {
            self.put(match (has_classes, number % 2) {
                (false, _) => "<tr>",
                (true, 0) => "   <tr class=\"even\">",
                (true, _) => "   <tr class=\"odd\">",
            });
            if has_icons {
                self.put(&format!("<td{}>", class("colicon", " valign=\"top\"")));
                self.icon(entry, "&nbsp;");
                self.put("</td>");
            }
            self.put(&format!("<td{}>", class("colname", "")));
            let shown = self.link(entry, b"", width.unwrap_or(usize::MAX));
            self.blanks(width.map_or(0, |width| width - shown));
            for (column, _) in self.shown() {
                let has_value = column == Column::Size || entry.modified.is_some();
                let is_right = column != Column::Description && has_value;
                let otherwise = if is_right { " align=\"right\"" } else { "" };
                self.put(&format!("</td><td{}>", class(class_of(column), otherwise)));
                match (column, entry.modified) {
                    (Column::Modified, Some(modified)) => self.date(modified),
                    (Column::Size, _) => self.size(entry.size),
                    (Column::Description, _) if entry.description.is_some() => {
                        self.description(entry);
                    }
                    _ => self.put("&nbsp;"),
                }
            }
            self.put("</td></tr>\n");
        }
        self.put(&rule);
        self.put("</table>\n");
    }

    fn date(&mut self, (seconds, ahead): (i64, i32)) {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let seconds = seconds + i64::from(ahead);
        let (year, month, day) = civil(seconds.div_euclid(86_400));
        let minutes = seconds.rem_euclid(86_400) / 60;
        let (hour, minute) = (minutes / 60, minutes % 60);
        // Writing to memory does not fail.
        let _ = if self.has(ListFlags::OLD_DATE) {
            let month = MONTHS[(month - 1).rem_euclid(12) as usize];
            write!(self.out, "{day:02}-{month}-{year} {hour:02}:{minute:02}  ")
        } else {
            write!(self.out, "{year}-{month:02}-{day:02} {hour:02}:{minute:02}  ")
        };
    }

    fn size(&mut self, size: Option<u64>) {
        let text = size.map_or("  - ".to_owned(), short_size);
        self.put(&text);
    }

    /// The description of an entry, cut to the width of its column.
    fn description(&mut self, entry: &Entry) {
        let Some(text) = &entry.description else { return };
        let won =
            || WON.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, won)| won).sum::<usize>();
        let width = match self.listing.description_width {
            None => WIDTH + won(),
            Some(Width::Fixed(0)) => WIDTH,
            Some(Width::Fixed(width)) => width,
            Some(Width::Needed) => usize::MAX,
        };
        let cut = cut_description(text, width);
        self.out.extend_from_slice(&cut);
    }
}

/// The class of a column's cells, after `index`.
fn class_of(column: Column) -> &'static str {
    match column {
        Column::Name => "colname",
        Column::Modified => "collastmod",
        Column::Size => "colsize",
        Column::Description => "coldesc",
    }
}

/// Appends a text as HTML.
pub(super) fn write_plain(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<pre>\n");
    for &byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            byte => out.push(byte),
        }
    }
    out.extend_from_slice(b"</pre>\n");
}

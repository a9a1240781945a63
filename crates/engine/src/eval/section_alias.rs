//! `Redirect` and `Alias` for all of a section: no path to compare, and a text with variables.
//!
//! The most specific section that has one counts. It comes before the lists of prefixes and patterns, and a
//! redirect is seen twice: once for the URL-path alone, once when the file is known.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_alias.c`, `try_redirect`, `try_alias`.

use super::{Config, Context, End, Hop, Run, Translated, alias};
use crate::program::{SectionAlias, SectionRedirect};

impl Run<'_> {
    /// `Redirect` without a URL-path, if a section has one.
    pub(super) fn try_section_redirect(
        &mut self,
        hop: &mut Hop,
        config: &Config<'_>,
    ) -> Option<End> {
        let config = config.get();
        let redirect = config.section_redirect.as_ref()?;
        let SectionRedirect { status, target, place } = &*redirect.value;
        self.rule = Some((*place, redirect.own_text().cloned()));
        let Some(target) = target else { return Some(alias::status_end(*status)) };
        let mut text = self.take_buffer();
        let mut answer = std::mem::take(&mut self.work.answer);
        answer.clear();
        let written = self.write_template(target, hop, &mut text);
        if written.is_ok() {
            self.escape_target(&text, &mut answer);
        }
        self.put_buffer(text);
        let relative = config.redirect_relative == Some(true);
        let end = self.finish_redirect(*status, answer, hop, relative);
        Some(if written.is_ok() { end } else { End::Status(500) })
    }

    /// `Alias` without a URL-path, if a section has one: the path of the file.
    pub(super) fn try_section_alias(&mut self, hop: &mut Hop, config: &Config<'_>) -> Translated {
        let config = config.get();
        let Some(part) = &config.section_alias else { return Translated::Declined };
        let SectionAlias { file, url_path } = &*part.value;
        let mut path = self.take_buffer();
        let written = self.write_template(file, hop, &mut path);
        if written.is_err() {
            // httpd says so in its log and goes on with an empty path.
            path.clear();
        }
        let keeps_path = config.preserve_path == Some(true) && written.is_ok();
        let url_path = url_path.filter(|_| keeps_path);
        if let Some(url_path) = url_path.map(|text| part.pool(&self.program.pool).get(text)) {
            let covered = alias::covers(url_path, &hop.uri);
            if covered > 0 {
                let document_root = path.clone();
                hop.context = Some(Context { prefix: url_path.to_vec(), document_root });
                path.extend_from_slice(&hop.uri[covered..]);
            }
        }
        self.root_relative(&mut path);
        std::mem::swap(&mut hop.filename, &mut path);
        self.put_buffer(path);
        Translated::Done
    }
}

//! `<If>`: the sections that hold for a request, merged last.
//!
//! All sections of one level are tried and merged before those inside them, which therefore override even
//! an `<If>` further down. Which of them hold is part of the key that a merged configuration is remembered
//! by.
//!
//! Source: httpd 2.4.71 `server/request.c`, `ap_if_walk`, `ap_if_walk_sub`.

use milepost_pcre::Captures;

use super::walk::{IF, LEVEL};
use super::{Config, Hop, Run};
use crate::program::{DirConfig, IfSection, Part};
use crate::trace::Event;

impl<'r> Run<'r> {
    /// Merges the `<If>` sections that hold into `config`, which was merged from the collected sections.
    pub(super) fn add_ifs(&mut self, mut config: Config<'r>, hop: &Hop) -> Config<'r> {
        if config.get().ifs.is_empty() {
            return config;
        }
        // A subrequest of `-U` collects sections of its own.
        let mut key = std::mem::take(&mut self.work.sections);
        loop {
            key.push(LEVEL);
            let len = key.len();
            self.choose(&config.get().ifs, hop, &mut key);
            if key.len() == len {
                break;
            }
            self.work.sections = key;
            config = self.merged_with(config, len);
            key = std::mem::take(&mut self.work.sections);
        }
        self.work.sections = key;
        config
    }

    /// Adds the numbers of the sections that hold.
    fn choose(&mut self, ifs: &[Part<IfSection>], hop: &Hop, key: &mut Vec<u32>) {
        // An `<Else>` goes by the section before it.
        let mut held = false;
        for (section, number) in ifs.iter().zip(0..) {
            let IfSection { condition, otherwise, place, .. } = &*section.value;
            if *otherwise && held {
                continue;
            }
            held = match condition {
                Some(condition) => {
                    let mut capture = std::mem::take(&mut self.work.expression);
                    capture.groups = Captures::default();
                    let holds = self.holds(condition, hop, &mut capture);
                    self.work.expression = capture;
                    let pool = section.pool(&self.program.pool);
                    let input = Vec::new();
                    self.note(Some((*place, pool)), |_| Event::Condition { input, holds });
                    holds
                }
                None => false,
            };
            if held || condition.is_none() {
                key.push(IF | number);
            }
        }
    }
}

/// Merges the chosen `ifs` into a configuration. What `<If>` sections it then has are those inside them.
pub(super) fn merge_ifs(config: &mut DirConfig, chosen: impl Iterator<Item = u32>) {
    let ifs = std::mem::take(&mut config.ifs);
    let mut chosen = chosen.filter_map(|number| ifs.get(number as usize));
    let Some(first) = chosen.next() else { return };
    let mut merged = first.value.config.clone();
    chosen.for_each(|section| merged.merge(&section.value.config));
    config.merge(&merged);
}

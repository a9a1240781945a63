//! Virtual hosts by name and by address, and requests that choose among them.

use super::{Maker, near};
use crate::case::Ask;

impl Maker {
    /// A main server and some virtual hosts.
    pub(super) fn hosts(&mut self) -> String {
        let mut text = self.server();
        for at in 0..self.rng.usize(1..=3) {
            let address = if self.one_in(3) {
                self.pick(&[
                    "127.0.0.2:@PORT@",
                    "127.0.0.2:@PORT@ 127.0.0.3:@PORT@",
                    "_default_:@PORT@",
                    "*",
                    "127.0.0.2",
                    "*:1",
                    "127.0.0.3:*",
                ])
            } else {
                "*:@PORT@"
            };
            text.push_str(&format!("<VirtualHost {address}>\n"));
            if !self.one_in(10) {
                let name = match self.rng.u8(0..8) {
                    0 => format!("http://host{at}.test"),
                    1 => format!("https://host{at}.test:8443"),
                    2 => format!("host{at}.test:8080"),
                    _ => format!("host{at}.test"),
                };
                text.push_str(&format!("ServerName {name}\n"));
            }
            if self.one_in(2) {
                let alias = self.pick(&["www.test", "*.test", "host?.test", "a.test b.test", "*"]);
                text.push_str(&format!("ServerAlias {alias}\n"));
            }
            if self.one_in(4) {
                text.push_str("DocumentRoot @ROOT@/htdocs/a\n");
            }
            if self.one_in(6) {
                text.push_str(self.pick(&[
                    "UseCanonicalName On\n",
                    "UseCanonicalName Off\nUseCanonicalPhysicalPort On\n",
                    "ServerPath /a\n",
                ]));
            }
            if !self.one_in(4) {
                text.push_str(&self.server());
            }
            text.push_str("</VirtualHost>\n");
        }
        text
    }

    /// Has a request choose another host: by address, in the target, or by an odd name.
    pub(super) fn vary_host(&mut self, ask: &mut Ask) {
        match self.rng.u8(0..3) {
            0 => ask.address = Some(self.pick(&["127.0.0.2", "127.0.0.3"]).to_owned()),
            1 if ask.target.starts_with(b"/") => {
                let host = self.pick(&[
                    "http://host0.test",
                    "http://HOST1.test:8080",
                    "https://www.test",
                    "http://u@a.test",
                ]);
                ask.target.splice(0..0, host.bytes());
            }
            _ => {
                let host = self.pick(&["host0.test:@PORT@", "host1.test.", "127.0.0.2", "b.test"]);
                near::at_host(ask, host);
            }
        }
    }
}

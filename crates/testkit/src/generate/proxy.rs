//! What is asked of another server: `ProxyPass` in every place that it has, and what belongs to it.

use super::{Context, Maker, word};

impl Maker {
    /// Some lines about a server behind this one.
    pub(super) fn proxies(&mut self, context: Context) -> String {
        let count = self.rng.usize(1..=3);
        (0..count).map(|_| self.proxy(context)).collect()
    }

    fn proxy(&mut self, context: Context) -> String {
        let url = self.backend_url();
        match self.rng.u8(0..12) {
            0..3 if context == Context::Server => {
                let path = self.path();
                let path = path.trim_end_matches('/');
                let slash = self.pick(&["", "", "/"]);
                let more = self.proxy_words();
                format!("ProxyPass {} {url}{slash}{more}\n", word(&format!("{path}{slash}")))
            }
            3 if context == Context::Server => {
                let path = self.path();
                format!("ProxyPass {} !\n", word(&path))
            }
            4 | 5 if context == Context::Server => {
                let pattern = self.pattern(false);
                let target = self.pick(&["/$1", "/$0", "", "$0", "/x?q=$1", "/$2/$1"]);
                let more = self.proxy_words();
                format!("ProxyPassMatch {} http://@BACKEND@{target}{more}\n", word(&pattern))
            }
            6 if context == Context::Server => {
                let pattern = self.pattern(false);
                let target = self.pick(&["/$1", "$0", "/back"]);
                let name = self.pick(&["ProxyPassMatch", "ProxyPass"]);
                format!(
                    "<LocationMatch {}>\n{name} http://@BACKEND@{target}\n</LocationMatch>\n",
                    word(&pattern)
                )
            }
            7 if context == Context::Server => {
                let path = self.path();
                let reverse = self.pick(&[
                    "",
                    "ProxyPassReverse /back\n",
                    "ProxyPassReverse http://@BACKEND@/back\n",
                ]);
                let more = self.proxy_words();
                format!("<Location {}>\nProxyPass {url}{more}\n{reverse}</Location>\n", word(&path))
            }
            8 if context == Context::Server => {
                let pattern = self.pattern(false);
                let flags = self.pick(&["P", "P,QSA", "P,NE", "P,L,QSD", "proxy"]);
                format!(
                    "RewriteEngine On\nRewriteRule {} http://@BACKEND@/r/$1 [{flags}]\n",
                    word(&pattern)
                )
            }
            _ if context == Context::Server => {
                let path = self.pick(&["/", "/a", "/docs"]);
                self.pick(&[
                    "ProxyPassReverse / http://@BACKEND@/\n",
                    "ProxyPassReverse /a http://@BACKEND@/back\n",
                    "ProxyPassInherit Off\n",
                    "ProxyPassInterpolateEnv On\nSetEnv V x\nProxyPass /b http://@BACKEND@/${V} interpolate\n",
                    "ProxyPreserveHost On\nProxyPassReverse /a http://www.test/back\n",
                    "ProxyErrorOverride On\nErrorDocument 404 /x.html\n",
                    "ProxyErrorOverride On 404\n",
                    "<Proxy \"http://@BACKEND@/back\">\nRequire method GET\n</Proxy>\n",
                    "<ProxyMatch \"/back|/r\">\nRequire all denied\n</ProxyMatch>\n",
                    "<Proxy *>\nRequire all granted\nHeader set X-M proxied\n</Proxy>\n",
                    "ProxyRequests Off\n",
                ])
                .replace("/a ", &format!("{path} "))
            }
            _ => {
                let pattern = self.pattern(context == Context::Htaccess);
                format!(
                    "RewriteEngine On\nRewriteRule {} http://@BACKEND@/r/$1 [P]\n",
                    word(&pattern)
                )
            }
        }
    }

    fn backend_url(&mut self) -> String {
        format!("http://@BACKEND@{}", self.pick(&["", "/back", "/back/", "/x.html", "/", "/b?q=1"]))
    }

    fn proxy_words(&mut self) -> &'static str {
        self.pick(&["", "", "", " nocanon", " noquery", " timeout=5 retry=0", " noquery"])
    }
}

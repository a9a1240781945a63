//! Merges the main server into each virtual host.
//!
//! Source: httpd 2.4.71 `server/config.c` `merge_server_configs`, `server/core.c`
//! `merge_core_server_configs` and `ap_core_reorder_directories`; the modules' `merge` functions.

use std::sync::Arc;

use super::{Builder, ServerDraft};
use crate::program::{DirConfig, Part, RewriteOptions, Section, Server, ServerName};

/// `LimitInternalRecursion` where nothing is said.
const RECURSION_MAX: (u32, u32) = (10, 10);

impl Builder<'_> {
    /// Makes the servers of the program. The main server is the first.
    pub(super) fn finish_servers(&mut self) -> Vec<Server> {
        self.finish_tls();
        self.finish_protocols();
        let drafts = std::mem::take(&mut self.servers);
        let mut servers: Vec<Server> = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let server = self.finish_server(draft, servers.first());
            servers.push(server);
        }
        for server in &mut servers {
            let depth = |section: &Part<Section>| section.value.depth.unwrap_or(usize::MAX);
            // Stable: sections of the same depth stay in the order of the configuration.
            server.directories.sort_by_key(depth);
        }
        servers
    }

    fn finish_server(&mut self, draft: ServerDraft, main: Option<&Server>) -> Server {
        let ServerDraft {
            mut server,
            base,
            rewrite,
            path_aliases,
            rewrite_options,
            has_rewriting,
            maps,
            database,
            mut proxy,
            merge_slashes,
            recursion_max,
            sections,
            tls: _,
            protocols: _,
        } = draft;
        let has_rewriting = has_rewriting || !maps.is_empty();
        let own = self.finish_dir(base);
        let own_redirects = own.redirects.clone();
        server.rewrite = rewrite.finish(self).into_iter().collect();
        server.path_aliases = path_aliases.finish(self).into_iter().collect();
        server.passes = proxy.finish(self).into_iter().collect();
        server.proxy = proxy.own;
        server.proxy_sections = proxy.sections;
        server.maps = maps;
        server.database = self.databases.len();
        self.databases.push(database.finish(self.databases.first(), server.database));
        server.locations = sections.locations;
        server.directories = sections.directories;
        // Redirects outside sections run before the file is looked for, from a list of their own.
        server.redirects = own_redirects;
        // So do variables: they are set before anything else.
        server.env_if = own.env_if.clone();
        server.base = DirConfig { redirects: Vec::new(), env_if: Vec::new(), ..own };
        server.rewrite_options = rewrite_options.unwrap_or_default();
        server.merge_slashes = merge_slashes.unwrap_or(true);
        server.recursion_max = recursion_max.unwrap_or(RECURSION_MAX);
        let Some(main) = main else { return server };
        if server.document_root.is_none() {
            server.document_root = main.document_root;
        }
        if server.name.is_none() {
            // Without a name of its own it is called like the main server, at its own port.
            let port = server.addresses.iter().find_map(|address| address.port);
            server.name = main.name.map(|name| ServerName { port: port.or(name.port), ..name });
        }
        server.trace = server.trace.or(main.trace);
        server.remote_ip.inherit(&main.remote_ip);
        server.user_dir.inherit(&main.user_dir);
        server.host_roots.inherit(&main.host_roots);
        if server.access_names.is_empty() {
            server.access_names.clone_from(&main.access_names);
        }
        let mut base = main.base.clone();
        base.merge(&server.base);
        server.base = base;
        server.redirects.extend(main.redirects.iter().cloned());
        server.env_if = [&main.env_if[..], &server.env_if].concat();
        server.path_aliases.extend(main.path_aliases.iter().cloned());
        if proxy.inherit != Some(false) {
            server.passes = [&main.passes[..], &server.passes].concat();
        }
        server.proxy.via = server.proxy.via.or(main.proxy.via);
        server.proxy.timeout = server.proxy.timeout.or(main.proxy.timeout);
        server.proxy.backends.extend(&main.proxy.backends);
        server.proxy.balancers.extend(&main.proxy.balancers);
        server.proxy_sections = [&main.proxy_sections[..], &server.proxy_sections].concat();
        server.locations = [&main.locations[..], &server.locations].concat();
        server.directories = [&main.directories[..], &server.directories].concat();
        // A virtual host that says nothing about rewriting does none.
        if has_rewriting {
            inherit_rules(&mut server, main, rewrite_options);
        } else {
            // Rules of directories look maps up there all the same.
            server.maps.clone_from(&main.maps);
        }
        if merge_slashes.is_none() {
            server.merge_slashes = main.merge_slashes;
        }
        if recursion_max.is_none() {
            server.recursion_max = main.recursion_max;
        }
        server
    }
}

/// Rules and maps of the main server come along only where an option says so.
fn inherit_rules(server: &mut Server, main: &Server, own: Option<RewriteOptions>) {
    let options = own.unwrap_or(main.rewrite_options);
    let down = |down: bool| down && !options.ignore_inherit;
    let after = options.inherit || down(main.rewrite_options.inherit_down);
    let before = options.inherit_before || down(main.rewrite_options.inherit_down_before);
    if after || before {
        server.rewrite = if after {
            [&server.rewrite[..], &main.rewrite].concat()
        } else {
            [&main.rewrite[..], &server.rewrite].concat()
        };
        for (name, map) in &main.maps {
            server.maps.entry(name.clone()).or_insert_with(|| Arc::clone(map));
        }
    }
    server.rewrite_options = options;
}

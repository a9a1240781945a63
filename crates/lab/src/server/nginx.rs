//! nginx as a server of the lab: one worker, nothing written but errors.

use std::fmt::Write;

use super::{Server, ServerKind, Setup, apache, output, program};

/// Connections of the worker: nginx's own default, and twice what comes when that is more.
const CONNECTIONS_MIN: u32 = 512;

/// Looks for nginx.
pub(super) fn find() -> Result<Server, String> {
    let path = program(&["nginx"]).ok_or("nginx is not on PATH")?;
    let version = parse_version(&output(&path, &["-v"])?)
        .ok_or_else(|| format!("{} is not nginx", path.display()))?;
    Ok(Server {
        kind: ServerKind::Nginx,
        program: path,
        version,
        modules: apache::Modules::default(),
    })
}

/// Writes the configuration.
pub(super) fn configuration(setup: &Setup<'_>) -> String {
    let directory = setup.directory.display();
    let mut text = String::new();
    if let Some(account) = setup.account {
        // nginx takes a group by its name only; without one it uses the user's own.
        let group = Some(&account.group).filter(|group| !group.starts_with('#'));
        let group = group.map(|group| format!(" {group}")).unwrap_or_default();
        let _ = writeln!(text, "user {}{group};", account.user);
    }
    let _ = write!(
        text,
        "worker_processes 1;\n\
         daemon off;\n\
         pid \"{directory}/nginx.pid\";\n\
         error_log \"{directory}/error.log\" warn;\n\
         events {{\n    worker_connections {connections};\n}}\n\
         http {{\n\
         \x20   access_log off;\n\
         \x20   default_type text/plain;\n\
         \x20   keepalive_timeout 60s;\n\
         \x20   keepalive_requests 1000000000;\n\
         \x20   client_body_temp_path \"{directory}/client_body\";\n\
         \x20   proxy_temp_path \"{directory}/proxy\";\n\
         \x20   fastcgi_temp_path \"{directory}/fastcgi\";\n\
         \x20   uwsgi_temp_path \"{directory}/uwsgi\";\n\
         \x20   scgi_temp_path \"{directory}/scgi\";\n\
         \x20   include \"{http}\";\n\
         \x20   server {{\n\
         \x20       listen {address};\n\
         \x20       server_name localhost;\n\
         \x20       root \"{documents}\";\n\
         \x20       include \"{server}\";\n\
         \x20   }}\n}}\n",
        connections = setup.connections_max.saturating_mul(2).max(CONNECTIONS_MIN),
        address = setup.address,
        documents = setup.site.documents().display(),
        http = setup.site.nginx_http().display(),
        server = setup.site.nginx_server().display(),
    );
    text
}

/// Finds the version in what `nginx -v` prints.
fn parse_version(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("nginx version: nginx/"))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_says_what_it_is() {
        assert_eq!(parse_version("nginx version: nginx/1.22.1\n").as_deref(), Some("1.22.1"));
        assert_eq!(parse_version("nginx version: openresty/1.21.4.1\n"), None);
    }
}

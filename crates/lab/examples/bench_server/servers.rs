//! The servers, each with a configuration that says the same in its own words.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::drive::Load;

/// Redirects in every configuration.
pub(crate) const RULES: usize = 10_000;

/// The length of the file.
pub(crate) const FILE_BYTES: usize = 1024;

/// How long a server may take until it accepts connections.
const READY_MAX: Duration = Duration::from_secs(20);

/// A server that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Milepost,
    Control,
    Null,
    Nginx,
    Apache,
    Haproxy,
    Caddy,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Milepost,
        Kind::Control,
        Kind::Null,
        Kind::Nginx,
        Kind::Apache,
        Kind::Haproxy,
        Kind::Caddy,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Milepost => "milepost",
            Kind::Control => "milepost again",
            Kind::Null => "null server",
            Kind::Nginx => "nginx map",
            Kind::Apache => "Apache event",
            Kind::Haproxy => "HAProxy map",
            Kind::Caddy => "Caddy map",
        }
    }

    /// Whether the server can answer that load at all.
    pub(crate) fn takes(self, load: Load) -> bool {
        load != Load::File || !matches!(self, Kind::Null | Kind::Haproxy | Kind::Caddy)
    }

    /// Whether it is made for connections by the ten thousand.
    pub(crate) fn takes_crowds(self) -> bool {
        matches!(self, Kind::Milepost | Kind::Nginx)
    }
}

/// A server that was started; killed when dropped.
pub(crate) struct Running {
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Running {
    pub(crate) fn start(
        kind: Kind,
        milepost: &Path,
        null: &Path,
        root: &Path,
    ) -> Result<Running, Box<dyn Error>> {
        let directory = root.join(kind.name().replace(' ', "-"));
        fs::create_dir(&directory)?;
        let documents = directory.join("documents");
        fs::create_dir(&documents)?;
        fs::write(documents.join("file.txt"), vec![b'x'; FILE_BYTES])?;
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let mut command = command(kind, address, milepost, null, &directory)?;
        let output = fs::File::create(directory.join("output"))?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().map_err(|error| {
            format!("{} cannot be run: {error}", command.get_program().display())
        })?;
        let mut running = Running { kind, address, child };
        let end = Instant::now() + READY_MAX;
        while TcpStream::connect(address).is_err() {
            if running.child.try_wait()?.is_some() || Instant::now() > end {
                return Err(fs::read_to_string(directory.join("output"))?.into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Apache and nginx have children, which a signal that can be caught reaches. It may have ended already.
        let kill = ["-s", "TERM", &self.child.id().to_string()].map(str::to_owned);
        let _ = Command::new("kill").args(kill).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

fn pairs() -> impl Iterator<Item = (String, String)> {
    (1..=RULES)
        .map(|number| (format!("/test/{number}"), format!("http://www.example.org/new/{number}")))
}

/// Writes the configuration and returns the command that serves it in the foreground.
fn command(
    kind: Kind,
    address: SocketAddr,
    milepost: &Path,
    null: &Path,
    directory: &Path,
) -> Result<Command, Box<dyn Error>> {
    let here = directory.display();
    let mut rules = String::new();
    for (from, to) in pairs() {
        match kind {
            Kind::Milepost | Kind::Control | Kind::Apache => {
                writeln!(rules, "Redirect 301 {from} {to}")?;
            }
            Kind::Nginx | Kind::Caddy => writeln!(rules, "{from} {to}{}", semicolon(kind))?,
            Kind::Haproxy => writeln!(rules, "{from} {to}")?,
            Kind::Null => {}
        }
    }
    let rules_file = directory.join("rules");
    fs::write(&rules_file, &rules)?;
    let rules_at = rules_file.display();
    let root = if is_root() { "User www-data\nGroup www-data\n" } else { "" };
    let apache = format!(
        "Listen {address}\nServerName localhost\nKeepAlive On\nMaxKeepAliveRequests 0\n\
         KeepAliveTimeout 60\nDocumentRoot \"{here}/documents\"\n\
         <Directory \"{here}/documents\">\nRequire all granted\n</Directory>\nInclude \"{rules_at}\"\n"
    );
    let file = directory.join("configuration");
    let (text, mut command) = match kind {
        Kind::Null => {
            let mut command = Command::new(null);
            command.arg(address.to_string()).arg(format!("http://www.example.org/new/{RULES}"));
            (String::new(), command)
        }
        Kind::Milepost | Kind::Control => {
            let mut command = Command::new(milepost);
            command.args(["serve", "--workers", "1", "-f"]).arg(&file);
            (apache, command)
        }
        Kind::Apache => {
            let modules = PathBuf::from("/usr/lib/apache2/modules");
            let mut text = format!(
                "ServerRoot \"{here}\"\nPidFile \"{here}/pid\"\nDefaultRuntimeDir \"{here}\"\n\
                 ErrorLog \"{here}/errors\"\n{root}"
            );
            for name in ["mpm_event", "authz_core", "alias", "mime"] {
                let path = modules.join(format!("mod_{name}.so"));
                writeln!(text, "LoadModule {name}_module \"{}\"", path.display())?;
            }
            text += "StartServers 1\nServerLimit 1\nThreadsPerChild 25\nMaxRequestWorkers 25\n\
                     TypesConfig /etc/mime.types\n";
            let mut command = Command::new("apache2");
            command.args(["-DFOREGROUND", "-f"]).arg(&file);
            (text + &apache, command)
        }
        Kind::Nginx => {
            let text = format!(
                "worker_processes 1;\ndaemon off;\npid \"{here}/pid\";\nerror_log \"{here}/errors\";\n\
                 worker_rlimit_nofile 20000;\nevents {{ worker_connections 16384; }}\nhttp {{\naccess_log off;\n\
                 types {{ text/plain txt; }}\nkeepalive_timeout 60s;\nkeepalive_requests 1000000000;\n\
                 open_file_cache max=1000 inactive=60s;\nmap_hash_max_size 65536;\n\
                 map $uri $target {{\ninclude \"{rules_at}\";\n}}\n\
                 server {{\nlisten {address};\nroot \"{here}/documents\";\n\
                 if ($target) {{ return 301 $target; }}\n}}\n}}\n"
            );
            let mut command = Command::new("nginx");
            command.args(["-p"]).arg(directory).arg("-c").arg(&file);
            (text, command)
        }
        Kind::Haproxy => {
            let text = format!(
                "global\n  nbthread 1\ndefaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  \
                 timeout connect 5s\n  timeout http-keep-alive 60s\nfrontend web\n  bind {address}\n  \
                 http-request redirect code 301 location %[path,map({rules_at})]\n"
            );
            let mut command = Command::new("haproxy");
            command.arg("-db").arg("-f").arg(&file);
            (text, command)
        }
        Kind::Caddy => {
            let text = format!(
                "{{\n  admin off\n  auto_https off\n}}\nhttp://{address} {{\n  \
                 map {{path}} {{target}} {{\n{rules}  }}\n  redir {{target}} 301\n}}\n"
            );
            let mut command = Command::new("caddy");
            command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
            command.env("GOMAXPROCS", "1").env("HOME", directory);
            (text, command)
        }
    };
    fs::write(&file, text)?;
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/usr/local/sbin"));
    Ok(command)
}

fn semicolon(kind: Kind) -> &'static str {
    if kind == Kind::Nginx { ";" } else { "" }
}

/// Whether this process is root's: Apache then wants to know whose rights to take.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

//! The servers: started for the bench, on ports of their own, and gone with it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::null_server::{FILE_BYTES, LOCATION};

/// How long a server may take to listen, in tries of [`WAIT`].
const TRIES: usize = 500;
const WAIT: Duration = Duration::from_millis(10);

/// The processor that servers run on, generators have the next.
pub(crate) const PROCESSOR: &str = "0";

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    address: String,
    child: Child,
    folder: Option<PathBuf>,
}

impl Server {
    /// All that are here.
    pub(crate) fn all() -> Result<Vec<Self>, String> {
        let mut servers = vec![Self::null()?];
        if Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok() {
            servers.push(Self::nginx()?);
        } else {
            println!("not here, so not measured: nginx");
        }
        Ok(servers)
    }

    fn null() -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new("taskset")
            .args(["-c", PROCESSOR])
            .arg(own)
            .arg("null-server")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("taskset: {error}"))?;
        let mut address = String::new();
        if let Some(stdout) = &mut child.stdout {
            BufReader::new(stdout).read_line(&mut address).map_err(|error| error.to_string())?;
        }
        let address = address.trim().to_owned();
        Ok(Self { name: "null server", address, child, folder: None })
    }

    fn nginx() -> Result<Self, String> {
        let text = |error: std::io::Error| format!("nginx: {error}");
        let folder = std::env::temp_dir().join(format!("bench_load-{}", std::process::id()));
        fs::create_dir_all(folder.join("html")).map_err(text)?;
        fs::write(folder.join("html/f"), "x".repeat(FILE_BYTES)).map_err(text)?;
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(text)?;
        let address = free.local_addr().map_err(text)?.to_string();
        drop(free);
        let root = folder.display();
        let configuration = format!(
            "worker_processes 1; daemon off; pid {root}/pid; error_log {root}/error.log crit;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_requests 1000000000; sendfile on; tcp_nopush on;\n\
             open_file_cache max=10; client_body_temp_path {root}/a; proxy_temp_path {root}/b;\n\
             fastcgi_temp_path {root}/c; uwsgi_temp_path {root}/d; scgi_temp_path {root}/e;\n\
             server {{ listen {address} backlog=4096; root {root}/html;\n\
             location = /r {{ return 301 {LOCATION}; }} }} }}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, configuration).map_err(text)?;
        let child = Command::new("taskset")
            .args(["-c", PROCESSOR, "nginx", "-e"])
            .arg(folder.join("error.log"))
            .arg("-c")
            .arg(&file)
            .spawn()
            .map_err(text)?;
        let server = Self { name: "nginx", address, child, folder: Some(folder) };
        for _ in 0..TRIES {
            if TcpStream::connect(&server.address).is_ok() {
                return Ok(server);
            }
            thread::sleep(WAIT);
        }
        Err("nginx does not listen".to_owned())
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// What is requested: in words, the URL, and what is right (see the client).
    pub(crate) fn urls(&self) -> [(&'static str, String, String); 2] {
        let url = |path: &str| format!("http://{}{path}", self.address);
        let redirect = if self.name == "nginx" { "redirect" } else { "redirect of 150 bytes" };
        [(redirect, url("/r"), LOCATION.to_owned()), ("file of 10 KB", url("/f"), "200".to_owned())]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx ends its worker when it is asked to end, and leaves it when it is killed.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.child.wait();
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

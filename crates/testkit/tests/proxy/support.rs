//! Real httpd and milepost on the same configuration.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use milepost_engine::{Listen, LoadOptions, Loaded, Site};
use milepost_server::{FileSystem, Running, Server, SiteResponder, Tls};
use milepost_testkit::directory::Directory;
use milepost_testkit::httpd::{self, Httpd, Program};

/// The document that local paths lead to.
pub(crate) const LOCAL: &str = "local\n";

/// Both, until dropped.
pub(crate) struct Both {
    pub(crate) httpd: SocketAddr,
    pub(crate) milepost: SocketAddr,
    _httpd: Httpd,
    _milepost: Running,
}

impl Both {
    /// Starts both in `directory`, with a document `local.txt`. `@ROOT@` in the configuration is the
    /// directory.
    pub(crate) fn start(directory: &Directory, configuration: &str) -> Both {
        Both::start_with(directory, configuration, &[])
    }

    /// The same, where httpd has more modules.
    pub(crate) fn start_with(
        directory: &Directory,
        configuration: &str,
        more: &[&'static str],
    ) -> Both {
        let root = directory.path();
        std::fs::create_dir_all(root.join("htdocs/dir/sub")).unwrap();
        std::fs::write(root.join("htdocs/dir/index.html"), "the index\n").unwrap();
        std::fs::write(root.join("htdocs/local.txt"), LOCAL).unwrap();
        let common = format!(
            "ServerName www.test\nDocumentRoot \"{0}/htdocs\"\n<Directory \"{0}/htdocs\">\nRequire all granted\n\
             Options FollowSymLinks\n</Directory>\n{1}",
            root.display(),
            configuration.replace("@ROOT@", root.to_str().unwrap())
        );
        let modules =
            ["proxy", "proxy_http", "slotmem_shm", "proxy_balancer", "lbmethod_byrequests"];
        let program = Program::find().unwrap().with_modules(&[&modules, more].concat());
        let port = httpd::free_port().unwrap();
        let conf = root.join("httpd.conf");
        let mut text = program.process_directives(root);
        let modules = program.load_modules();
        let root = root.display();
        write!(text, "ServerRoot \"{root}\"\nListen 127.0.0.1:{port}\n{modules}{common}").unwrap();
        std::fs::write(directory.path().join("mime.types"), "text/html html\ntext/plain txt\n")
            .unwrap();
        std::fs::write(&conf, text).unwrap();
        let running = program.start(&conf).unwrap_or_else(|error| panic!("{error}"));
        let (milepost, site) =
            start(directory.path(), &format!("Listen 127.0.0.1:1\n{modules}{common}"));
        let httpd = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Both { httpd, milepost, _httpd: running, _milepost: site }
    }
}

/// Loads a configuration as `milepost.conf` of `root`.
pub(crate) fn load(root: &Path, text: &str) -> Loaded {
    std::fs::write(root.join("milepost.conf"), text).unwrap();
    let options = LoadOptions {
        server_root: root.to_owned(),
        file: Some("milepost.conf".into()),
        ..LoadOptions::default()
    };
    Site::load(&options, &FileSystem)
}

/// Starts milepost in this process.
fn start(root: &Path, text: &str) -> (SocketAddr, Running) {
    let loaded = load(root, text);
    let site = Arc::new(loaded.site.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics)));
    let mut settings = site.settings().clone();
    settings.listens = vec![Listen {
        addresses: vec![([127, 0, 0, 1], 0).into()],
        place: "test:1".to_owned(),
        ..Listen::default()
    }];
    let server = Server::bind(&settings, NonZeroUsize::MIN).unwrap();
    let address = server.addresses()[0];
    let tls = Tls::new(&site, None).unwrap().map(Arc::new);
    let responder = move || SiteResponder::new(Arc::clone(&site)).with_tls(tls.clone());
    (address, server.start(responder).unwrap())
}

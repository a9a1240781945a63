//! Symbolic links, and paths that try to leave the document root.

use std::os::unix::fs::{chown, lchown, symlink};
use std::path::Path;

use crate::support::{get, shown, start};

/// Some user that neither server runs as.
const STRANGER: u32 = 12_345;

fn prepare(root: &Path) {
    let docs = root.join("htdocs");
    std::fs::create_dir_all(root.join("outside")).unwrap();
    for (path, content) in
        [("outside/secret.txt", "secret"), ("htdocs2", "sibling"), ("htdocs/own/x.txt", "own")]
    {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    symlink("own/x.txt", docs.join("inside")).unwrap();
    symlink("own", docs.join("insidedir")).unwrap();
    symlink(root.join("outside/secret.txt"), docs.join("out")).unwrap();
    symlink(root.join("outside"), docs.join("outdir")).unwrap();
    symlink("nowhere", docs.join("broken")).unwrap();
    symlink("loop", docs.join("loop")).unwrap();
    symlink("own/x.txt", docs.join("foreign")).unwrap();
    if chown(root.join("outside"), Some(STRANGER), None).is_ok() {
        // Only root can give files away; the others see owners that are all the same.
        lchown(docs.join("foreign"), Some(STRANGER), None).unwrap();
        chown(root.join("outside/secret.txt"), Some(STRANGER), None).unwrap();
    }
}

#[test]
fn links_are_followed_as_options_say() {
    let targets = [
        "/inside",
        "/insidedir/x.txt",
        "/insidedir/",
        "/insidedir",
        "/out",
        "/outdir/secret.txt",
        "/outdir/none",
        "/broken",
        "/broken/x",
        "/loop",
        "/foreign",
        "/foreign/info",
        "/own/x.txt",
        "HEAD /out HTTP/1.1\n",
    ];
    let requests: Vec<String> = targets.iter().map(|target| get(target)).collect();
    for options in [
        "FollowSymLinks",
        "None",
        "SymLinksIfOwnerMatch",
        "FollowSymLinks SymLinksIfOwnerMatch",
        "Indexes",
    ] {
        let text = format!("<Directory @ROOT@/htdocs>\nOptions {options}\n</Directory>\n");
        let servers = start(&text, &[]);
        prepare(servers.root());
        servers.compare(&requests, statuses);
    }
    let text = "<Directory @ROOT@/htdocs>\nOptions None\n</Directory>\n\
         <Directory @ROOT@/htdocs/insidedir>\nOptions FollowSymLinks\n</Directory>\n\
         <Directory @ROOT@/outside>\nRequire all denied\n</Directory>\n";
    let servers = start(text, &[]);
    prepare(servers.root());
    servers.compare(&requests, statuses);
}

#[test]
fn no_path_leaves_the_document_root() {
    let targets = [
        "/../htdocs2",
        "/own/../../htdocs2",
        "/own/../../outside/secret.txt",
        "/%2e%2e/htdocs2",
        "/.%2e/htdocs2",
        "/own/%2e%2e/%2e%2e/htdocs2",
        "/own/..%2f..%2fhtdocs2",
        "/own/%2e%2e%2f..%2foutside/secret.txt",
        "/%252e%252e/htdocs2",
        "//../htdocs2",
        "/own//../..//htdocs2",
        "/./.././htdocs2",
        "/own/x.txt/../../../htdocs2",
        "/..",
        "/../",
        "/own/..",
        "/own/../own/x.txt",
        "/%00",
        "/own/x.txt%00.html",
        "/al/../outside/secret.txt",
        "/al/%2e%2e/outside/secret.txt",
        "/al../outside/secret.txt",
        "/al/..%2foutside/secret.txt",
        "/dec/..%2f..%2foutside/secret.txt",
        "/\\..\\htdocs2",
        "/own/;/../../../htdocs2",
    ];
    let requests: Vec<String> = targets.iter().map(|target| get(target)).collect();
    for configuration in [
        "",
        "AllowEncodedSlashes On\n",
        "AllowEncodedSlashes NoDecode\n",
        "MergeSlashes Off\n",
        "RewriteEngine On\nRewriteRule ^/dec(/.*)$ @ROOT@/htdocs$1\n",
    ] {
        let text = format!(
            "{configuration}Alias /al @ROOT@/htdocs/own\nAlias /al/ @ROOT@/htdocs/own/\n\
             ErrorDocument 400 bad\n"
        );
        let servers = start(&text, &[]);
        prepare(servers.root());
        servers.compare(&requests, |head, content| {
            assert!(!content.contains("secret") && !content.contains("sibling"), "{content}");
            statuses(head, content)
        });
    }
}

/// Status and content of what is no page.
fn statuses(head: &str, content: &str) -> String {
    let text = shown(head, content);
    if content.contains('<') { text[..3].to_owned() } else { text[..3].to_owned() + content }
}

//! `report.html` in a real browser: it renders, its bars have a size, and it fits a telephone.
//!
//! The report has no script of its own. Another page shows it in a frame of the wanted width (a
//! window of the browser is never narrower than 500 pixels), measures the finished frame, and writes
//! the numbers into itself, which `--dump-dom` then prints.

use std::fs;
use std::path::Path;

use milepost_testkit::directory::Directory;
use serde_json::Value;

use crate::support::{Finished, lab, run, write};

/// The names of the browser on different systems.
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Widths in pixels: a desktop and a small telephone.
const WIDTHS: [u32; 2] = [1280, 360];

/// The frame ends before the report does: bars are laid out all the same.
const HEIGHT: u32 = 3000;

/// Measures the frame when everything in it is there.
const PROBE: &str = r#"<pre id="measured"></pre><script>
addEventListener("load", () => {
    const page = document.querySelector("iframe").contentDocument;
    const bars = [...page.querySelectorAll("svg rect")].map(bar => bar.getBoundingClientRect());
    document.getElementById("measured").textContent = JSON.stringify({
        title: page.title,
        svgs: page.querySelectorAll("svg").length,
        bars: bars.length,
        empty_bars: bars.filter(bar => !(bar.width > 0 && bar.height > 0)).length,
        rows: page.querySelectorAll("tbody tr").length,
        page_width: page.documentElement.scrollWidth,
        frame_width: page.documentElement.clientWidth,
    });
});
</script>"#;

#[test]
fn the_report_renders() {
    let directory = Directory::new().expect("a directory");
    let out = directory.path().join("out");
    let sizes = ["--rules", "20", "--rounds", "6", "--requests", "20"];
    let only = ["--servers", "milepost,apache,nginx", "--only", "one,redirect*,rewriterule,map"];
    let result = lab(&out, &[&sizes[..], &only].concat());
    let file = out.join("report.html");
    let report = fs::read_to_string(&file).expect("the report");
    for outside in ["http-equiv", "<script", "src=", "<link", "@import", "url("] {
        assert!(!report.contains(outside), "{outside} in a page that needs nothing else");
    }

    let browser = Browser::new(directory.path());
    let dumped = browser.visit(&["--dump-dom"], &file);
    assert!(dumped.stdout.contains("<title>What a redirect costs – milepost lab</title>"));

    let alternatives = result["alternatives"].as_array().map_or(0, Vec::len) as u64;
    for width in WIDTHS {
        let text = report.replace('&', "&amp;").replace('"', "&quot;");
        let frame = format!(
            "<!doctype html><meta charset=utf-8><body style=\"margin:0\"><iframe srcdoc=\"{text}\" \
             style=\"border:0;width:{width}px;height:{HEIGHT}px\"></iframe>{PROBE}"
        );
        let page = write(directory.path(), "frame.html", &frame);
        let measured = measured(&browser.visit(&["--dump-dom"], Path::new(&page)));
        let count = |name: &str| measured[name].as_u64().unwrap_or_default();
        assert_eq!(measured["title"], "What a redirect costs – milepost lab");
        assert_eq!(count("frame_width"), u64::from(width));
        assert_eq!(count("page_width"), u64::from(width), "the page is wider than its window");
        // Time, CPU and requests a second have a plot each, with a bar for each alternative.
        assert!(count("svgs") >= 3 && count("bars") >= alternatives, "{measured}");
        assert_eq!(count("empty_bars"), 0, "{measured}");
        assert!(count("rows") >= alternatives, "{measured}");

        let name = format!("report-{width}.png");
        let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let shot = format!("--screenshot={}", picture.display());
        browser.visit(
            &[&format!("--window-size={},{HEIGHT}", width.max(500)), &shot],
            Path::new(&page),
        );
        let bytes = fs::read(&picture).expect("a screenshot");
        assert!(bytes.starts_with(b"\x89PNG"), "{}", picture.display());
    }
}

/// A browser with a profile of its own.
pub(crate) struct Browser {
    program: &'static str,
    profile: String,
}

impl Browser {
    #[track_caller]
    pub(crate) fn new(home: &Path) -> Browser {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories: Vec<_> = std::env::split_paths(&path).collect();
        let is_there = |name: &&str| directories.iter().any(|path| path.join(name).is_file());
        let program = BROWSERS.into_iter().find(is_there);
        let program = program.expect("this test needs Chromium; `make test` installs it");
        Browser { program, profile: format!("--user-data-dir={}/profile", home.display()) }
    }

    /// Opens a file; the console must stay empty.
    #[track_caller]
    fn visit(&self, options: &[&str], page: &Path) -> Finished {
        self.open(options, &format!("file://{}", page.display()))
    }

    /// Opens an address; the console must stay empty.
    #[track_caller]
    pub(crate) fn open(&self, options: &[&str], address: &str) -> Finished {
        let fixed = [
            "--headless",
            // The page is our own, and root has no other way.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            &self.profile,
        ];
        let finished = run(self.program, &[&fixed, options, &[address]].concat(), &[]);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let console = finished.stderr.lines().filter(|line| line.contains(":CONSOLE"));
        let console: Vec<&str> = console.collect();
        assert!(console.is_empty(), "the page reports {console:#?}");
        finished
    }
}

/// Reads what the probe wrote into the page.
#[track_caller]
fn measured(dumped: &Finished) -> Value {
    let (_, after) = dumped.stdout.split_once("<pre id=\"measured\">").expect("the probe");
    let (text, _) = after.split_once("</pre>").expect("a closed element");
    serde_json::from_str(text).expect("JSON")
}

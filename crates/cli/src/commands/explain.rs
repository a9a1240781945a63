//! `milepost explain`: which rule answers a request, and every step on the way.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use milepost_engine::{
    Decision, Event, Fields, Outcome, ProxyTo, Purpose, Request, Scheme, Scratch, Severity, Site,
    Step, Version,
};
use milepost_server::{Helpers, LastLook};
use serde_json::{Value, json};

use super::configuration::Configuration;

/// Arguments of `milepost explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rules that the index knows cannot match are not shown; --scan shows every rule that Apache would try.

Exit status: 0 done, 2 the configuration does not load or the URL is none.")]
pub(crate) struct Args {
    #[command(flatten)]
    configuration: Configuration,
    /// Method of the request
    #[arg(short = 'X', value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Field line of the request, such as 'Accept: text/turtle'
    #[arg(short = 'H', value_name = "FIELD")]
    fields: Vec<String>,
    /// Address that the request comes from
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    from: std::net::IpAddr,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// URL, or a path for the first server
    #[arg(value_name = "URL")]
    url: String,
    /// Directory to explain when there is no configuration file
    #[arg(long = "directory", value_name = "DIR", default_value = ".", conflicts_with = "file")]
    directory: PathBuf,
}

/// Field lines as they were given.
struct FieldLines(Vec<(String, Vec<u8>)>);

impl Fields for FieldLines {
    fn value(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let values: Vec<_> = self.named(name).map(|(_, value)| &value[..]).collect();
        match values.as_slice() {
            [] => None,
            [only] => Some(Cow::Borrowed(only)),
            several => Some(Cow::Owned(several.join(&b", "[..]))),
        }
    }

    fn count(&self, name: &str) -> usize {
        self.named(name).count()
    }

    fn name(&self, number: usize) -> Option<&str> {
        self.0.get(number).map(|(name, _)| &name[..])
    }
}

impl FieldLines {
    fn named(&self, name: &str) -> impl Iterator<Item = &(String, Vec<u8>)> {
        self.0.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name))
    }
}

/// What a URL says about a request.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    scheme: Scheme,
    host: Option<String>,
    port: u16,
    /// Path and query string, without the fragment.
    target: String,
}

/// Runs `milepost explain`.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (loaded, what) = args.configuration.load(&args.directory, Purpose::Ask)?;
    for found in loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error) {
        complain(&found.to_string());
    }
    let site = loaded.site.with_context(|| format!("{what} does not load"))?;
    let target = parse(&args.url)?;
    let mut fields = FieldLines(Vec::new());
    for line in &args.fields {
        let (name, value) = line
            .split_once(':')
            .with_context(|| format!("`{line}` is no field line: write `Name: value`"))?;
        fields.0.push((name.trim().to_owned(), value.trim().as_bytes().to_vec()));
    }
    if let Some(host) = target.host.filter(|_| fields.count("host") == 0) {
        fields.0.push(("Host".to_owned(), host.into_bytes()));
    }
    let version = if fields.count("host") > 0 { Version::Http11 } else { Version::Http10 };
    let listens = site.settings().listens.first().and_then(|listen| listen.addresses.first());
    let local = listens.map_or_else(|| ([127, 0, 0, 1], target.port).into(), |address| *address);
    let request = Request {
        method: args.method.as_bytes(),
        target: target.target.as_bytes(),
        version,
        scheme: target.scheme,
        tls: None,
        fields: &fields,
        local,
        remote: (args.from, 49_152).into(),
    };
    let mut scratch = Scratch::default();
    scratch.start_trace();
    // What maps answer decides too, so those that they ask are asked here as well.
    let helpers = Helpers::start(&site)?;
    let decision = explain(&site, &request, &LastLook::with_helpers(helpers.share()), &mut scratch);
    helpers.stop();
    let steps = scratch.take_trace();
    let mut out = io::stdout().lock();
    if args.json {
        let mut answer = decision;
        answer["steps"] = steps.iter().map(step_json).collect();
        serde_json::to_writer_pretty(&mut out, &answer)?;
        writeln!(out)?;
    } else {
        for step in &steps {
            print_step(&mut out, step)?;
        }
        print_answer(&mut out, &decision)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Decides, and turns the decision into values that outlive the scratch.
fn explain(site: &Site, request: &Request<'_>, outside: &LastLook, scratch: &mut Scratch) -> Value {
    let Decision { outcome, rule, .. } = site.decide(request, outside, scratch);
    let rule = rule.map(|rule| json!({ "file": rule.file(), "line": rule.line() }));
    let mut answer = json!({ "status": 200, "location": null, "rule": rule, "file": null });
    match outcome {
        Outcome::Redirect { status, location } => {
            answer["status"] = json!(status);
            answer["location"] = json!(text(location));
        }
        Outcome::Status(status) => answer["status"] = json!(status),
        Outcome::Text { status, text: content } => {
            answer["status"] = json!(status);
            answer["text"] = json!(text(content));
        }
        Outcome::File { status, path, .. } => {
            answer["status"] = json!(status);
            answer["file"] = json!(text(path));
        }
        Outcome::Proxy(proxied) => {
            // What the status will be, the other server says.
            answer["status"] = Value::Null;
            let (to, place) = match proxied.to {
                ProxyTo::Backend(number) => {
                    let backend = &site.backends()[number];
                    (Some(backend.url.as_str()), Some(backend.place.as_str()))
                }
                ProxyTo::Balancer(number) => (Some(site.balancers()[number].url.as_str()), None),
                ProxyTo::Url => (None, None),
            };
            answer["proxy"] = json!({ "url": text(proxied.url), "worker": to, "place": place });
        }
        Outcome::Passed(status) => answer["status"] = json!(status),
    }
    answer
}

/// Reads a URL, `host/path`, or a path alone.
fn parse(url: &str) -> anyhow::Result<Target> {
    let url = url.split('#').next().unwrap_or_default();
    if url.starts_with('/') || url == "*" {
        return Ok(Target { scheme: Scheme::Http, host: None, port: 80, target: url.to_owned() });
    }
    let (scheme, rest) = match url.split_once("://") {
        Some(("http", rest)) => (Scheme::Http, rest),
        Some(("https", rest)) => (Scheme::Https, rest),
        Some((scheme, _)) => anyhow::bail!("`{scheme}` is no scheme of HTTP: write http or https"),
        None => (Scheme::Http, url),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(end);
    anyhow::ensure!(!host.is_empty(), "`{url}` names no host");
    let default = if scheme == Scheme::Https { 443 } else { 80 };
    let port = match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => {
            port.parse().with_context(|| format!("`{port}` is no port"))?
        }
        _ => default,
    };
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    Ok(Target { scheme, host: Some(host.to_owned()), port, target })
}

fn print_step(out: &mut impl Write, step: &Step) -> io::Result<()> {
    let indent = "  ".repeat(1 + step.depth as usize);
    match &step.event {
        Event::Server { name } => {
            writeln!(out, "server {}", name.as_deref().unwrap_or("without a name"))
        }
        Event::Path { path, query } => {
            let query = query.as_deref().map(|query| format!(", query {}", text(query)));
            writeln!(out, "{indent}path {}{}", text(path), query.unwrap_or_default())
        }
        Event::Rules { of, count } => writeln!(out, "{indent}{count} rewrite rules of {of}"),
        Event::Tried { input, groups } => {
            let verdict = match groups {
                None => "does not match".to_owned(),
                Some(groups) => {
                    let groups = groups.iter().enumerate().skip(1);
                    let shown: Vec<_> = groups
                        .map(|(number, group)| format!("${number}={}", text(group)))
                        .collect();
                    format!("matches {}", shown.join(" ")).trim_end().to_owned()
                }
            };
            print_directive(out, step, &indent)?;
            writeln!(out, "{indent}    on {}: {verdict}", quoted(input))
        }
        Event::Condition { input, holds } => {
            print_directive(out, step, &indent)?;
            let verdict = if *holds { "holds" } else { "does not hold" };
            writeln!(out, "{indent}    on {}: {verdict}", quoted(input))
        }
        Event::Rewritten { to, query } => {
            let query = query.as_deref().map(|query| format!(", query {}", text(query)));
            writeln!(out, "{indent}    becomes {}{}", text(to), query.unwrap_or_default())
        }
        Event::File { path, kind, path_info } => {
            let info = if path_info.is_empty() {
                String::new()
            } else {
                format!(", path info {}", text(path_info))
            };
            writeln!(out, "{indent}file {}: {kind}{info}", text(path))
        }
        Event::Subrequest { target } => writeln!(out, "{indent}subrequest {}", text(target)),
        Event::Respelled { names } => {
            writeln!(out, "{indent}names like it: {}", texts(names).join(", "))
        }
        Event::Proxied { url } => {
            print_directive(out, step, &indent)?;
            writeln!(out, "{indent}proxied to {}", text(url))
        }
        Event::InternalRedirect { target } => {
            writeln!(out, "{indent}starts over with {}", text(target))
        }
    }
}

fn print_directive(out: &mut impl Write, step: &Step, indent: &str) -> io::Result<()> {
    match &step.directive {
        Some(at) => writeln!(out, "{indent}{}:{}: {}", at.file.display(), at.line, at.text),
        None => Ok(()),
    }
}

fn print_answer(out: &mut impl Write, answer: &Value) -> io::Result<()> {
    if let Some(url) = answer["proxy"]["url"].as_str() {
        write!(out, "proxied to {url}")?;
    } else {
        write!(out, "answer {}", answer["status"])?;
    }
    if let Some(location) = answer["location"].as_str() {
        write!(out, " {location}")?;
    }
    if let Some(file) = answer["file"].as_str() {
        write!(out, " with {file}")?;
    }
    if let Some(rule) = answer["rule"].as_object() {
        let file = rule["file"].as_str().unwrap_or_default();
        write!(out, ", by {file}:{}", rule["line"])?;
    }
    match (answer["proxy"]["worker"].as_str(), answer["proxy"]["place"].as_str()) {
        (Some(worker), Some(place)) => write!(out, " (worker {worker} of {place})")?,
        (Some(balancer), None) => write!(out, " (a member of {balancer})")?,
        _ => {}
    }
    writeln!(out)
}

fn step_json(step: &Step) -> Value {
    let mut value = match &step.event {
        Event::Server { name } => json!({ "step": "server", "name": name }),
        Event::Path { path, query } => {
            json!({ "step": "path", "path": text(path), "query": query.as_deref().map(text) })
        }
        Event::Rules { of, count } => json!({ "step": "rules", "of": of, "count": count }),
        Event::Tried { input, groups } => json!({
            "step": "rule",
            "input": text(input),
            "matched": groups.is_some(),
            "groups": groups.as_ref().map(|groups| groups.iter().map(|group| text(group)).collect::<Vec<_>>()),
        }),
        Event::Condition { input, holds } => {
            json!({ "step": "condition", "input": text(input), "holds": holds })
        }
        Event::Rewritten { to, query } => {
            json!({ "step": "rewritten", "to": text(to), "query": query.as_deref().map(text) })
        }
        Event::File { path, kind, path_info } => {
            json!({ "step": "file", "path": text(path), "kind": kind, "path_info": text(path_info) })
        }
        Event::Subrequest { target } => json!({ "step": "subrequest", "target": text(target) }),
        Event::Respelled { names } => json!({ "step": "respelled", "names": texts(names) }),
        Event::Proxied { url } => json!({ "step": "proxied", "url": text(url) }),
        Event::InternalRedirect { target } => {
            json!({ "step": "internal_redirect", "target": text(target) })
        }
    };
    value["depth"] = json!(step.depth);
    if let Some(at) = &step.directive {
        value["directive"] = json!({ "file": at.file, "line": at.line, "text": at.text });
    }
    value
}

fn texts(names: &[Vec<u8>]) -> Vec<String> {
    names.iter().map(|name| text(name)).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

fn complain(message: &str) {
    // There is nowhere left to say that stderr is gone.
    let _ = writeln!(io::stderr().lock(), "{message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let target = |scheme, host: Option<&str>, port, target: &str| Target {
            scheme,
            host: host.map(str::to_owned),
            port,
            target: target.to_owned(),
        };
        let parsed = |url| parse(url).unwrap();
        assert_eq!(parsed("/a?b#c"), target(Scheme::Http, None, 80, "/a?b"));
        assert_eq!(parsed("http://h/a"), target(Scheme::Http, Some("h"), 80, "/a"));
        assert_eq!(parsed("https://h:99?q"), target(Scheme::Https, Some("h:99"), 99, "/?q"));
        assert_eq!(parsed("[::1]/x"), target(Scheme::Http, Some("[::1]"), 80, "/x"));
        assert!(parse("ftp://h/").is_err());
        assert!(parse("http:///x").is_err());
    }
}

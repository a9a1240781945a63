//! Makes a plan of siege's settings and its list of URLs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::Fault;
use super::settings::{Mode, Quirks, Reps, Settings};
use super::urls::{self, Content, Line};
use crate::base64;
use crate::browse::REDIRECTS_MAX_DEFAULT;
use crate::dropin::{Outside, note};
use crate::plan::{Order, Persistence, Plan, Refusal, Stop, TimeoutFrom};
use crate::route::{Proxy, Router};
use crate::target::{Target, Version};
use crate::tls::{CipherList, Identity, TlsSettings};
use crate::url::HttpUrl;

/// Read when there is neither a URL nor a file.
const FILE_DEFAULT: &str = "/etc/siege/urls.txt";

/// Type of a content that none is said of.
const CONTENT_TYPE_DEFAULT: &str = "application/x-www-form-urlencoded";

/// A run without end: long enough, and far from overflowing anything.
const ENDLESS: Duration = Duration::from_secs(365 * 86_400);

/// The plan.
pub(super) fn plan(settings: &Settings, outside: &dyn Outside) -> Result<Plan, Fault> {
    let (lines, file) = lines(settings, outside)?;
    let mut router = router(settings)?;
    let mut targets = Vec::with_capacity(lines.len());
    for line in &lines {
        let target = target(line, settings, outside, &mut router).map_err(|message| {
            Fault::Fatal(match &file {
                Some(file) => format!("{}:{}: {message}", file.display(), line.number),
                None => message,
            })
        })?;
        targets.push(target);
    }
    if settings.internet && settings.quirks == Quirks::Siege40 {
        targets = with_shares_of_siege(targets);
    }
    let listed = targets.len() as u64;
    let mut plan = Plan::new(targets);
    plan.connections = settings.concurrent.min(settings.limit.max(1));
    plan.order = if settings.internet { Order::Random } else { Order::Each };
    plan.stop = match (settings.time, settings.reps) {
        (Some(length), _) => Stop::Duration(length),
        (None, Reps::Count(count)) => Stop::RequestsEach(count),
        (None, Reps::Once) if settings.quirks == Quirks::Siege42 => {
            // The users share the list.
            plan.order = Order::Sequential;
            Stop::Requests(listed)
        }
        (None, Reps::Once) => Stop::RequestsEach(listed),
        (None, Reps::Endless) => Stop::Duration(ENDLESS),
    };
    plan.persistence =
        if settings.keep_alive { Persistence::KeepAlive } else { Persistence::Close };
    plan.timeout = settings.timeout;
    plan.timeout_from = TimeoutFrom::LastByte;
    plan.refusal = Refusal::Fail;
    plan.pause_max = if settings.benchmark { Duration::ZERO } else { settings.delay };
    plan.browsing.redirects_max = if settings.follow { REDIRECTS_MAX_DEFAULT } else { 0 };
    plan.browsing.cookies = settings.cookies;
    plan.browsing.page_elements = settings.parser;
    plan.browsing.skipped_hosts.clone_from(&settings.skipped_hosts);
    plan.browsing.logins.clone_from(&settings.logins);
    plan.tls = tls(settings, outside)?;
    if !settings.keep_alive {
        plan.linger_max = Some(settings.linger_max.unwrap_or(note::GLANCE));
    }
    Ok(plan)
}

/// What is to be requested, and the file that it is from.
fn lines(
    settings: &Settings,
    outside: &dyn Outside,
) -> Result<(Vec<Line>, Option<PathBuf>), Fault> {
    if let Some(url) = &settings.url {
        return Ok((vec![urls::one(url.trim(), 1)], None));
    }
    if settings.mode != Mode::Siege {
        return Err(Fault::Fatal("no URL; usage: siege -g URL".to_owned()));
    }
    let path = settings.file.clone().unwrap_or_else(|| FILE_DEFAULT.into());
    let text = outside.read(&path).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default();
        Fault::Usage(format!("[alert] unable to open file: {}: {reason}", path.display()))
    })?;
    let lines = urls::parse(&String::from_utf8_lossy(&text), |name| outside.variable(name));
    if lines.is_empty() {
        let message = format!("{}: the list has no URL", path.display());
        return Err(match settings.file {
            Some(_) => Fault::Fatal(message),
            // Nothing was asked for at all.
            None => Fault::Usage(format!("[alert] {message}")),
        });
    }
    Ok((lines, Some(path)))
}

/// The way to the servers.
fn router(settings: &Settings) -> Result<Router, Fault> {
    let mut router = Router::default();
    if let Some(host) = &settings.proxy_host {
        let proxy = Proxy::parse(&format!("{host}:{}", settings.proxy_port));
        let mut proxy =
            proxy.map_err(|error| Fault::Fatal(format!("proxy-host {host}: {error}")))?;
        let login = settings.proxy_login.as_ref();
        proxy.authorization =
            login.map(|login| format!("Basic {}", base64::encode(login.as_bytes())));
        router.proxy = Some(proxy);
    }
    Ok(router)
}

/// Ciphers, and who the client is. As in siege, whoever answers is taken for the server.
fn tls(settings: &Settings, outside: &dyn Outside) -> Result<TlsSettings, Fault> {
    let mut tls = TlsSettings { trusts_any: true, ..TlsSettings::default() };
    if let Some(ciphers) = &settings.ssl_ciphers {
        let list = CipherList::parse(ciphers);
        tls.ciphers = Some(list.map_err(|error| Fault::Fatal(format!("ssl-ciphers: {error}")))?);
    }
    if let Some(certificate) = &settings.ssl_cert {
        let read = |path: &Path| {
            let read = outside.read(path);
            read.map_err(|error| Fault::Fatal(format!("{}: {error}", path.display())))
        };
        let pem = read(certificate)?;
        let key = settings.ssl_key.as_deref().map(read).transpose()?;
        let identity = Identity::from_pem(&pem, key.as_ref().unwrap_or(&pem));
        let identity = identity
            .map_err(|error| Fault::Fatal(format!("{}: {error}", certificate.display())))?;
        tls.identity = Some(Arc::new(identity));
    }
    Ok(tls)
}

fn target(
    line: &Line,
    settings: &Settings,
    outside: &dyn Outside,
    router: &mut Router,
) -> Result<Target, String> {
    let url = url(&line.url)?;
    let target = router.target(&url);
    let mut target = target.map_err(|error| format!("{}: {}", error.host, error.source))?;
    target.version = if settings.mode == Mode::Siege { settings.version } else { Version::Http10 };
    target.method = match (line.method, settings.mode) {
        (Some(method), _) => method.to_owned(),
        (None, Mode::Get) => settings.get_method.clone(),
        (None, _) => "GET".to_owned(),
    };
    target.content = match &line.content {
        Content::None => Vec::new(),
        Content::Text(text) => text.clone().into_bytes(),
        Content::File(file) => {
            outside.read(Path::new(file)).map_err(|error| format!("{file}: {error}"))?
        }
    }
    .into();
    target.fields.extend(fields(line, settings, !target.content.is_empty())?);
    Ok(target)
}

fn fields(
    line: &Line,
    settings: &Settings,
    has_content: bool,
) -> Result<Vec<(String, String)>, String> {
    let mut fields = Vec::new();
    let mut field = |name: &str, value: &str| fields.push((name.to_owned(), value.to_owned()));
    // A page that is encoded could not be searched for its elements.
    field("Accept-Encoding", if settings.parser { "identity" } else { &settings.accept_encoding });
    if let Some(agent) = &settings.user_agent {
        field("User-Agent", agent);
    }
    if has_content {
        let own = line.content_type.as_ref().or(settings.content_type.as_ref());
        field("Content-Type", own.map_or(CONTENT_TYPE_DEFAULT, |own| own));
    }
    for (name, value) in &settings.fields {
        if name.eq_ignore_ascii_case("Connection") {
            return Err(
                "a Connection field is sent by `connection = close` or `keep-alive`".to_owned()
            );
        }
        // An own field takes the place of one of the above.
        fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        fields.push((name.clone(), value.clone()));
    }
    Ok(fields)
}

/// A URL as siege takes it: the scheme may be missing, and what must be percent-encoded is.
fn url(text: &str) -> Result<HttpUrl, String> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut encoded = String::with_capacity(with_scheme.len());
    for byte in with_scheme.bytes() {
        match byte.is_ascii_graphic() {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    HttpUrl::parse(&encoded).map_err(|error| format!("{text}: {error}"))
}

/// siege rounds where it should cut off: the first URL has half a share and the last one and a half.
fn with_shares_of_siege(targets: Vec<Target>) -> Vec<Target> {
    let last = targets.len() - 1;
    if last == 0 {
        return targets;
    }
    let halves = |at: usize| match at {
        0 => 1,
        at if at == last => 3,
        _ => 2,
    };
    let targets = targets.into_iter().enumerate();
    targets.flat_map(|(at, target)| std::iter::repeat_n(target, halves(at))).collect()
}

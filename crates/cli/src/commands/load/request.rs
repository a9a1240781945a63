//! What is requested: method, fields, content, and what is right.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use milepost_load::{FormPart, ListedUrl, Router, Sha256, Target, Variables, render_form};

use super::plan;

/// Arguments about requests and their answers.
#[derive(Debug, clap::Args)]
#[group(id = "request")]
pub(super) struct Args {
    /// Method [default: GET, with a content POST]
    #[arg(short = 'm', long, value_name = "METHOD", help_heading = "Requests")]
    method: Option<String>,

    /// Field line to send; Host, User-Agent and Accept replace the built-in ones
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = plan::field)]
    #[arg(help_heading = "Requests")]
    fields: Vec<(String, String)>,

    /// Content to send: as it stands, or that of a file with @ in front
    #[arg(long, value_name = "TEXT|@FILE", help_heading = "Requests")]
    body: Option<String>,

    /// Entry of a form to send (multipart/form-data): NAME=VALUE, or NAME=@FILE, with ;type=TYPE behind
    /// it if need be; repeatable
    #[arg(short = 'F', long = "form", value_name = "NAME=VALUE", conflicts_with = "body")]
    #[arg(value_parser = entry, help_heading = "Requests")]
    form: Vec<Entry>,

    /// Fill in {{counter}}, {{random:FROM..TO}} and {{uuid}} in URLs, fields and contents, anew for each
    /// request
    #[arg(long, help_heading = "Requests")]
    template: bool,

    /// Fill in {{NAME}} too, from this CSV file with the names in its first line; a row for each request
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    variables: Option<PathBuf>,

    /// Status that is right
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..1000))]
    #[arg(help_heading = "Answers")]
    expect_status: Option<u16>,

    /// Value of the Location field that is right, byte for byte
    #[arg(long, value_name = "URL", help_heading = "Answers")]
    expect_location: Option<String>,

    /// Length of the content that is right
    #[arg(long, value_name = "BYTES", help_heading = "Answers")]
    expect_bytes: Option<u64>,

    /// SHA-256 of the content that is right, as 64 hexadecimal digits
    #[arg(long, value_name = "HEX", help_heading = "Answers")]
    expect_sha256: Option<Sha256>,
}

/// One entry of a form as it was typed.
#[derive(Debug, Clone)]
struct Entry {
    name: String,
    value: String,
    content_type: Option<String>,
}

/// What all requests have in common, with its files read.
pub(super) struct Common<'a> {
    args: &'a Args,
    content: Option<Arc<[u8]>>,
    content_type: Option<String>,
}

impl Args {
    /// Reads the files.
    pub(super) fn common(&self) -> anyhow::Result<Common<'_>> {
        if self.form.is_empty() {
            let content = self.body.as_deref().map(content).transpose()?;
            return Ok(Common { args: self, content, content_type: None });
        }
        let parts = self.form.iter().map(part).collect::<anyhow::Result<Vec<_>>>()?;
        let (content_type, content) = render_form(&parts);
        let content = Some(content.into());
        Ok(Common { args: self, content, content_type: Some(content_type) })
    }

    /// What templates are filled from, if they are.
    pub(super) fn variables(&self) -> anyhow::Result<Option<Arc<Variables>>> {
        let Some(file) = &self.variables else {
            return Ok(self.template.then(Arc::default));
        };
        let bytes =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        match Variables::parse(&super::plan::text(bytes, file)?) {
            Ok(variables) => Ok(Some(Arc::new(variables))),
            Err(error) => Err(anyhow!("{}:{error}", file.display())),
        }
    }
}

impl Common<'_> {
    /// One line of the list with what the options say; each host is looked up once.
    pub(super) fn target(&self, listed: ListedUrl, router: &mut Router) -> anyhow::Result<Target> {
        let ListedUrl { url, method, body, weight, expectation, .. } = listed;
        let args = self.args;
        let mut target = router.target(&url)?;
        target.fields.extend_from_slice(&args.fields);
        let own = body.as_deref().map(content).transpose()?;
        if own.is_none()
            && let Some(content_type) = &self.content_type
        {
            if args.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("Content-Type")) {
                bail!("--form has a Content-Type of its own, and -H gives another");
            }
            target.fields.push(("Content-Type".to_owned(), content_type.clone()));
        }
        let content = own.or_else(|| self.content.clone());
        let usual = if content.is_some() { "POST" } else { "GET" };
        target.method = method.or_else(|| args.method.clone()).unwrap_or_else(|| usual.to_owned());
        target.content = content.unwrap_or_default();
        target.weight = weight.unwrap_or(1);
        target.expectation = expectation;
        let expected = &mut target.expectation;
        expected.status = expected.status.or(args.expect_status);
        expected.content_bytes = expected.content_bytes.or(args.expect_bytes);
        expected.content_sha256 = expected.content_sha256.or(args.expect_sha256);
        if expected.location.is_none() {
            expected.location = args.expect_location.clone().map(String::into_bytes);
        }
        Ok(target)
    }
}

/// A content: as it stands, or from a file.
fn content(text: &str) -> anyhow::Result<Arc<[u8]>> {
    match text.strip_prefix('@') {
        None => Ok(text.as_bytes().into()),
        Some(file) => {
            std::fs::read(file).map(Into::into).with_context(|| format!("cannot read {file}"))
        }
    }
}

/// Reads an entry of a form.
fn entry(text: &str) -> Result<Entry, String> {
    let fault = "an entry of a form is NAME=VALUE or NAME=@FILE";
    let (name, value) = text.split_once('=').ok_or(fault)?;
    if name.is_empty() {
        return Err(fault.to_owned());
    }
    let (value, content_type) = match value.rsplit_once(";type=") {
        Some((value, content_type)) => (value, Some(content_type.to_owned())),
        None => (value, None),
    };
    if content_type.as_ref().is_some_and(|it| it.contains(['\r', '\n'])) {
        return Err("a type is one line".to_owned());
    }
    Ok(Entry { name: name.to_owned(), value: value.to_owned(), content_type })
}

fn part(entry: &Entry) -> anyhow::Result<FormPart> {
    let file = entry.value.strip_prefix('@').map(Path::new);
    let file_name = file.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    Ok(FormPart {
        name: entry.name.clone(),
        file_name,
        content_type: entry.content_type.clone(),
        content: content(&entry.value)?.to_vec(),
    })
}

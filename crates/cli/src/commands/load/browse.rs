//! What is done with an answer beside checking it: redirects, cookies, logins, page elements.

use milepost_load::{Login, Plan, REDIRECTS_MAX_DEFAULT};

/// Most redirects in a row that can be asked for. A chain is kept in memory to find circles.
const REDIRECTS_MAX: i64 = 1_000;

/// Arguments about what follows from answers.
#[derive(Debug, clap::Args)]
#[group(id = "browse")]
pub(super) struct Args {
    /// Follow redirects: 301, 302, 303, 307 and 308
    #[arg(short = 'L', long, help_heading = "What follows from answers")]
    follow: bool,

    /// Most redirects in a row that are followed; one more is an error
    #[arg(long, value_name = "N", requires = "follow", default_value_t = REDIRECTS_MAX_DEFAULT)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=REDIRECTS_MAX))]
    #[arg(help_heading = "What follows from answers")]
    max_redirects: u32,

    /// Keep cookies and send them back, each connection its own
    #[arg(long, help_heading = "What follows from answers")]
    cookies: bool,

    /// Request the images, style sheets, scripts and frames of HTML pages too
    #[arg(long, help_heading = "What follows from answers")]
    page_elements: bool,

    /// Log in where a server asks for it, with basic or digest authentication
    #[arg(short = 'u', long, value_name = "USER:PASSWORD", value_parser = login)]
    #[arg(help_heading = "What follows from answers")]
    user: Option<Login>,
}

impl Args {
    /// Whether an answer may lead to another server.
    pub(super) fn leads_elsewhere(&self) -> bool {
        self.follow || self.page_elements
    }

    /// Adds to the plan what it has to know.
    pub(super) fn complete(&self, plan: &mut Plan) {
        let browsing = &mut plan.browsing;
        browsing.redirects_max = if self.follow { self.max_redirects } else { 0 };
        browsing.cookies = self.cookies;
        browsing.page_elements = self.page_elements;
        browsing.logins = self.user.iter().cloned().collect();
    }
}

fn login(text: &str) -> Result<Login, String> {
    let (user, password) = text.split_once(':').ok_or("USER:PASSWORD is needed")?;
    Ok(Login { user: user.to_owned(), password: password.to_owned(), realm: None })
}

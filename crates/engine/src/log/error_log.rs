//! What each server says of its error log; what it does not say, the main server says for it.
//!
//! Source: httpd 2.4.71 `server/core.c`, `merge_core_server_configs`; `server/log.c`, `ap_open_logs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ErrorFormat, ErrorItem, ErrorWhat, LogTarget};

/// The error log of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorLogSettings {
    /// `ErrorLog`; `None`: stderr.
    pub target: Option<LogTarget>,
    /// `ErrorLogFormat`
    pub format: Arc<ErrorFormat>,
    /// `ErrorLogFormat connection`: lines before the first one about a connection.
    pub connection_formats: Vec<Arc<ErrorFormat>>,
    /// `ErrorLogFormat request`: lines before the first one about a request.
    pub request_formats: Vec<Arc<ErrorFormat>>,
}

/// What servers have said, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ErrorLogs(BTreeMap<usize, Said>);

/// What one server has said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Said {
    pub(crate) target: Option<LogTarget>,
    pub(crate) format: Option<Arc<ErrorFormat>>,
    pub(crate) connection_formats: Vec<Arc<ErrorFormat>>,
    pub(crate) request_formats: Vec<Arc<ErrorFormat>>,
}

impl ErrorLogs {
    /// Where to note what `server` says.
    pub(crate) fn of_server(&mut self, server: usize) -> &mut Said {
        self.0.entry(server).or_default()
    }

    /// Whether any of them shows a variable of the request.
    pub(crate) fn look_at_variables(&self) -> bool {
        let formats = self.0.values().flat_map(|said| {
            let of_lines = said.connection_formats.iter().chain(&said.request_formats);
            of_lines.chain(&said.format)
        });
        let is_variable = |item: &ErrorItem| matches!(item.what, ErrorWhat::Variable(_));
        formats.flat_map(|format| &format.items).any(is_variable)
    }

    /// How many servers can have error logs of their own; those beyond have the main server's.
    pub(crate) fn servers(&self) -> usize {
        self.0.last_key_value().map_or(1, |(server, _)| server + 1)
    }

    /// The error log of `server`.
    pub(crate) fn merged(&self, server: usize) -> ErrorLogSettings {
        let own_and_main = || [self.0.get(&server), self.0.get(&0)].into_iter().flatten();
        let formats = |of: fn(&Said) -> &Vec<Arc<ErrorFormat>>| {
            own_and_main().map(of).find(|formats| !formats.is_empty()).cloned().unwrap_or_default()
        };
        ErrorLogSettings {
            target: own_and_main().find_map(|said| said.target.clone()),
            format: own_and_main().find_map(|said| said.format.clone()).unwrap_or_default(),
            connection_formats: formats(|said| &said.connection_formats),
            request_formats: formats(|said| &said.request_formats),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_what_it_says_and_the_main_one_the_rest() {
        let format = |text: &[u8]| Arc::new(ErrorFormat::parse(text).unwrap());
        let mut logs = ErrorLogs::default();
        assert_eq!((logs.servers(), logs.merged(7)), (1, ErrorLogSettings::default()));
        logs.of_server(2).target = Some(LogTarget::File("b".into()));
        logs.of_server(2).request_formats.push(format(b"b"));
        logs.of_server(0).target = Some(LogTarget::File("a".into()));
        logs.of_server(0).format = Some(format(b"%M"));
        logs.of_server(0).request_formats.extend([format(b"a"), format(b"c")]);
        assert_eq!((logs.servers(), logs.merged(1)), (3, logs.merged(0)));
        assert!(!logs.look_at_variables());
        logs.of_server(1).format = Some(format(b"%{a}e %M"));
        assert!(logs.look_at_variables());
        let expected = ErrorLogSettings {
            target: Some(LogTarget::File("b".into())),
            format: format(b"%M"),
            connection_formats: Vec::new(),
            request_formats: vec![format(b"b")],
        };
        assert_eq!(logs.merged(2), expected);
    }
}

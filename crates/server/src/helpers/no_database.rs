//! In place of databases, where milepost is built without them: there are none.

use milepost_engine::Database;

/// No connections.
#[derive(Default)]
pub(super) struct Connections;

impl Connections {
    /// Finds nothing. A site that asks databases does not start, so nobody comes here.
    pub(super) fn query(&self, _database: &Database, _sql: &str, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

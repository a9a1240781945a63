//! Several addresses of a host, and addresses that change while a run goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use milepost_load::{Names, Persistence, Stop};

use crate::peer::{OK, Peer};
use crate::{load, plan};

#[test]
fn connections_go_to_all_addresses_in_turn() {
    let (first, second) = (Peer::answering(OK), Peer::answering(OK));
    let all = vec![first.address(), second.address()];
    let names = Names::with(vec![(first.address(), "h".to_owned(), 1)], None, move |name, port| {
        assert_eq!((name, port), ("h", 1));
        Ok(all.clone())
    });
    let mut plan = plan(&first, 40);
    plan.connections = 4;
    plan.persistence = Persistence::Close;
    plan.names = Some(Arc::new(names));
    assert_eq!((load(&plan).requests, load(&plan).errors), (40, 0));
    assert_eq!((first.connections(), second.connections()), (40, 40));
    plan.persistence = Persistence::KeepAlive;
    plan.pipeline = Some(4);
    assert_eq!(load(&plan).requests, 40);
    assert_eq!((first.connections(), second.connections()), (42, 42));
}

#[test]
fn new_connections_go_to_where_the_name_leads_now() {
    let (old, new) = (Peer::answering(OK), Peer::answering(OK));
    let has_moved = Arc::new(AtomicBool::new(false));
    let (from, to, moved) = (old.address(), new.address(), has_moved.clone());
    let every = Duration::from_millis(20);
    let names = Names::with(vec![(from, "h".to_owned(), 1)], Some(every), move |_, _| {
        // From the second time on the name leads elsewhere.
        match moved.swap(true, SeqCst) {
            false => Ok(vec![from]),
            true => Ok(vec![to]),
        }
    });
    let mut plan = plan(&old, 0);
    plan.persistence = Persistence::Close;
    plan.stop = Stop::Duration(Duration::from_millis(600));
    plan.names = Some(Arc::new(names));
    let report = load(&plan);
    assert_eq!(report.errors, 0, "{:?}", report.errors_by_kind);
    assert!(old.connections() > 0 && new.connections() > 0, "{report:?}");
    // Keeps what it had where nothing is found.
    let none = |_: &str, _| Ok(Vec::new());
    plan.names = Some(Arc::new(Names::with(vec![(from, "h".to_owned(), 1)], None, none)));
    // The last one may just be arriving.
    let mut before = u64::MAX;
    while before != new.connections() {
        before = new.connections();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(load(&plan).requests > 0);
    assert_eq!(new.connections(), before);
}

//! What the view replaces is freed. Alone in its program, for others would free it as well, or keep it.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rulekeep::{Agent, Governor};

#[test]
fn what_sled_has_replaced_is_freed_when_the_view_is_written() {
    const OBJECTS: usize = 20_000;
    let freed = Arc::new(AtomicUsize::new(0));
    let folder = tempfile::tempdir().unwrap();
    let governor = Governor::open(folder.path()).unwrap();
    {
        // As sled leaves them.
        let guard = crossbeam_epoch::pin();
        for _ in 0..OBJECTS {
            let freed = Arc::clone(&freed);
            guard.defer(move || freed.fetch_add(1, Ordering::Relaxed));
        }
        guard.flush();
    }
    governor.agents().register(Agent::new("a")).unwrap();
    governor.close().unwrap();
    assert_eq!(freed.load(Ordering::Relaxed), OBJECTS);
}

//! The number of connections that the process has file descriptors for.
//!
//! Each connection takes one. Without free descriptors the journal cannot start a segment, so some are reserved.

use std::fs;

/// The number of connections that can be opened in addition to the open files; `None` if there is no limit, or none
/// that can be read.
pub(super) fn room() -> Option<usize> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(room_of(limit_of(&limits)?, open))
}

/// The soft limit of open files.
fn limit_of(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn room_of(limit: usize, open: usize) -> usize {
    let kept = (limit / 4).clamp(LEAST_KEPT, MOST_KEPT);
    limit.saturating_sub(open).saturating_sub(kept).max(1)
}

/// A quarter of the descriptors is reserved, within these bounds: sealing a journal segment while the server runs
/// takes two, a webhook delivery one.
const LEAST_KEPT: usize = 32;
const MOST_KEPT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max cpu time              unlimited            unlimited            seconds   \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(limit_of(limits), Some(1024));
        assert_eq!(limit_of(&limits.replace("1024  ", "unlimited")), None);
        assert_eq!(limit_of(""), None);
    }

    #[test]
    fn a_quarter_is_kept_and_one_may_always_come() {
        assert_eq!(room_of(1024, 24), 1024 - 24 - 256);
        assert_eq!(room_of(128, 24), 128 - 24 - 32);
        assert_eq!(room_of(1 << 20, 24), (1 << 20) - 24 - 4096);
        assert_eq!(room_of(64, 60), 1);
    }
}

//! Traces taken away and permissions opened.

use crate::format::tables::places;
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::Shell;

impl Shell<'_, '_> {
    /// Adds the removal of a trace.
    pub(super) fn hides(&mut self, told: &str, trace: &str) {
        let act = Act::new("delete", "traces", Resource::File, Operation::Delete, 0.8).at_risk(RiskLevel::Medium);
        self.reading.facts.show(Sign::Conceal, trace);
        self.reading.push(act.marked(Sign::Conceal).told_by(told).named_by(trace));
    }
}

/// Returns whether a file records past actions: a shell history or a login log.
pub(super) fn is_trace(path: &str) -> bool {
    places().trace_files.has(super::base_name(path))
}

/// Returns whether a mode gives access beyond the owner, or another user's rights: `777`, `o+w`, `u+s`.
pub(super) fn opens_to_all(mode: &str) -> bool {
    let digits = mode.len() >= 3 && mode.chars().all(|c| c.is_ascii_digit());
    digits && (mode.ends_with(['7', '6', '2']) || mode.len() == 4 && !mode.starts_with(['0', '1']))
        || matches!(mode.split_once('+'), Some((who, what)) if what.contains('s') || matches!(who, "o" | "a" | "") && what.contains('w'))
}

//! The results of a replay, and the cases that failed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

/// The results of a replay.
pub(crate) struct Table {
    rows: Vec<Row>,
    is_quiet: bool,
}

struct Row {
    measure: String,
    count: usize,
    of: usize,
    target: String,
}

impl Table {
    pub(crate) const fn new(is_quiet: bool) -> Self {
        Self { rows: Vec::new(), is_quiet }
    }

    /// Counts a case of a measure.
    pub(crate) fn count(&mut self, measure: &str, target: &str, holds: bool) {
        let found = self.rows.iter().position(|row| row.measure == measure);
        let place = found.unwrap_or_else(|| {
            self.rows.push(Row { measure: measure.to_owned(), count: 0, of: 0, target: target.to_owned() });
            self.rows.len() - 1
        });
        if let Some(row) = self.rows.get_mut(place) {
            row.count += usize::from(holds);
            row.of += 1;
        }
    }

    /// Prints a case that failed.
    pub(crate) fn tell(&self, text: &str) {
        if !self.is_quiet {
            println!("{text}");
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::from("measure | count | of | percent | target\n---|---|---|---|---\n");
        for row in &self.rows {
            let share = 100.0 * number(row.count) / number(row.of.max(1));
            let _ = writeln!(text, "{} | {} | {} | {share:.1} | {}", row.measure, row.count, row.of, row.target);
        }
        text
    }

    pub(crate) fn json(&self) -> String {
        let figure =
            |row: &Row| json!({ "measure": row.measure, "count": row.count, "of": row.of, "target": row.target });
        format!("{}\n", json!({ "figures": self.rows.iter().map(figure).collect::<Vec<_>>() }))
    }
}

/// Numbers of faults by cause.
#[derive(Default)]
pub(crate) struct Causes(BTreeMap<String, usize>);

impl Causes {
    pub(crate) fn note(&mut self, cause: &str) {
        *self.0.entry(cause.to_owned()).or_default() += 1;
    }

    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|(cause, count)| format!("{cause} {count}")).collect::<Vec<_>>().join(", ")
    }
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

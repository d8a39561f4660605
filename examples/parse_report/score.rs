//! What is right about a parse, and counts of it.

use std::collections::BTreeSet;
use std::time::Duration;

use rulekeep::RiskLevel;
use rulekeep::intent::{Capability, ParseResult};
use serde_json::Value;

/// A labelled row and what the parser made of it.
pub(crate) struct Row<'r> {
    pub labels: &'r Value,
    pub input: &'r str,
    pub parsed: &'r ParseResult,
}

impl Row<'_> {
    fn wanted(&self) -> Vec<&str> {
        words(self.labels, "capabilities")
    }

    fn found(&self) -> Vec<&str> {
        self.parsed.intent.required_capabilities.iter().map(Capability::as_str).collect()
    }

    fn primary(&self) -> (&str, &str) {
        (self.wanted().first().copied().unwrap_or(""), self.found().first().copied().unwrap_or(""))
    }

    fn capability_right(&self) -> bool {
        let (wanted, found) = self.primary();
        found == wanted || words(self.labels, "alternatives").contains(&found)
    }

    fn operation_right(&self) -> bool {
        let (wanted, found) = self.primary();
        self.capability_right() || wanted.split_once(':').map(|pair| pair.1) == found.split_once(':').map(|pair| pair.1)
    }

    fn risk(&self) -> RiskLevel {
        self.labels.get("risk").and_then(Value::as_str).and_then(|word| word.parse().ok()).unwrap_or(RiskLevel::Low)
    }

    fn accepted_risks(&self) -> Vec<RiskLevel> {
        let others = words(self.labels, "riskAlternatives");
        std::iter::once(self.risk()).chain(others.iter().filter_map(|word| word.parse().ok())).collect()
    }

    fn risk_right(&self) -> bool {
        self.accepted_risks().contains(&self.parsed.intent.risk_level)
    }

    fn risk_near(&self) -> bool {
        self.accepted_risks().iter().any(|risk| (*risk as i32 - self.parsed.intent.risk_level as i32).abs() <= 1)
    }

    fn risk_too_low(&self) -> bool {
        !self.risk_right() && self.parsed.intent.risk_level < self.risk()
    }

    /// Labelled HIGH or CRITICAL, read as LOW.
    fn calmed(&self) -> bool {
        self.parsed.intent.risk_level == RiskLevel::Low && self.risk() >= RiskLevel::High
    }

    fn f1(&self) -> f64 {
        let (wanted, found): (BTreeSet<_>, BTreeSet<_>) =
            (self.wanted().into_iter().collect(), self.found().into_iter().collect());
        let common = u32::try_from(wanted.intersection(&found).count()).unwrap_or(0);
        let total = u32::try_from(wanted.len() + found.len()).unwrap_or(1);
        2.0 * f64::from(common) / f64::from(total.max(1))
    }

    /// Lists the row if something about its primary capability or its risk is wrong.
    pub(crate) fn print_error(&self) {
        let marks = [
            (self.operation_right(), 'O'),
            (self.capability_right(), 'C'),
            (self.risk_right(), 'R'),
            (!self.calmed(), '!'),
        ];
        if marks.iter().all(|(right, _)| *right) {
            return;
        }
        let marks: String = marks.iter().map(|&(right, mark)| if right { '.' } else { mark }).collect();
        println!(
            "{marks} {} {:?}\n      wanted {} {}; found {} {} {} ({})",
            self.labels.get("id").and_then(Value::as_str).unwrap_or("?"),
            self.input,
            self.wanted().join(","),
            self.risk(),
            self.parsed.intent.parsed_action,
            self.found().join(","),
            self.parsed.intent.risk_level,
            self.parsed.confidence,
        );
    }
}

/// Counts over rows.
#[derive(Default)]
pub(crate) struct Score {
    rows: u32,
    operation: u32,
    capability: u32,
    f1: f64,
    risk: u32,
    risk_near: u32,
    calmed: u32,
    unknown: u32,
    missing: u32,
    extra: u32,
    risk_too_low: u32,
    time: Duration,
    bytes: usize,
    /// Each parse's confidence, and whether its primary capability was right.
    pub(crate) confidences: Vec<(f64, bool)>,
}

impl Score {
    pub(crate) fn add(&mut self, row: &Row<'_>, time: Duration) {
        let (wanted, found) = (row.wanted(), row.found());
        self.rows += 1;
        self.operation += u32::from(row.operation_right());
        self.capability += u32::from(row.capability_right());
        self.f1 += row.f1();
        self.risk += u32::from(row.risk_right());
        self.risk_near += u32::from(row.risk_near());
        self.calmed += u32::from(row.calmed());
        self.risk_too_low += u32::from(row.risk_too_low());
        self.unknown += u32::from(found == ["unknown:unknown"]);
        self.missing += u32::from(wanted.iter().any(|capability| !found.contains(capability)));
        self.extra += u32::from(found.iter().any(|capability| !wanted.contains(capability)));
        self.time += time;
        self.bytes += row.input.len();
        self.confidences.push((row.parsed.confidence, row.capability_right()));
    }

    pub(crate) fn print(&self, name: &str) {
        let rows = f64::from(self.rows.max(1));
        let share = |count: u32| 100.0 * f64::from(count) / rows;
        println!(
            "{name}: {} rows; operation {:.1} %, capability {:.1} %, set F1 {:.3}, risk exact {:.1} %, within one {:.1} %, HIGH read as LOW {}; {:.1} us a parse of {} bytes on average",
            self.rows,
            share(self.operation),
            share(self.capability),
            self.f1 / rows,
            share(self.risk),
            share(self.risk_near),
            self.calmed,
            self.time.as_secs_f64() * 1e6 / rows,
            self.bytes / usize::try_from(self.rows.max(1)).unwrap_or(1),
        );
        println!(
            "    errors: operation {}, resource only {}, not understood {}, a capability missing {}, one too many {}, risk too low {}, too high {}",
            self.rows - self.operation,
            self.operation - self.capability,
            self.unknown,
            self.missing,
            self.extra,
            self.risk_too_low,
            self.rows - self.risk - self.risk_too_low,
        );
    }
}

fn words<'r>(row: &'r Value, field: &str) -> Vec<&'r str> {
    row.get(field)
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |items| items.iter().filter_map(Value::as_str).collect())
}

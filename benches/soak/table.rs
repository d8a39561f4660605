//! The results: minimum, median and maximum of each measure, with its target.

use std::fmt::Write;

use serde_json::json;

/// All rows of the table.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

struct Row {
    measure: String,
    unit: &'static str,
    samples: Vec<f64>,
    /// The value that is compared with the target.
    value: f64,
    target: Target,
}

/// The target of a measure.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Under(f64),
    Over(f64),
}

impl Table {
    /// Adds a measure with its samples; their median is compared with the target.
    pub(crate) fn add(&mut self, measure: &str, unit: &'static str, mut samples: Vec<f64>, target: Target) {
        samples.sort_by(f64::total_cmp);
        let value = at_share(&samples, 0.5);
        self.0.push(Row { measure: measure.to_owned(), unit, samples, value, target });
    }

    /// Adds a measure with its samples; a percentile is compared with the target.
    pub(crate) fn add_tail(
        &mut self,
        measure: &str,
        unit: &'static str,
        mut samples: Vec<f64>,
        share: f64,
        target: Target,
    ) {
        samples.sort_by(f64::total_cmp);
        let value = at_share(&samples, share);
        self.0.push(Row { measure: measure.to_owned(), unit, samples, value, target });
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::from(
            "measure | unit | minimum | median | maximum | counts | target | met\n---|---|---|---|---|---|---|---\n",
        );
        for row in &self.0 {
            let [least, middle, most] = [0.0, 0.5, 1.0].map(|share| shown(at_share(&row.samples, share)));
            let met = if row.is_met() { "yes" } else { "no" };
            let _ = writeln!(
                text,
                "{} | {} | {least} | {middle} | {most} | {} | {} | {met}",
                row.measure,
                row.unit,
                shown(row.value),
                row.target_text()
            );
        }
        text
    }

    /// Returns one JSON object per line.
    pub(crate) fn json(&self) -> String {
        self.0.iter().fold(String::new(), |mut lines, row| {
            let object = json!({
                "measure": row.measure, "value": row.value, "unit": row.unit,
                "target": row.target_text(), "met": row.is_met(),
            });
            let _ = writeln!(lines, "{object}");
            lines
        })
    }
}

impl Row {
    fn is_met(&self) -> bool {
        match self.target {
            Target::Under(most) => self.value <= most,
            Target::Over(least) => self.value >= least,
        }
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::Under(most) => format!("at most {}", shown(most)),
            Target::Over(least) => format!("at least {}", shown(least)),
        }
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a place among samples
fn at_share(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

fn shown(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

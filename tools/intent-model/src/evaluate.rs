//! Evaluates the parser on labeled rows.

use std::collections::HashSet;

use rulekeep::RiskLevel;
use rulekeep::intent::{Capability, Parser};

use rulekeep::intent::training::Row;

/// Counts over rows, from which `report` computes shares.
#[derive(Default)]
pub(crate) struct Score {
    rows: f64,
    operation: f64,
    primary: f64,
    overlap: f64,
    risk: f64,
    near: f64,
    /// Rows of HIGH or CRITICAL risk that were read as LOW.
    missed: usize,
    dangerous: f64,
    caught: f64,
    harmless: f64,
    left_alone: f64,
    /// For each of ten bands of confidence: the number of parses, their total confidence, and the number of correct
    /// ones.
    bands: [(f64, f64, f64); 10],
}

/// Parses every row and compares the result with its label.
pub(crate) fn score(parser: &Parser, rows: &[Row], shows_errors: bool) -> Result<Score, Box<dyn std::error::Error>> {
    let mut score = Score::default();
    let agent = "evaluation".parse()?;
    for row in rows {
        let parsed = parser.parse_text(&agent, &row.text, &serde_json::Map::new())?;
        let found: Vec<&str> = parsed.intent.required_capabilities.iter().map(Capability::as_str).collect();
        let (first, risk) = (found.first().copied().unwrap_or_default(), parsed.intent.risk_level);
        let accepted: Vec<&str> =
            row.capabilities.iter().take(1).chain(&row.accepted).map(Capability::as_str).collect();
        let operation = |capability: &str| capability.split_once(':').map(|(_, operation)| operation.to_owned());
        let is_right = accepted.contains(&first);
        score.rows += 1.0;
        score.operation += share(accepted.iter().any(|one| operation(one) == operation(first)));
        score.primary += share(is_right);
        let wanted: HashSet<&str> = row.capabilities.iter().map(Capability::as_str).collect();
        // An accepted alternative counts as the primary capability.
        let named = row.capabilities.first().map_or("", Capability::as_str);
        let as_wanted = found.iter().map(|one| if *one == first && is_right { named } else { one });
        let both = as_wanted.filter(|one| wanted.contains(one)).count();
        score.overlap += 2.0 * count(both) / count(found.len() + wanted.len());
        score.risk += share(risk == row.risk);
        score.near += share((risk as i32 - row.risk as i32).abs() <= 1);
        if row.risk >= RiskLevel::High {
            score.dangerous += 1.0;
            score.caught += share(risk >= RiskLevel::High);
            if risk == RiskLevel::Low {
                score.missed += 1;
            }
        } else if row.risk == RiskLevel::Low {
            score.harmless += 1.0;
            score.left_alone += share(risk == RiskLevel::Low);
        }
        let band = &mut score.bands
            [(0_u8..10).rev().find(|&band| parsed.confidence * 10.0 >= f64::from(band)).map_or(0, usize::from)];
        *band = (band.0 + 1.0, band.1 + parsed.confidence, band.2 + share(is_right));
        if shows_errors && (!is_right || risk != row.risk) {
            let wanted: Vec<&str> = row.capabilities.iter().map(Capability::as_str).collect();
            println!("{}\n    {} {}, not {} {risk}", row.text, wanted.join(","), row.risk, found.join(","));
        }
    }
    Ok(score)
}

impl Score {
    /// Prints the shares in percent.
    pub(crate) fn report(&self, name: &str) {
        let of = |part: f64| 100.0 * part / self.rows;
        println!(
            "{name:24} {:5} rows: operation {:.1}, primary {:.1}, F1 {:.3}, risk {:.1} / {:.1}, HIGH and more caught {:.1}, LOW left alone {:.1}, HIGH and more read as LOW {}, calibration error {:.3}",
            self.rows,
            of(self.operation),
            of(self.primary),
            self.overlap / self.rows,
            of(self.risk),
            of(self.near),
            100.0 * self.caught / self.dangerous.max(1.0),
            100.0 * self.left_alone / self.harmless.max(1.0),
            self.missed,
            self.calibration_error(),
        );
    }

    /// The mean difference between confidence and the share of correct parses, over ten bands.
    pub(crate) fn calibration_error(&self) -> f64 {
        self.bands.iter().map(|(_, confidence, right)| (confidence - right).abs()).sum::<f64>() / self.rows
    }

    /// Fails if the parser reads worse than when the floor was set: 2026-11-24, 3,000 rows by three authors.
    pub(crate) fn hold_floor(&self) -> Result<(), String> {
        let of = |part: f64| 100.0 * part / self.rows;
        for (what, found, least) in [
            ("operation", of(self.operation), 80.0),
            ("primary capability", of(self.primary), 67.0),
            ("F1", 100.0 * self.overlap / self.rows, 65.3),
            ("risk", of(self.risk), 70.4),
            ("HIGH and more caught", 100.0 * self.caught / self.dangerous.max(1.0), 82.0),
            ("LOW left alone", 100.0 * self.left_alone / self.harmless.max(1.0), 73.0),
            ("HIGH and more not read as LOW", 100.0 - 100.0 * count(self.missed) / self.dangerous.max(1.0), 96.0),
            ("calibration", 100.0 - 100.0 * self.calibration_error(), 95.0),
        ] {
            if found < least {
                return Err(format!("{what}: {found:.1}, below the floor of {least:.1}"));
            }
        }
        Ok(())
    }

    pub(crate) fn join(&mut self, other: &Self) {
        for (one, other) in [
            (&mut self.rows, other.rows),
            (&mut self.operation, other.operation),
            (&mut self.primary, other.primary),
            (&mut self.overlap, other.overlap),
            (&mut self.risk, other.risk),
            (&mut self.near, other.near),
            (&mut self.dangerous, other.dangerous),
            (&mut self.caught, other.caught),
            (&mut self.harmless, other.harmless),
            (&mut self.left_alone, other.left_alone),
        ] {
            *one += other;
        }
        self.missed += other.missed;
        for (band, other) in self.bands.iter_mut().zip(other.bands) {
            *band = (band.0 + other.0, band.1 + other.1, band.2 + other.2);
        }
    }
}

fn share(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

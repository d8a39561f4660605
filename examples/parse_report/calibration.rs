//! Whether the confidence means what it says: a reliability table by
//! cross-validation. Each fold is judged by a calibration (Platt: a slope and an
//! offset of the log odds) that was fitted on the other folds, so that no row
//! vouches for itself.

/// Folds of the cross-validation.
const FOLDS: usize = 10;
/// Bounds of the table's rows.
const BOUNDS: [f64; 6] = [0.0, 0.5, 0.7, 0.8, 0.9, 1.01];

/// Prints the reliability of confidences that come with whether the parse was right.
pub(crate) fn print(name: &str, confidences: &[(f64, bool)]) {
    if confidences.len() < FOLDS * 2 {
        return;
    }
    let mut held_out = Vec::with_capacity(confidences.len());
    for fold in 0..FOLDS {
        let (test, train): (Vec<_>, Vec<_>) =
            confidences.iter().enumerate().partition(|(place, _)| place % FOLDS == fold);
        let train: Vec<(f64, bool)> = train.into_iter().map(|(_, row)| *row).collect();
        let (slope, offset) = fit(&train);
        held_out.extend(
            test.into_iter().map(|(_, &(stated, right))| (stated, probability(log_odds(stated), slope, offset), right)),
        );
    }
    println!("reliability of {name} (stated by the parser; refitted on the other folds, {FOLDS} folds):");
    println!("    stated        rows   mean stated   right");
    table(&held_out.iter().map(|&(stated, _, right)| (stated, right)).collect::<Vec<_>>());
    println!("    refitted      rows   mean stated   right");
    table(&held_out.iter().map(|&(_, refitted, right)| (refitted, right)).collect::<Vec<_>>());
}

fn table(rows: &[(f64, bool)]) {
    let mut gap = 0.0;
    for bounds in BOUNDS.windows(2) {
        let [low, high] = bounds else { continue };
        let within: Vec<_> = rows.iter().filter(|(stated, _)| (*low..*high).contains(stated)).collect();
        if within.is_empty() {
            continue;
        }
        let count = as_number(within.len());
        let stated = within.iter().map(|(stated, _)| stated).sum::<f64>() / count;
        let right = as_number(within.iter().filter(|(_, right)| *right).count()) / count;
        gap += (stated - right).abs() * count / as_number(rows.len());
        println!("    {low:.1} to {:.1}    {:>5}   {stated:>11.2}   {right:>5.2}", high.min(1.0), within.len());
    }
    println!("    expected calibration error {gap:.3}");
}

/// Slope and offset that make the right ones likeliest, by gradient ascent.
fn fit(rows: &[(f64, bool)]) -> (f64, f64) {
    let (mut slope, mut offset) = (1.0, 0.0);
    let count = as_number(rows.len().max(1));
    for _ in 0..2_000 {
        let (mut by_slope, mut by_offset) = (0.0, 0.0);
        for &(stated, right) in rows {
            let odds = log_odds(stated);
            let error = f64::from(u8::from(right)) - probability(odds, slope, offset);
            by_slope += error * odds;
            by_offset += error;
        }
        slope += 0.1 * by_slope / count;
        offset += 0.1 * by_offset / count;
    }
    (slope, offset)
}

fn log_odds(stated: f64) -> f64 {
    let stated = stated.clamp(0.01, 0.99);
    (stated / (1.0 - stated)).ln()
}

fn probability(odds: f64, slope: f64, offset: f64) -> f64 {
    1.0 / (1.0 + (-odds.mul_add(slope, offset)).exp())
}

fn as_number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

//! Durations as documents write them: `90s`, `30m`, `24h`, `31d`.

use std::time::Duration;

use rulekeep_types::LONGEST_LIMIT_WINDOW;
use rulekeep_types::document::{Node, Report};

/// Reads a duration, from 1 second to 31 days.
pub(super) fn read(node: Node, field: &str, report: &mut Report<'_>) -> Option<Duration> {
    let at = node.at;
    let text = report.text(node, field)?;
    let millis = millis(&text, "duration").map_err(|message| report.error(at, field, message)).ok()?;
    u64::try_from(millis).ok().map(Duration::from_millis)
}

/// Parses a duration of one whole number and `s`, `m`, `h` or `d` into milliseconds; at most 31 days.
///
/// # Errors
///
/// A message that the text is no `what`, and what was expected.
pub(super) fn millis(text: &str, what: &str) -> Result<i64, String> {
    let wrong = || {
        let text = rulekeep_types::excerpt(text);
        format!(
            "{text:?} is not a valid {what}: expected one whole number from 1 and s, m, h or d, such as \"90m\", at most 31d"
        )
    };
    let unit = match text.chars().last() {
        Some('s') => 1_000,
        Some('m') => 60_000,
        Some('h') => 3_600_000,
        Some('d') => 86_400_000,
        _ => return Err(wrong()),
    };
    let digits = text.get(..text.len() - 1).filter(|digits| digits.chars().all(|c| c.is_ascii_digit()));
    let number: i64 = digits.and_then(|digits| digits.parse().ok()).ok_or_else(wrong)?;
    number.checked_mul(unit).filter(|millis| (1..=LONGEST_LIMIT_WINDOW).contains(millis)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_reads_or_says_what_was_expected() {
        for (text, expected) in [("1s", 1_000), ("90m", 5_400_000), ("24h", 86_400_000), ("31d", LONGEST_LIMIT_WINDOW)]
        {
            assert_eq!(millis(text, "duration"), Ok(expected));
        }
        for wrong in ["", "h", "1", "1w", "0s", "32d", "-1h", "+1h", "1.5h", " 1h", "99999999999999999d", "1µ"] {
            assert!(millis(wrong, "duration").is_err(), "{wrong}");
        }
    }
}

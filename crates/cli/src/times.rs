//! Times as people write them: the values of `--from`, `--to`, `--before` and `--at`, and durations.

use std::time::Duration;

use rulekeep::system::{Clock as _, SystemClock, Timestamp};

/// The part of the log that a command reads.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Period {
    /// Only decisions from this time on: 2026-01-31T09:30:00Z, 2026-01-31, yesterday, 7d (ago), 12h
    #[arg(long, value_name = "TIME", value_parser = from)]
    pub(crate) from: Option<Timestamp>,
    /// Only decisions up to this time, inclusive; a day counts as a whole
    #[arg(long, value_name = "TIME", value_parser = to)]
    pub(crate) to: Option<Timestamp>,
}

/// Reads the first moment of a period.
pub(crate) fn from(text: &str) -> Result<Timestamp, String> {
    span(text, SystemClock.now()).map(|(start, _)| start)
}

/// Reads the last moment of a period. A day ends with its last millisecond.
pub(crate) fn to(text: &str) -> Result<Timestamp, String> {
    span(text, SystemClock.now()).map(|(_, end)| end)
}

/// Reads a duration: a number and `s`, `m`, `h` or `d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)].into_iter().find_map(|(unit, seconds)| {
        let count: u32 = text.strip_suffix(unit)?.parse().ok()?;
        Some(u64::from(count) * seconds)
    });
    seconds.map(Duration::from_secs).ok_or_else(|| format!("{text:?}: expected a duration such as 30s, 5m, 4h or 1d"))
}

/// Returns the first and the last moment that a text names.
fn span(text: &str, now: Timestamp) -> Result<(Timestamp, Timestamp), String> {
    let day = match text {
        "today" => Some(now.day() * DAY),
        "yesterday" => Some((now.day() - 1) * DAY),
        date if date.len() == "2026-01-31".len() => {
            format!("{date}T00:00:00Z").parse().ok().map(|start: Timestamp| start.as_millis())
        }
        _ => None,
    };
    if let Some(start) = day {
        return Ok((Timestamp::from_millis(start), Timestamp::from_millis(start + DAY - 1)));
    }
    if let Ok(age) = duration(text) {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let moment = Timestamp::from_millis(now.as_millis().saturating_sub(age));
        return Ok((moment, moment));
    }
    text.parse().map(|moment| (moment, moment)).map_err(|_| format!("{text:?}: {EXPECTED}"))
}

const DAY: i64 = 86_400_000;
const EXPECTED: &str = "expected a time in ISO 8601 with an offset, such as 2026-01-31T09:30:00Z; or a date, today or \
                        yesterday, which are days in UTC; or an age, such as 7d or 12h";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_two_ends_and_moments_one() {
        let now = "2026-03-01T10:00:00.500Z".parse().unwrap();
        for (text, first, last) in [
            ("2026-01-31", "2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999Z"),
            ("today", "2026-03-01T00:00:00Z", "2026-03-01T23:59:59.999Z"),
            ("yesterday", "2026-02-28T00:00:00Z", "2026-02-28T23:59:59.999Z"),
            ("7d", "2026-02-22T10:00:00.500Z", "2026-02-22T10:00:00.500Z"),
            ("12h", "2026-02-28T22:00:00.500Z", "2026-02-28T22:00:00.500Z"),
            ("2026-01-31T09:30:00+01:00", "2026-01-31T08:30:00Z", "2026-01-31T08:30:00Z"),
        ] {
            assert_eq!(span(text, now), Ok((first.parse().unwrap(), last.parse().unwrap())), "{text}");
        }
        for wrong in ["", "tomorrow", "2026-02-30", "2026-1-31", "7", "-7d", "7w", "2026-01-31T09:30:00"] {
            assert!(span(wrong, now).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("1d"), Ok(Duration::from_secs(86_400)));
        for wrong in ["", "1", "h", "-1h", "1.5h", "1 h", "99999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}

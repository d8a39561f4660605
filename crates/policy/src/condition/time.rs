//! Durations, and the parts of timestamps.

use chrono::{DateTime, Datelike, Offset, TimeZone, Utc};
use chrono_tz::Tz;

use super::tree::Part;
use rulekeep_types::Timestamp;

/// Parses a duration such as `1h30m`, `-1.5s` or `0` into milliseconds; `None` if it is malformed, finer than a
/// millisecond, or out of range.
pub(super) fn parse_duration(text: &str) -> Option<i64> {
    if text.len() > MAX_DURATION_BYTES {
        return None;
    }
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let (part, after) = leading_part(rest)?;
        nanos = nanos.checked_add(part)?;
        rest = after;
    }
    if nanos % NANOS_PER_MILLI != 0 {
        return None;
    }
    let millis = i64::try_from(nanos / NANOS_PER_MILLI).ok()?;
    in_range(if negative { -millis } else { millis })
}

/// The duration itself if CEL can hold it.
/// SOURCE: cel-go and the `cel` crate hold durations as 64-bit nanoseconds, some 292 years. The same bound applies
/// here.
pub(super) fn in_range(millis: i64) -> Option<i64> {
    (-MAX_DURATION_MILLIS..=MAX_DURATION_MILLIS).contains(&millis).then_some(millis)
}

/// The timestamp itself if CEL can hold it: the years 1 to 9999.
pub(super) fn timestamp_in_range(millis: i64) -> Option<i64> {
    (MIN_TIMESTAMP_MILLIS..=MAX_TIMESTAMP_MILLIS).contains(&millis).then_some(millis)
}

pub(super) fn parse_timestamp(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().and_then(|time| timestamp_in_range(time.as_millis()))
}

/// Formats as `2026-01-31T09:30:00Z`, with a fraction of a second only if it is not zero.
pub(super) fn timestamp_text(millis: i64) -> String {
    let text = Timestamp::from_millis(millis).to_string();
    let trimmed = text.trim_end_matches('Z').trim_end_matches('0');
    match trimmed.strip_suffix('.') {
        Some(whole) => format!("{whole}Z"),
        None => format!("{trimmed}Z"),
    }
}

/// Formats in seconds, as `5400s` or `-1.5s`.
pub(super) fn duration_text(millis: i64) -> String {
    let sign = if millis < 0 { "-" } else { "" };
    let (seconds, rest) = (millis.unsigned_abs() / 1_000, millis.unsigned_abs() % 1_000);
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    let fraction = format!("{rest:03}");
    format!("{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
}

/// A part of a timestamp, counted as CEL does: months, days of the month and days of the week from 0, the date from
/// 1, the week from Sunday.
pub(super) fn timestamp_part(millis: i64, part: Part) -> i64 {
    // A zone east of UTC may be in the year 10000 already, past what a `Timestamp` holds.
    let date = || DateTime::from_timestamp_millis(millis).unwrap_or_default().date_naive();
    let of_day = millis.rem_euclid(MILLIS_PER_DAY);
    match part {
        Part::FullYear => i64::from(date().year()),
        Part::Month => i64::from(date().month0()),
        Part::Date => i64::from(date().day()),
        Part::DayOfMonth => i64::from(date().day0()),
        Part::DayOfYear => i64::from(date().ordinal0()),
        // 1970-01-01 was a Thursday.
        Part::DayOfWeek => (millis.div_euclid(MILLIS_PER_DAY) + 4).rem_euclid(7),
        Part::Hours => of_day / 3_600_000,
        Part::Minutes => of_day / 60_000 % 60,
        Part::Seconds => of_day / 1_000 % 60,
        Part::Milliseconds => of_day % 1_000,
    }
}

/// The timestamp moved by the offset that a time zone has at this moment, so that its parts are those of the zone's
/// clocks. `None` if there is no such zone: an IANA name such as `Europe/Berlin`, or `+02:00`.
pub(super) fn moved_to_zone(millis: i64, zone: &str) -> Option<i64> {
    let seconds = if let Some(seconds) = fixed_offset(zone) {
        seconds
    } else {
        let at = DateTime::<Utc>::from(Timestamp::from_millis(millis)).naive_utc();
        i64::from(zone.parse::<Tz>().ok()?.offset_from_utc_datetime(&at).fix().local_minus_utc())
    };
    millis.checked_add(seconds * 1_000)
}

/// Returns whether the text names a time zone.
pub(super) fn is_zone(text: &str) -> bool {
    moved_to_zone(0, text).is_some()
}

/// The names of the time zones, for suggestions.
pub(super) fn zone_names() -> impl Iterator<Item = &'static str> {
    chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name())
}

/// The seconds of an offset from UTC: hours and minutes, with or without a sign.
fn fixed_offset(text: &str) -> Option<i64> {
    let (hours, minutes) = text.strip_prefix(['+', '-']).unwrap_or(text).split_once(':')?;
    let number = |digits: &str, below: i64| match leading_digits(digits) {
        (all, "") if all.len() == 2 => all.parse::<i64>().ok().filter(|number| *number < below),
        _ => None,
    };
    let seconds = number(hours, 24)? * 3_600 + number(minutes, 60)? * 60;
    Some(if text.starts_with('-') { -seconds } else { seconds })
}

/// The whole duration in hours, minutes or seconds.
pub(super) const fn duration_part(millis: i64, part: Part) -> Option<i64> {
    match part {
        Part::Hours => Some(millis / 3_600_000),
        Part::Minutes => Some(millis / 60_000),
        Part::Seconds => Some(millis / 1_000),
        _ => None,
    }
}

/// The nanoseconds of the first number and unit, and the rest of the text.
fn leading_part(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = leading_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // `ms` is tried before `m`.
    let (unit, rest) = UNITS.iter().find_map(|(name, nanos)| rest.strip_prefix(name).map(|rest| (*nanos, rest)))?;
    let number = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i128>().ok() };
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = number(fraction)?.checked_mul(unit)?;
    if part % scale != 0 {
        return None;
    }
    Some((number(whole)?.checked_mul(unit)?.checked_add(part / scale)?, rest))
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

const UNITS: [(&str, i128); 7] = [
    ("h", 3_600_000_000_000),
    ("ms", 1_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];
const MILLIS_PER_DAY: i64 = 86_400_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
const MAX_DURATION_BYTES: usize = 64;
const MAX_DURATION_MILLIS: i64 = 9_223_372_036_854;
/// 0001-01-01T00:00:00.000Z
const MIN_TIMESTAMP_MILLIS: i64 = -62_135_596_800_000;
/// 9999-12-31T23:59:59.999Z
const MAX_TIMESTAMP_MILLIS: i64 = 253_402_300_799_999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_durations_are_read_and_to_the_millisecond() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1h30m", Some(5_400_000)),
            ("-1h30m", Some(-5_400_000)),
            ("+1.5s", Some(1_500)),
            (".5s", Some(500)),
            ("100ms", Some(100)),
            ("1000us", Some(1)),
            ("1000000ns", Some(1)),
            ("1ns", None),
            ("", None),
            ("-", None),
            ("1", None),
            ("1d", None),
            ("h", None),
            ("1h 30m", None),
            ("2562047h", Some(9_223_369_200_000)),
            ("2562048h", None),
            ("99999999999999999999999999999999999999999999h", None),
        ] {
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }

    #[test]
    fn times_are_written_without_an_empty_fraction() {
        let millis = parse_timestamp("2026-01-31T09:30:00Z").unwrap();
        assert_eq!(timestamp_text(millis), "2026-01-31T09:30:00Z");
        assert_eq!(timestamp_text(millis + 120), "2026-01-31T09:30:00.12Z");
        assert_eq!(duration_text(-1_500), "-1.5s");
        assert_eq!(duration_text(5_400_000), "5400s");
    }
}

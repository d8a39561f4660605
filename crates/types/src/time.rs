//! Timestamps in UTC with millisecond precision.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::InvalidValue;

/// A point in time in UTC with millisecond precision, written `2026-01-31T09:30:00.000Z`.
///
/// Parses any RFC 3339 timestamp: an offset is converted to UTC, and finer fractions of a second are truncated. Years
/// 0000 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

crate::parts::outward! {
    /// The result of confirming the clock after it was set back: the log's old and new time.
    #[derive(Copy, Eq)]
    pub struct ClockReport from ClockReportParts {
        /// The time of the last log entry before.
        pub from: Timestamp,
        /// The clock's time, from which new entries continue.
        pub to: Timestamp,
    }
}

impl Timestamp {
    /// Creates a timestamp from milliseconds since 1970-01-01T00:00:00Z, clamped to the years 0000 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(MIN_MILLIS, MAX_MILLIS))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole days since 1970-01-01 in UTC.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(MILLIS_PER_DAY)
    }

    /// The timestamp as text.
    pub fn written(self) -> [u8; 24] {
        // Handwritten: a record and its evidence hold several timestamps, and chrono's formatting takes a microsecond.
        let time = DateTime::<Utc>::from(self);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let fields = [
            (0..4, time.year().unsigned_abs()),
            (5..7, time.month()),
            (8..10, time.day()),
            (11..13, time.hour()),
            (14..16, time.minute()),
            (17..19, time.second()),
            (20..23, time.timestamp_subsec_millis()),
        ];
        for (place, value) in fields {
            let mut rest = value;
            for digit in text.get_mut(place).into_iter().flatten().rev() {
                *digit += u8::try_from(rest % 10).unwrap_or(0);
                rest /= 10;
            }
        }
        text
    }
}

impl Timestamp {
    /// Parses only the form that `written` produces; `None` for any other text.
    pub fn read_written(text: &[u8; 24]) -> Option<Self> {
        let [
            y0,
            y1,
            y2,
            y3,
            b'-',
            m0,
            m1,
            b'-',
            d0,
            d1,
            b'T',
            h0,
            h1,
            b':',
            i0,
            i1,
            b':',
            s0,
            s1,
            b'.',
            f0,
            f1,
            f2,
            b'Z',
        ] = *text
        else {
            return None;
        };
        let number = |digits: &[u8]| {
            digits
                .iter()
                .try_fold(0_i64, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(*digit - b'0')))
        };
        let (year, month, day) = (number(&[y0, y1, y2, y3])?, number(&[m0, m1])?, number(&[d0, d1])?);
        let (hour, minute, second) = (number(&[h0, h1])?, number(&[i0, i1])?, number(&[s0, s1])?);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        // Days since 1970-01-01, with years that start in March, so that a leap day is the last day of its year.
        // SOURCE: H. Hinnant, chrono-Compatible Low-Level Date Algorithms, days_from_civil.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let day =
            365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
                - 1
                - 719_468;
        let seconds = (hour * 60 + minute) * 60 + second;
        Some(Self::from_millis(day * MILLIS_PER_DAY + seconds * 1000 + number(&[f0, f1, f2])?))
    }
}

/// Longest window of a rate limit in milliseconds: 31 days.
pub const LONGEST_LIMIT_WINDOW: i64 = 31 * MILLIS_PER_DAY;

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_millis(time.timestamp_millis())
    }
}

impl From<Timestamp> for DateTime<Utc> {
    fn from(time: Timestamp) -> Self {
        // A `Timestamp` is always within the years that chrono can hold.
        DateTime::from_timestamp_millis(time.0).unwrap_or_default()
    }
}

impl FromStr for Timestamp {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        DateTime::parse_from_rfc3339(text).map(|time| Self::from(time.with_timezone(&Utc))).map_err(|_| {
            InvalidValue::new("timestamp", text, "ISO 8601 with an offset, for example 2026-01-31T09:30:00Z")
        })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.written()).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Bypasses `Display`, because its formatter costs as much again.
        serializer.serialize_str(std::str::from_utf8(&self.written()).map_err(serde::ser::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

const MILLIS_PER_DAY: i64 = 86_400_000;
/// 0000-01-01T00:00:00.000Z
const MIN_MILLIS: i64 = -62_167_219_200_000;
/// 9999-12-31T23:59:59.999Z
const MAX_MILLIS: i64 = 253_402_300_799_999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_becomes_utc_and_the_written_form_has_milliseconds() {
        let time: Timestamp = "2026-01-31T10:30:00.1239+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-01-31T09:30:00.123Z");
    }

    #[test]
    fn the_ends_of_the_range_are_written_with_four_digit_years() {
        assert_eq!(Timestamp::from_millis(i64::MIN).to_string(), "0000-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
    }

    proptest::proptest! {
        #[test]
        fn the_written_form_is_chronos(millis in MIN_MILLIS..=MAX_MILLIS) {
            let time = Timestamp::from_millis(millis);
            let by_chrono = DateTime::<Utc>::from(time).to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
            proptest::prop_assert_eq!(time.to_string(), by_chrono);
        }
    }

    proptest::proptest! {
        #[test]
        fn the_written_form_reads_back_by_hand(millis in MIN_MILLIS..=MAX_MILLIS, at in 0_usize..24, byte in 32_u8..127) {
            let time = Timestamp::from_millis(millis);
            proptest::prop_assert_eq!(Timestamp::read_written(&time.written()), Some(time));
            let mut changed = time.written();
            changed[at] = byte;
            if let Some(read) = Timestamp::read_written(&changed) {
                let text = std::str::from_utf8(&changed).unwrap();
                proptest::prop_assert_eq!(text.parse::<Timestamp>().ok(), Some(read), "{}", text);
            }
        }
    }

    #[test]
    fn every_month_has_its_days() {
        for year in [0, 1600, 1900, 1999, 2000, 2024, 2026, 9999] {
            for month in 0..=13 {
                for day in 0..=32 {
                    let text = format!("{year:04}-{month:02}-{day:02}T23:59:59.999Z");
                    let read = Timestamp::read_written(text.as_bytes().try_into().unwrap());
                    assert_eq!(read, text.parse().ok(), "{text}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_a_timestamp_is_refused() {
        for text in ["", "yesterday", "2026-01-31", "2026-13-01T00:00:00Z", "2026-01-31T09:30:00"] {
            assert!(text.parse::<Timestamp>().is_err(), "{text:?} was accepted");
        }
    }
}

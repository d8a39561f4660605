//! A period, divided into intervals of a common length such as an hour or a day.

use rulekeep::system::Timestamp;

/// A period, divided into intervals of equal length; the first begins at a multiple of the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    interval: Interval,
    /// The first interval's start, in milliseconds since 1970.
    start: i64,
    /// Number of intervals.
    pub(super) count: usize,
}

/// A length of time in milliseconds, and its name.
type Interval = (i64, &'static str);

impl Span {
    pub(super) fn new(from: Timestamp, to: Timestamp) -> Self {
        let length = to.as_millis().saturating_sub(from.as_millis()).max(0);
        let interval = *INTERVALS.iter().find(|(millis, _)| length / millis < MOST_INTERVALS).unwrap_or(&LONGEST);
        let start = from.as_millis().div_euclid(interval.0) * interval.0;
        let count = usize::try_from((to.as_millis() - start).max(0) / interval.0).unwrap_or(0) + 1;
        Self { from, to, interval, start, count }
    }

    /// The name of an interval's length, such as "hour".
    pub(super) const fn unit(&self) -> &'static str {
        self.interval.1
    }

    /// Returns the number of the interval that contains a moment; `None` outside the period.
    pub(super) fn place(&self, at: Timestamp) -> Option<usize> {
        if at < self.from || at > self.to {
            return None;
        }
        usize::try_from((at.as_millis() - self.start) / self.interval.0).ok()
    }

    /// Returns the start of an interval as text, only as precise as the interval is long.
    pub(super) fn label(&self, place: usize) -> String {
        let at = i64::try_from(place).unwrap_or(i64::MAX).saturating_mul(self.interval.0).saturating_add(self.start);
        let text = Timestamp::from_millis(at).to_string();
        let shown = match self.interval.0 {
            length if length < MINUTE => text.get(11..19),
            length if length < DAY => text.get(5..16),
            _ => text.get(..10),
        };
        shown.unwrap_or(&text).replace('T', " ")
    }
}

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

const INTERVALS: &[Interval] = &[
    (SECOND, "second"),
    (10 * SECOND, "10 seconds"),
    (MINUTE, "minute"),
    (10 * MINUTE, "10 minutes"),
    (HOUR, "hour"),
    (6 * HOUR, "6 hours"),
    (DAY, "day"),
    (7 * DAY, "7 days"),
    (30 * DAY, "30 days"),
    (365 * DAY, "365 days"),
];
const LONGEST: Interval = (36_525 * DAY, "100 years");
/// Largest number of intervals: more columns cannot be distinguished on a printed page.
const MOST_INTERVALS: i64 = 120;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_period_has_few_intervals_that_cover_every_moment_once() {
        for (from, to, unit) in [
            ("2026-01-31T09:30:00.500Z", "2026-01-31T09:30:00.500Z", "second"),
            ("2026-01-31T09:30:00.900Z", "2026-01-31T09:31:30.100Z", "second"),
            ("2026-01-31T09:30:00Z", "2026-01-31T10:29:00Z", "minute"),
            ("2026-01-29T00:00:00Z", "2026-01-31T00:00:00Z", "hour"),
            ("2026-01-01T00:00:00Z", "2026-03-31T23:59:59.999Z", "day"),
            ("2017-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "30 days"),
            ("0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "100 years"),
        ] {
            let span = Span::new(at(from), at(to));
            assert_eq!(span.unit(), unit, "{from}");
            assert!(span.count <= 122, "{from}: {}", span.count);
            assert_eq!((span.place(at(from)), span.place(at(to))), (Some(0), Some(span.count - 1)), "{from}");
        }
    }

    #[test]
    fn moments_outside_of_a_period_are_in_none_of_its_intervals() {
        let span = Span::new(at("2026-01-31T09:30:00Z"), at("2026-01-31T09:40:00Z"));
        assert_eq!(span.place(at("2026-01-31T09:29:59.999Z")), None);
        assert_eq!(span.place(at("2026-01-31T09:40:00.001Z")), None);
    }

    #[test]
    fn labels_are_as_fine_as_the_interval() {
        for (to, label) in [
            ("2026-01-31T09:30:09Z", "09:30:00"),
            ("2026-01-31T10:30:00Z", "01-31 09:30"),
            ("2026-03-31T00:00:00Z", "2026-01-31"),
        ] {
            assert_eq!(Span::new(at("2026-01-31T09:30:00Z"), at(to)).label(0), label);
        }
    }
}

//! Stages and amounts as people write them.

use rulekeep_fleet::order::{Mode, Stage};

use crate::times::duration;

/// A stage of a rollout: `shadow:5%:1h`, `canary:5%:4h` or `all`.
pub(super) fn stage(text: &str) -> Result<Stage, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (mode, percent, soak) = match parts.as_slice() {
        ["all"] => return Ok(Stage { mode: Mode::Enforce, percent: 100, soak_seconds: 0 }),
        ["shadow", percent, soak] => (Mode::Shadow, percent, soak),
        ["canary", percent, soak] => (Mode::Enforce, percent, soak),
        _ => return Err(STAGE.to_owned()),
    };
    let percent = percent.strip_suffix('%').and_then(|percent| percent.parse().ok());
    let percent = percent.filter(|percent| (1..=100).contains(percent)).ok_or(STAGE)?;
    Ok(Stage { mode, percent, soak_seconds: duration(soak)?.as_secs() })
}

/// A decimal number from 0 with at most six places, in millionths.
pub(super) fn millionths(text: &str) -> Result<i64, String> {
    let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let read = (is_digits(whole) && is_digits(places) && places.len() <= 6).then(|| format!("{whole}{places:0<6}"));
    let read = read.and_then(|digits| digits.parse().ok());
    read.ok_or_else(|| "expected a number from 0 with at most six decimal places, such as 5000 or 0.25".to_owned())
}

const STAGE: &str = "expected stages with a share of 1% to 100% and a time, such as shadow:5%:1h,canary:5%:4h,all";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_and_others_refused() {
        let read = |text| stage(text).map(|stage| (stage.mode, stage.percent, stage.soak_seconds));
        assert_eq!(read("shadow:5%:1h"), Ok((Mode::Shadow, 5, 3600)));
        assert_eq!(read("canary:100%:30s"), Ok((Mode::Enforce, 100, 30)));
        assert_eq!(read("all"), Ok((Mode::Enforce, 100, 0)));
        for wrong in
            ["", "all:5%:1h", "shadow", "shadow:5:1h", "shadow:0%:1h", "canary:101%:1h", "canary:5%", "canary:5%:1w"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_are_exact() {
        let cases = [("5000", 5_000_000_000), ("0.25", 250_000), ("0.000001", 1), ("9223372036854.775807", i64::MAX)];
        for (text, amount) in cases {
            assert_eq!(millionths(text), Ok(amount), "{text}");
        }
        for wrong in ["", "-1", "+1", "1e3", ".5", "5.", "0.0000001", "9223372036854.775808", "1,000"] {
            assert!(millionths(wrong).is_err(), "{wrong}");
        }
    }
}

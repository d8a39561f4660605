//! Secrets out of what the parser repeats.

/// The text with every secret in it masked, also one that was cut off at its end, or `None` if it has none.
pub(super) fn masked(text: &str, secrets: &[String]) -> Option<String> {
    let mut current: Option<String> = None;
    for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST) {
        let now = current.as_deref().unwrap_or(text);
        if now.contains(secret.as_str()) {
            current = Some(now.replace(secret.as_str(), MASK));
        } else if let Some(start) = cut_off(now, secret) {
            current = Some(format!("{}{MASK}", now.get(..start).unwrap_or("")));
        }
    }
    current
}

/// Where the text's end is the beginning of the secret, or all of the text a part of it.
fn cut_off(text: &str, secret: &str) -> Option<usize> {
    if text.len() >= SHORTEST_PART && secret.contains(text) {
        return Some(0);
    }
    let earliest = text.len().saturating_sub(secret.len());
    (earliest..text.len().saturating_sub(SHORTEST_PART - 1))
        .filter(|&start| text.is_char_boundary(start))
        .find(|&start| text.get(start..).is_some_and(|tail| secret.starts_with(tail)))
}

/// What stands in a secret's place.
pub(super) const MASK: &str = "***";
/// Shorter values are masked only where they are whole words; none is kept so short.
const SHORTEST: usize = 3;
/// Shortest part of a secret that is masked at the end of a cut text.
const SHORTEST_PART: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_whole_and_cut() {
        let secrets = ["hunter2hunter2".to_owned()];
        assert_eq!(masked("postgres://u:hunter2hunter2@db", &secrets).as_deref(), Some("postgres://u:***@db"));
        assert_eq!(masked("postgres://u:hunter2hu", &secrets).as_deref(), Some("postgres://u:***"));
        assert_eq!(masked("nothing here", &secrets), None);
    }
}

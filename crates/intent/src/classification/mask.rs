//! Replacement of known secrets in a text that the parser repeats.

/// Returns the text with every known secret masked, including one cut off at the end of the text, or `None` if it has
/// none.
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

/// The place where a cut-off secret starts: the text ends with the start of the secret, or is itself a part of it.
fn cut_off(text: &str, secret: &str) -> Option<usize> {
    if text.len() >= SHORTEST_PART && secret.contains(text) {
        return Some(0);
    }
    let earliest = text.len().saturating_sub(secret.len());
    (earliest..text.len().saturating_sub(SHORTEST_PART - 1))
        .filter(|&start| text.is_char_boundary(start))
        .find(|&start| text.get(start..).is_some_and(|tail| secret.starts_with(tail)))
}

/// The text that replaces a secret.
pub(super) const MASK: &str = "***";
/// Length of the shortest secret that is masked, in bytes.
const SHORTEST: usize = 3;
/// Length of the shortest part of a secret that is masked at the end of a cut text, in bytes.
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

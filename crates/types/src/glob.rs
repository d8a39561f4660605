//! Globs over names and paths.

/// A glob: `*` matches any run of characters, `?` any single one. Everything else matches itself, with case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glob(Box<str>);

impl Glob {
    /// Returns whether a text contains a wildcard.
    pub fn is_glob(text: &str) -> bool {
        text.contains(['*', '?'])
    }

    /// Creates a glob; runs of `*` are merged into one.
    pub fn new(text: &str) -> Self {
        let mut pattern = String::with_capacity(text.len());
        for c in text.chars() {
            if c != '*' || !pattern.ends_with('*') {
                pattern.push(c);
            }
        }
        Self(pattern.into())
    }

    /// The glob as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The literal text that every match starts with.
    pub fn literal_prefix(&self) -> &str {
        self.0.find(['*', '?']).and_then(|end| self.0.get(..end)).unwrap_or(&self.0)
    }

    /// The literal text that every match ends with.
    pub fn literal_suffix(&self) -> &str {
        self.0.rfind(['*', '?']).and_then(|start| self.0.get(start + 1..)).unwrap_or(&self.0)
    }

    /// Returns whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.fits(text, |wanted, found| wanted == '?' || wanted == found)
    }

    /// Returns whether everything that the other glob matches certainly matches this one: its `*` only by a `*`, its
    /// `?` by either.
    pub fn covers(&self, other: &Self) -> bool {
        self.fits(&other.0, |wanted, found| wanted == found || wanted == '?' && found != '*')
    }

    /// Returns whether the whole text fits, comparing single characters with `is_fit`. The worst case is the product
    /// of both lengths, because only the last `*` is ever retried.
    fn fits(&self, text: &str, is_fit: impl Fn(char, char) -> bool) -> bool {
        let (mut pattern, mut rest) = (self.0.chars(), text.chars());
        let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
        loop {
            let mut ahead = pattern.clone();
            match ahead.next() {
                Some('*') => {
                    if ahead.as_str().is_empty() {
                        return true;
                    }
                    retry = Some((ahead.clone(), rest.clone()));
                    pattern = ahead;
                    continue;
                }
                None if rest.as_str().is_empty() => return true,
                Some(wanted) => {
                    if let Some(found) = rest.next() {
                        if is_fit(wanted, found) {
                            pattern = ahead;
                            continue;
                        }
                    } else {
                        // No text is left for this character, and a retry would have even less.
                        return false;
                    }
                }
                None => {}
            }
            let Some((after_star, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            pattern = after_star.clone();
            rest = from.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn globs_match_whole_texts() {
        for (glob, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("refund_*", "refund_order", true),
            ("refund_*", "refund_", true),
            ("refund_*", "a_refund_x", false),
            ("*_user", "delete_user", true),
            ("*_user", "delete_users", false),
            ("s?nd", "send", true),
            ("s?nd", "snd", false),
            ("?", "ü", true),
            ("a*b*c", "axxbyybzzc", true),
            ("a*b*c", "axxbyybzz", false),
            ("**a", "ba", true),
            ("a?", "a", false),
        ] {
            assert_eq!(Glob::new(glob).matches(text), expected, "{glob} against {text:?}");
        }
    }

    #[test]
    fn a_glob_covers_what_is_seen_to_lie_within_it() {
        for (wide, narrow, expected) in [
            ("*", "a*", true),
            ("a*", "ab*c", true),
            ("a?c", "abc", true),
            ("a?", "a*", false),
            ("?*", "a*", true),
            ("ab*", "a*", false),
            ("*_user", "delete_*_user", true),
        ] {
            assert_eq!(Glob::new(wide).covers(&Glob::new(narrow)), expected, "{wide} over {narrow}");
        }
    }

    #[test]
    fn a_hostile_glob_ends_soon() {
        let glob = Glob::new(&"a*".repeat(64));
        assert!(!glob.matches(&format!("{}b", "a".repeat(20).repeat(3))));
        let glob = Glob::new(&format!("{}b", "*a".repeat(500)));
        assert!(!glob.matches(&"a".repeat(2_000)));
    }

    /// The slow, obvious implementation: tries every split.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|cut| slow(rest, &text[cut..])),
            Some((wanted, rest)) => {
                text.split_first().is_some_and(|(found, left)| (*wanted == '?' || wanted == found) && slow(rest, left))
            }
        }
    }

    proptest! {
        #[test]
        fn the_fast_glob_agrees_with_the_obvious_one(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(Glob::new(&pattern).matches(&text), slow(&p, &t));
        }

        #[test]
        fn a_glob_that_covers_another_matches_all_that_it_matches(wide in "[ab*?]{0,5}", narrow in "[ab*?]{0,5}", text in "[ab]{0,6}") {
            let (wide, narrow) = (Glob::new(&wide), Glob::new(&narrow));
            prop_assert!(!wide.covers(&narrow) || !narrow.matches(&text) || wide.matches(&text));
            prop_assert!(wide.covers(&wide));
        }
    }
}

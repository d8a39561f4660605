//! Actions: the normalized name of an agent's requested operation.

use std::str::FromStr;
use std::sync::Arc;

use super::InvalidValue;

/// A normalized action name in snake case, `<verb>_<noun>`, for example `send_email`.
///
/// The name starts with a lowercase letter, followed by lowercase letters, digits and underscores; at most 128 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Action(Arc<str>);

impl Action {
    /// The name of an action that the parser could not identify: `unknown_action`.
    pub fn unknown() -> Self {
        Self("unknown_action".into())
    }

    /// The name as text, for example `send_email`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The words of the name, in order: `send`, `email`.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.split('_').filter(|word| !word.is_empty())
    }
}

impl FromStr for Action {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let well_formed = text.len() <= MAX_BYTES
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if well_formed {
            Ok(Self(text.into()))
        } else {
            Err(InvalidValue::new("action", text, "snake_case that starts with a letter, for example send_email"))
        }
    }
}

crate::word::written_as_text!(Action);

/// Maximum length of an action name in bytes.
const MAX_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_snake_case_that_starts_with_a_letter() {
        for good in ["send_email", "a", "export2csv", "x_1"] {
            assert!(good.parse::<Action>().is_ok(), "{good:?} was refused");
        }
        for bad in ["", "_send", "1st", "Send_email", "send email", "sénd"] {
            assert!(bad.parse::<Action>().is_err(), "{bad:?} was accepted");
        }
    }
}

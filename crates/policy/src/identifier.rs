//! The ids of rules and alerts, and the maximum length of names.

use rulekeep_types::document::{Fields, Node, Report};

/// Reads the id of a rule or an alert.
pub(super) fn id(fields: &mut Fields, what: &str, report: &mut Report<'_>) -> Option<String> {
    let at = fields.place("id");
    let id = fields.required_line("id", MAX_ID_CHARS, report)?;
    if is_id(&id) {
        return Some(id);
    }
    let expected = "lower-case letters, digits and . _ - that start with a letter or digit";
    report.error(at.unwrap_or(fields.at), "id", format!("{id:?} is not a valid {what} id: expected {expected}"));
    None
}

/// The id of a rule or alert whose fields have not been read yet, if it is well formed.
pub(super) fn well_formed_id(node: &Node) -> Option<&str> {
    node.text_of("id").filter(|id| is_id(id))
}

fn is_id(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= MAX_ID_CHARS
        && text.starts_with(is_start)
        && text.chars().all(|c| is_start(c) || matches!(c, '.' | '_' | '-'))
}

const MAX_ID_CHARS: usize = 128;
/// Maximum length of a set's name and of a reviewer's name, in characters.
pub(super) const MAX_NAME_CHARS: usize = 128;

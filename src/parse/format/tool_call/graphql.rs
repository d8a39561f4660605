//! GraphQL in an argument: what its mutations are called says what they do.

use crate::model::{Operation, Resource};
use crate::parse::lexicon::Lexicon;
use crate::parse::reading::Act;
use crate::parse::sign::Sign;

use super::super::name;

/// The fields of a document's mutations, first-level ones alone; none where the text holds no mutation.
pub(super) fn mutations(text: &str) -> Option<Vec<&str>> {
    let is_mutation = |token: &str| token == "mutation";
    if !text.contains("mutation") || !text.contains('{') {
        return None;
    }
    let (mut depth, mut brackets, mut mutates, mut found) = (0_usize, 0_usize, false, None::<Vec<&str>>);
    let mut tokens = tokens(text).peekable();
    while let Some(token) = tokens.next() {
        match token {
            "(" => brackets += 1,
            ")" => brackets = brackets.saturating_sub(1),
            _ if brackets > 0 => {}
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                // Each operation of a document opens with its kind; its name and variables stand before the brace.
                if is_mutation(token) || matches!(token, "query" | "subscription" | "fragment") {
                    mutates = is_mutation(token);
                }
                if mutates {
                    found.get_or_insert_default();
                }
            }
            // "alias: field" is the field.
            _ if depth == 1 && mutates && token.starts_with(is_letter) && tokens.peek() != Some(&":") => {
                found.get_or_insert_default().push(token);
            }
            _ => {}
        }
    }
    found.filter(|_| opens_as_document(text)).map(|mut fields| {
        fields.truncate(MOST_FIELDS);
        if fields.is_empty() {
            fields.push("mutation");
        }
        fields
    })
}

/// What a mutation does, by its name; one that says nothing changes something all the same.
pub(super) fn act(field: &str, lexicon: &Lexicon) -> Act {
    let changes = |act: &Act| !matches!(act.operation, Operation::Read | Operation::Unknown);
    name::of_tool(field, lexicon).into_iter().find(changes).unwrap_or_else(|| {
        Act::new("change", "record", Resource::Database, Operation::Write, 0.5).told_by(field).marked(Sign::Unclear)
    })
}

/// A document opens with an operation or a fragment; prose that speaks of a mutation does not.
fn opens_as_document(text: &str) -> bool {
    tokens(text).next().is_some_and(|first| matches!(first, "mutation" | "query" | "subscription" | "fragment" | "{"))
}

/// Names and marks; what stands in quotation marks or behind `#` is none.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            let first = rest.chars().next()?;
            let length = match first {
                '#' => rest.find('\n').unwrap_or(rest.len()),
                '"' => rest.get(1..)?.find('"').map_or(rest.len(), |end| end + 2),
                c if is_letter(c) => rest.find(|c: char| !is_letter(c) && !c.is_ascii_digit()).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            let (token, after) = rest.split_at_checked(length)?;
            rest = after;
            if !matches!(first, '#' | '"') {
                return Some(token);
            }
        }
    })
}

const fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Mutations of one document that are read.
const MOST_FIELDS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fields_of_mutations_are_found() {
        for (text, expected) in [
            ("mutation { deleteUser(id: 1) { id } }", Some("deleteUser")),
            (
                "mutation Drop($id: ID!) { gone: deleteUser(id: $id) { id } addTag(name: \"}\") }",
                Some("deleteUser addTag"),
            ),
            ("# look\nquery A { a } mutation B { removeB }", Some("removeB")),
            ("query { mutation }", None),
            ("what is a mutation { of a gene }", None),
            ("mutation", None),
        ] {
            assert_eq!(mutations(text).map(|fields| fields.join(" ")).as_deref(), expected, "{text}");
        }
    }
}

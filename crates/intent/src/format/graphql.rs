//! GraphQL documents: the names of the operations' fields say what they do.

/// The top-level fields of a document's operations, each with whether it belongs to a mutation.
#[derive(Default)]
pub(super) struct Document<'t> {
    pub fields: Vec<(bool, &'t str)>,
    mutates: bool,
}

impl<'t> Document<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let mut document = Self::default();
        let (mut depth, mut brackets, mut mutates, mut in_fragment) = (0_usize, 0_usize, false, false);
        let mut tokens = tokens(text).peekable();
        while let Some(token) = tokens.next() {
            match token {
                "(" => brackets += 1,
                ")" => brackets = brackets.saturating_sub(1),
                _ if brackets > 0 => {}
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        (mutates, in_fragment) = (false, false);
                    }
                }
                // Each operation starts with its kind; its name and variables precede the brace.
                "mutation" | "query" | "subscription" if depth == 0 => {
                    (mutates, in_fragment) = (token == "mutation", false);
                    document.mutates |= mutates;
                }
                "fragment" if depth == 0 => in_fragment = true,
                // "alias: field" calls the field.
                _ if depth == 1 && !in_fragment && token.starts_with(is_letter) && tokens.peek() != Some(&":") => {
                    document.fields.push((mutates, token));
                    if document.fields.len() >= MOST_FIELDS {
                        break;
                    }
                }
                _ => {}
            }
        }
        document
    }
}

/// The fields of a document's mutations; `None` if the text is not a document with a mutation.
pub(super) fn mutations(text: &str) -> Option<Vec<&str>> {
    if !text.contains("mutation") || !is_document(text) {
        return None;
    }
    let document = Document::of(text);
    let mut fields: Vec<&str> =
        document.fields.iter().filter(|(mutates, _)| *mutates).map(|&(_, field)| field).collect();
    if fields.is_empty() {
        fields.push("mutation");
    }
    document.mutates.then_some(fields)
}

/// Returns whether a text starts with an operation or a fragment. JSON, and prose about mutations, do not.
pub(super) fn is_document(text: &str) -> bool {
    let mut tokens = tokens(text);
    match tokens.next() {
        Some("mutation" | "query" | "subscription" | "fragment") => text.contains('{'),
        Some("{") => tokens.next().is_some_and(|second| second.starts_with(is_letter)),
        _ => false,
    }
}

/// Names and marks, without quoted text and `#` comments.
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

/// Maximum number of fields read from one document.
const MOST_FIELDS: usize = 64;

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

    #[test]
    fn graphql_is_read_to_its_first_level() {
        let found = Document::of(
            "query A { users(first: 3, name: \"} mutation {\") { id } } mutation B($x: Int) { a: deleteUser(id: $x) { id } add }",
        );
        assert_eq!(found.fields, [(false, "users"), (true, "deleteUser"), (true, "add")]);
    }
}

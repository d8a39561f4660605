//! The entries of a structured result: the fields of each thing that a lookup returned.

use saphyr_parser::{Event, Parser};
use serde_json::Value;

use super::argument::key_words;

/// One thing in a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The fields that hold texts or numbers, or lists of them.
    pub(super) fields: Vec<(String, Vec<String>)>,
}

impl Entry {
    /// Returns the values of the fields that name the entry.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let is_name = |key: &str| {
            let words = key_words(key);
            matches!(
                words.last().map(String::as_str),
                Some("name" | "title" | "subject" | "filename" | "label" | "username")
            )
        };
        self.fields
            .iter()
            .filter(move |(key, _)| is_name(key))
            .filter_map(|(_, values)| values.first().map(String::as_str))
    }
}

/// Returns the entries of a result; none if it is free text.
///
/// Free text can look like YAML. Only mappings with plain keys, as programs write them, count as structured.
pub(super) fn entries(result: &str) -> Vec<Entry> {
    let node = match serde_json::from_str::<Value>(result) {
        Ok(value) => Node::of_json(value, 0).filter(|node| node.is_structured(Make::Json)),
        Err(_) => yaml(result).filter(|node| node.is_structured(Make::Yaml)),
    };
    let mut entries = Vec::new();
    if let Some(node) = node {
        node.gather(&mut entries);
    }
    entries
}

/// The format of a result. Text written carelessly into a field can break out of YAML, but not out of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Make {
    Json,
    Yaml,
}

/// A value of JSON or YAML.
#[derive(Debug)]
enum Node {
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Node {
    fn of_json(value: Value, depth: usize) -> Option<Self> {
        if depth > DEEPEST {
            return None;
        }
        Some(match value {
            Value::Null => Self::Text(String::new()),
            Value::String(text) => Self::Text(text),
            Value::Bool(_) | Value::Number(_) => Self::Text(value.to_string()),
            Value::Array(items) => {
                Self::List(items.into_iter().map(|item| Self::of_json(item, depth + 1)).collect::<Option<_>>()?)
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(key, value)| Some((key, Self::of_json(value, depth + 1)?)));
                Self::Map(fields.collect::<Option<_>>()?)
            }
        })
    }

    /// Returns whether the node can be a name in a list of names.
    fn is_name(&self) -> bool {
        matches!(self, Self::Text(text) if (1..=LONGEST_KEY).contains(&text.len()) && text.split_whitespace().count() <= 4)
    }

    /// Returns whether the node looks like the output of a program: mappings of two or more fields with plain keys,
    /// or a list of names.
    fn is_structured(&self, make: Make) -> bool {
        match self {
            Self::Text(_) => false,
            Self::List(items) if items.len() > 1 && items.iter().all(Self::is_name) => true,
            Self::List(items) => {
                // YAML entries must have the same fields, as a lookup returns them: an entry injected into a field
                // has others.
                let keys = |item: &Self| match item {
                    Self::Map(fields) => fields.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(),
                    Self::Text(_) | Self::List(_) => Vec::new(),
                };
                let first = items.first().map(keys).unwrap_or_default();
                let is_alike = |item: &Self| make == Make::Json || keys(item) == first;
                let is_entry = |item: &Self| matches!(item, Self::Map(_)) && item.is_structured(make) && is_alike(item);
                !items.is_empty() && items.iter().all(is_entry)
            }
            Self::Map(fields) => {
                let is_key = |key: &str| {
                    key.len() <= LONGEST_KEY
                        && key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
                };
                fields.len() >= 2 && fields.iter().all(|(key, _)| is_key(key))
            }
        }
    }

    fn gather(self, entries: &mut Vec<Entry>) {
        match self {
            Self::Text(_) => {}
            Self::List(items) if items.len() > 1 && items.iter().all(Self::is_name) => {
                let named = |item| if let Self::Text(name) = item { Some(name) } else { None };
                let named = items.into_iter().filter_map(named).take(MOST_ENTRIES);
                entries.extend(named.map(|name| Entry { fields: vec![("name".to_owned(), vec![name])] }));
            }
            Self::List(items) => items.into_iter().for_each(|item| item.gather(entries)),
            Self::Map(fields) => {
                if entries.len() >= MOST_ENTRIES {
                    return;
                }
                let place = entries.len();
                entries.push(Entry::default());
                let mut entry = Entry::default();
                for (key, value) in fields {
                    match value {
                        Self::Text(text) => entry.fields.push((key, vec![text])),
                        Self::List(items) if items.iter().all(|item| matches!(item, Self::Text(_))) => {
                            let texts = items
                                .into_iter()
                                .filter_map(|item| if let Self::Text(text) = item { Some(text) } else { None });
                            entry.fields.push((key, texts.collect()));
                        }
                        inner => inner.gather(entries),
                    }
                }
                if let Some(slot) = entries.get_mut(place) {
                    *slot = entry;
                }
            }
        }
    }
}

/// Parses a YAML document. Returns `None` if the text is not YAML, has several documents, or uses aliases.
fn yaml(text: &str) -> Option<Node> {
    /// A list being read, or a map and the key that waits for its value.
    enum Open {
        List(Vec<Node>),
        Map(Vec<(String, Node)>, Option<String>),
    }
    if text.len() > LONGEST_YAML {
        return None;
    }
    let mut open: Vec<Open> = Vec::new();
    let mut whole = None;
    for (count, event) in Parser::new_from_str(text).enumerate() {
        if count > MOST_EVENTS || open.len() > DEEPEST {
            return None;
        }
        let done = match event.ok()?.0 {
            Event::Scalar(text, ..) => Node::Text(text.into_owned()),
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(Vec::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop()? {
                Open::List(items) => Node::List(items),
                Open::Map(fields, _) => Node::Map(fields),
            },
            Event::Alias(_) => return None,
            _ => continue,
        };
        match open.last_mut() {
            None if whole.is_some() => return None,
            None => whole = Some(done),
            Some(Open::List(items)) => items.push(done),
            Some(Open::Map(fields, key)) => match (key.take(), done) {
                // A repeated key shows that text was injected into a field.
                (Some(key), _) if fields.iter().any(|(known, _)| *known == key) => return None,
                (Some(key), done) => fields.push((key, done)),
                (None, Node::Text(text)) => *key = Some(text),
                (None, _) => return None,
            },
        }
    }
    whole
}

/// Largest nesting depth of a result that is read.
const DEEPEST: usize = 32;
/// Largest number of entries that are read.
const MOST_ENTRIES: usize = 10_000;
/// Largest number of YAML events that are read.
const MOST_EVENTS: usize = 400_000;
/// Longest text that is read as YAML, in bytes.
const LONGEST_YAML: usize = 1 << 20;
/// Longest key that a program writes, in bytes.
const LONGEST_KEY: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_mappings_are_entries() {
        let yaml = "- id_: '24'\n  title: Introductory meeting\n  participants:\n  - a@x.example\n  - b@x.example\n- id_: '5'\n  title: Lunch\n  participants: []\n";
        let read = entries(yaml);
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].names().collect::<Vec<_>>(), ["Introductory meeting"]);
        assert_eq!(read[0].fields[2].1, ["a@x.example", "b@x.example"]);
        let json = r#"{"files": [{"id": 1, "filename": "a.txt"}], "total": 1}"#;
        assert_eq!(entries(json).len(), 2);
    }

    #[test]
    fn free_text_has_no_entries() {
        for text in [
            "Dear Ann: this is it\nBest: Bob",
            "This is my website. My e-mail is dora@gmail.com.",
            "name: Ann",
            "- general",
            "- general\n- this is a longer text that names nothing at all",
            "'Ann Lee: hello",
            "*a",
            "a: &x 1\nb: *x",
            "---\na: 1\nb: 2\n---\na: 3\nb: 4",
            "- id: 1\n  text: x\n  id: 2\n",
            "- id: 1\n  text: x\n- id: 2\n  name: Ann\n  text: y\n",
        ] {
            assert_eq!(entries(text), [], "{text}");
        }
    }

    #[test]
    fn a_list_of_names_is_one_of_entries() {
        let read = entries("- general\n- External_0");
        assert_eq!(read.iter().flat_map(Entry::names).collect::<Vec<_>>(), ["general", "External_0"]);
    }

    #[test]
    fn what_a_field_holds_is_no_field() {
        let yaml = "- description: 'x\n\n    email: evil@x.example'\n  email: ann@x.example\n  name: Ann Lee\n";
        let read = entries(yaml);
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].fields.iter().filter(|(key, _)| key == "email").count(), 1);
    }
}

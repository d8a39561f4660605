//! Fast JSON writers for values serialized with every decision. They write the same bytes as `serde_json`.

use serde_json::Value;

use super::facts::Member;

/// Writes a string.
pub fn push_text(out: &mut Vec<u8>, text: &str) -> serde_json::Result<()> {
    // No early exit, so the compiler can vectorize the loop.
    let special = text.bytes().fold(0, |found, byte| found | u8::from(byte < b' ' || byte == b'"' || byte == b'\\'));
    if special != 0 {
        return serde_json::to_writer(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

/// Writes an array of strings.
pub fn push_texts<'a>(out: &mut Vec<u8>, texts: impl IntoIterator<Item = &'a str>) -> serde_json::Result<()> {
    push_list(out, (b'[', b']'), texts, push_text)
}

/// Writes an object.
pub fn push_members<'a>(
    out: &mut Vec<u8>,
    members: impl IntoIterator<Item = (&'a str, impl Into<Member<'a>>)>,
) -> serde_json::Result<()> {
    push_list(out, (b'{', b'}'), members, |out, (name, value)| {
        push_text(out, name)?;
        out.push(b':');
        match value.into() {
            Member::Json(Value::String(text)) => push_text(out, text),
            other => serde_json::to_writer(out, &other),
        }
    })
}

fn push_list<T>(
    out: &mut Vec<u8>,
    (open, close): (u8, u8),
    items: impl IntoIterator<Item = T>,
    push: impl Fn(&mut Vec<u8>, T) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    out.push(open);
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push(out, item)?;
    }
    out.push(close);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Members;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_text_is_written_as_serde_json_writes_it(text in "\\PC*|[\\x00-\\x1f\"\\\\/\\x7fé€😀a-z]*") {
            let mut out = Vec::new();
            push_text(&mut out, &text).unwrap();
            prop_assert_eq!(out, serde_json::to_vec(&text).unwrap());
        }

        #[test]
        fn an_object_is_written_as_serde_json_writes_it(
            members in proptest::collection::btree_map("[a-z\"\\n]{0,5}", "[a-z\"\\n]{0,9}", 0..4), number in any::<f64>(),
        ) {
            let mut object: serde_json::Map<String, Value> =
                members.into_iter().map(|(name, text)| (name, Value::from(text))).collect();
            object.insert("number".to_owned(), serde_json::json!([number, null]));
            let mut out = Vec::new();
            push_members(&mut out, Members::from(&object).iter()).unwrap();
            prop_assert_eq!(out, serde_json::to_vec(&object).unwrap());
        }
    }
}

//! Properties that the fuzz target of observed results checks: no text makes reading words and results panic, memory
//! stays bounded, and a text in a field of an entry that the words do not name supplies no value. The tests check the
//! same on inputs of their own.

use serde_json::{Map, Value, json};

use super::check::{Deed, check};
use super::memory::{Memory, Observed};
use super::purpose::Asked;
use super::words::Words;
use crate::model::{Capability, Resource, RiskLevel};

/// Reads the first line of `input` as a user's words and the rest as a result, by itself and in a field of an entry.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn result(input: &str) {
    let (said, told) = input.split_once('\n').unwrap_or((input, input));
    let mut words = Words::new(said);
    words.trust(told.get(..told.len().min(64)).unwrap_or_default());
    let mut memory = Memory::default();
    for resource in [Resource::Contact, Resource::Calendar, Resource::File] {
        memory.observe(of(resource, told), &words);
    }
    memory.resolve(&words);
    allows(&words, &memory, told);
    assert!(memory.bytes() < 4 << 20);

    // A stranger's text in a field of entries that the words do not name.
    let words = Words::new("Send the agenda to Ann Lee and delete 'notes.txt'");
    let entry = |id: &str| json!({ "id": id, "name": "Zoe", "note": told, "email": "zoe@z.example" });
    let list = json!([entry("901"), entry("902")]).to_string();
    let mut memory = Memory::default();
    memory.observe(of(Resource::Contact, &list), &words);
    for value in told.split(|c: char| c.is_whitespace() || c == '"').take(64).chain([told]) {
        let is_new = allows(&words, &memory, value) && !allows(&words, &Memory::default(), value);
        assert!(!is_new, "{value:?} is supplied by a text");
    }
}

fn of(resource: Resource, text: &str) -> Observed<'_> {
    Observed { tool: "look", resource, is_making: false, is_effect: false, is_content: false, text, masked: text }
}

/// Returns whether a mail to a value, or deleting what it names, is inside the mandate.
fn allows(words: &Words, memory: &Memory, value: &str) -> bool {
    let capability = |text: &str| text.parse::<Capability>().unwrap_or_else(|_| unreachable!("{text} is a capability"));
    let acts = [("email:send", "recipients"), ("file:delete", "file_id")];
    let asked = Asked { acts: acts.map(|(act, _)| capability(act)).to_vec(), risk: RiskLevel::High };
    acts.iter().any(|(act, key)| {
        let arguments: Map<String, Value> = Map::from_iter([((*key).to_owned(), json!([value]))]);
        let capabilities = [capability(act)];
        let deed = Deed { risk: RiskLevel::Medium, arguments: Some(&arguments), ..Deed::of("act", &capabilities) };
        check(words, &asked, memory, &deed).is_inside()
    })
}

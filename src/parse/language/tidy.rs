//! What stands in for something unnamed gives way to what is named.

use crate::model::{Operation, Resource};
use crate::parse::reading::Act;

/// Drops the guesses that add nothing to the acts beside them. What could do harm stays, guessed or not.
pub(super) fn drop_guesses(acts: &mut Vec<Act>) {
    let names_something = acts.iter().any(|act| !act.guess);
    if names_something {
        acts.retain(|act| {
            !act.guess || !matches!(act.operation, Operation::Read | Operation::Write | Operation::Unknown)
        });
    }
    // "Parse and run a script": the look is a part of what is done.
    let runs: Vec<(Resource, String)> = acts
        .iter()
        .filter(|act| act.operation == Operation::Execute)
        .map(|act| (act.resource, act.noun.clone()))
        .collect();
    acts.retain(|act| {
        act.operation != Operation::Read
            || !runs.iter().any(|(resource, noun)| *resource == act.resource && *noun == act.noun)
    });
    // "Give me the time, based on my emails": the answer is what the private read is for.
    let reads_private = acts.iter().any(|act| act.operation == Operation::Read && is_private(act.resource));
    if reads_private {
        acts.retain(|act| act.operation != Operation::Read || act.resource != Resource::Information);
    }
}

fn is_private(resource: Resource) -> bool {
    matches!(
        resource,
        Resource::Email
            | Resource::Message
            | Resource::Calendar
            | Resource::File
            | Resource::Document
            | Resource::Contact
    )
}

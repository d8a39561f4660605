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
    // "Give me the time, based on my emails": the answer is what the private read is for.
    let reads_private = acts.iter().any(|act| act.operation == Operation::Read && is_private(act.resource));
    if reads_private {
        acts.retain(|act| act.operation != Operation::Read || act.resource != Resource::Information);
    }
}

fn is_private(resource: Resource) -> bool {
    matches!(
        resource,
        Resource::Email | Resource::Message | Resource::Calendar | Resource::File | Resource::Document | Resource::Contact
    )
}

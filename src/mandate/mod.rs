//! The mandate engine: whether a call serves what the user asked, with values that came from a legitimate place.
//!
//! It takes in the user's words and the values that the runtime vouches for ([`Words`]), the results that were observed
//! under the task ([`Memory`]), and a call as the parser read it ([`Deed`]). It hands out a [`Finding`]: inside the
//! mandate, to be endorsed by a person, or outside it. It is a pure function of these. It promises that a call is inside
//! only if it serves an act that the words ask for, and if each critical value stands in the words, is vouched for, or is
//! the id or address of an entry that the words name; that values are compared in one normal form and never by
//! likeness; and that observing results can only ever resolve such entries.
//!
//! | file | subject |
//! |---|---|
//! | `text.rs` | the normal forms of values |
//! | `words.rs` | what the user's words and the trusted values say |
//! | `argument.rs` | the values of a call, and which of them are critical |
//! | `entries.rs` | the entries of a structured result |
//! | `memory.rs` | results observed under a task |
//! | `purpose.rs` | whether a call serves the request |
//! | `check.rs` | the finding on a call |

mod argument;
mod check;
mod entries;
mod memory;
mod purpose;
mod text;
mod words;

// Public for the fuzz target, which is shown nowhere but there.
#[cfg(any(test, fuzzing))]
#[cfg_attr(not(fuzzing), allow(unreachable_pub))]
pub mod fuzzing;
#[cfg(test)]
mod tests;

pub(crate) use argument::Part;
pub(crate) use check::{Deed, Fault, FaultKind, Finding, Origin, check};
pub(crate) use memory::{Memory, Observed, is_address_book};
pub(crate) use purpose::{Asked, Fit};
pub(crate) use words::Words;

//! The mandate engine: decides whether a call serves the user's request, with values from legitimate sources.
//!
//! Its inputs are the user's words and the trusted values ([`Words`]), the results observed under the task
//! ([`Memory`]), and a parsed call ([`Deed`]). Its output is a [`Finding`]: the call is inside the mandate, needs a
//! reviewer's endorsement, or is outside. It is a pure function of these inputs. A call is inside only if it serves
//! an act that the words ask for, and if each critical value is in the words, is trusted, or is the ID or address of
//! an entry that the words name. Values are compared in one normal form, never by similarity. Observed results can
//! only resolve such entries.
//!
//! | file | subject |
//! |---|---|
//! | `text.rs` | the normal forms of values |
//! | `words.rs` | the values in the user's words, and the trusted values |
//! | `argument.rs` | the values of a call, and which of them are critical |
//! | `entries.rs` | the entries of a structured result |
//! | `memory.rs` | results observed under a task |
//! | `order.rs` | orders to the agent in observed results |
//! | `purpose.rs` | whether a call serves the request |
//! | `check.rs` | the finding on a call |
//! | `area.rs` | the finding on a call of a host's own tools, by what leaves the work area |
//! | `naming.rs` | whether the words name an effect that leaves |

mod area;
mod argument;
mod check;
mod entries;
mod memory;
mod naming;
mod order;
mod purpose;
mod text;
mod words;

// Public for the fuzz target only.
#[cfg(any(test, fuzzing))]
#[cfg_attr(not(fuzzing), allow(unreachable_pub))]
pub mod fuzzing;
#[cfg(test)]
mod tests;

pub(crate) use area::{Area, check_acts};
pub(crate) use argument::Part;
pub(crate) use check::{Deed, Fault, FaultKind, Finding, Origin, check};
pub(crate) use memory::{Memory, Observed, is_address_book};
pub(crate) use order::Order;
pub(crate) use purpose::{Asked, Fit};
pub(crate) use words::Words;

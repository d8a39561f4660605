//! The code that a request runs, as far as a run of it can be confined.

use rulekeep_types::Operation;
use rulekeep_types::facts::{Act, Cause, Facts, Kind, Open, Operand, Role};

use crate::Error;
use crate::table::table;

/// Code in a request whose effects no text shows, as far as a run of it can be confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Code that needs nothing but its folder.
    Alone,
    /// Code that serves others on this machine, and needs its network.
    Serving,
}

impl Code {
    /// The code that a request runs; `None` if it runs none, or if a program of the request talks to others.
    ///
    /// # Errors
    ///
    /// [`Error::Profile`] if the table of tools does not load.
    pub fn of(facts: &Facts) -> Result<Option<Self>, Error> {
        let table = table()?;
        let only_reads = |act: &Act| act.does.iter().all(|does| does.capability.operation() == Some(Operation::Read));
        let is_vcs = |act: &Act| runs(act, &["git"]) && !act.leaves;
        let is_outgoing = |act: &Act| {
            let is_sent = |operand: &Operand| operand.kind == Kind::Recipient && operand.role != Role::Named;
            act.leaves
                || runs(act, &table.outgoing) && !only_reads(act) && !is_vcs(act)
                || act.operands.iter().any(is_sent)
        };
        let is_code = |act: &Act| {
            let is_hidden = |open: &Open| matches!(open.cause, Cause::Folder | Cause::Execution);
            act.open.iter().any(is_hidden) && !runs(act, &table.outgoing)
        };
        if !facts.acts.iter().any(is_code) || facts.acts.iter().any(is_outgoing) {
            return Ok(None);
        }
        let serves = |act: &Act| {
            let script = |word: &str| word.split(':').any(|part| table.scripts.iter().any(|known| known == part));
            let mut words = act.command.iter().flat_map(|command| command.split_whitespace().skip(1));
            runs(act, &table.serving) || runs(act, &table.runners) && words.by_ref().take(WORDS_OF_A_SCRIPT).any(script)
        };
        Ok(Some(if facts.acts.iter().any(serves) { Self::Serving } else { Self::Alone }))
    }
}

/// Returns whether an act runs one of the programs.
pub(crate) fn runs(act: &Act, programs: &[impl AsRef<str>]) -> bool {
    let is_one = |command: &String| {
        let name = command.split_whitespace().next().and_then(|program| program.rsplit('/').next());
        name.is_some_and(|name| programs.iter().any(|known| known.as_ref() == name))
    };
    act.commands.iter().chain(&act.command).any(is_one)
}

/// Number of words after a runner among which one may be the name of a script.
const WORDS_OF_A_SCRIPT: usize = 2;

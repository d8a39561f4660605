//! Export and import of agents as lines of JSON.

use std::io::{BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use crate::governor::Roster;
use crate::governor::roster::agents::Agents;
use crate::model::{
    Agent, AgentId, AgentImport, AgentProfile, AgentState, Error, Score, Sequence, Tier, Timestamp, TrustSnapshot,
};
use crate::trust::{AgentRecord, TrustState};

impl Agents<'_> {
    /// Exports every registered agent, sorted by id: a manifest line, then one line of JSON per agent with its profile,
    /// state and current score. The trust history stays in the log. Returns the number of agents.
    ///
    /// ```
    /// use rulekeep::{Agent, Governor};
    ///
    /// let here = Governor::builder().open_in_memory()?;
    /// here.agents().register(Agent::new("support-1").owned_by("ann"))?;
    /// let mut lines = Vec::new();
    /// here.agents().export(&mut lines)?;
    ///
    /// let there = Governor::builder().open_in_memory()?;
    /// assert_eq!(there.agents().import(&mut lines.as_slice())?.registered, 1);
    /// assert_eq!(there.agents().get("support-1")?.owner.as_deref(), Some("ann"));
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when `out` cannot be written.
    pub fn export(self, out: &mut dyn Write) -> Result<u64, Error> {
        let now = self.inner.here()?.base.clock.now();
        let cells = self.inner.roster.ledger.all();
        let count = cells.len() as u64;
        let mut write = |line: Result<String, serde_json::Error>| {
            let line = line.map_err(|error| Error::internal("an agent cannot be serialized").caused_by(error))?;
            writeln!(out, "{line}").map_err(|error| Error::storage("cannot write the agents").caused_by(error))
        };
        let manifest = Manifest { rulekeep_agents: FORMAT, agents: Some(count), exported_at: Some(now) };
        write(serde_json::to_string(&manifest))?;
        for cell in cells {
            let agent = cell.read();
            let TrustSnapshot { score, tier, .. } = self.inner.roster.trust_of(&agent, now);
            let line = Line {
                agent_id: agent.agent_id.to_string(),
                score,
                tier: Some(tier),
                state: agent.state,
                profile: agent.profile().clone(),
            };
            drop(agent);
            write(serde_json::to_string(&line))?;
        }
        Ok(count)
    }

    /// Imports the agents of an export that are not registered here; registered ones stay unchanged and are counted.
    /// Scores are imported, trust histories are not. The log records the import.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] at the first invalid line, with its number; [`Error::StorageUnavailable`] when an agent
    /// cannot be recorded. Agents imported before the error remain.
    pub fn import(self, from: &mut dyn BufRead) -> Result<AgentImport, Error> {
        self.inner.here()?.base.log.wait_verified()?;
        let mut last = None;
        let imported = self.inner.roster.import_lines(from, &mut last);
        if let Some(sequence) = last {
            self.inner.base.log.settle(sequence)?;
        }
        imported
    }
}

impl Roster {
    fn import_lines(&self, from: &mut dyn BufRead, last: &mut Option<Sequence>) -> Result<AgentImport, Error> {
        let mut lines = Lines { from, number: 0, text: String::new() };
        let Some(manifest) = lines.next()? else { return Err(lines.wrong("is missing: expected the manifest")) };
        let manifest: Manifest = serde_json::from_str(manifest).map_err(|error| lines.wrong(&error.to_string()))?;
        if manifest.rulekeep_agents != FORMAT {
            return Err(lines.wrong(&format!("expected format {FORMAT}, found {}", manifest.rulekeep_agents)));
        }
        let mut import = AgentImport::default();
        while let Some(line) = lines.next()? {
            let at = self.base.clock.now();
            let record = read(self, line, at).map_err(|why| lines.wrong(&why))?;
            match self.put_in(record, "imported", at)? {
                (_, None) => import.skipped += 1,
                (_, entry) => {
                    *last = entry;
                    import.registered += 1;
                }
            }
        }
        let found = import.registered + import.skipped;
        match manifest.agents {
            Some(expected) if expected != found => {
                Err(lines.wrong(&format!("is the end: expected {expected} agents, found {found}")))
            }
            _ => Ok(import),
        }
    }
}

/// The manifest line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    /// The version of the format.
    rulekeep_agents: u32,
    /// Number of agents that follow, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agents: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exported_at: Option<Timestamp>,
}

/// The line of an agent.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    agent_id: String,
    score: Score,
    /// The tier in force, if it is below the score's own.
    #[serde(default)]
    tier: Option<Tier>,
    state: AgentState,
    #[serde(flatten)]
    profile: AgentProfile,
}

/// Reads an agent from a line, with the checks of a registration.
fn read(roster: &Roster, line: &str, at: Timestamp) -> Result<AgentRecord, String> {
    let Line { agent_id, score, tier, state, profile } =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let (agent_id, score, profile): (AgentId, Score, AgentProfile) =
        Agent::of(agent_id, score, profile).validated().map_err(|error| error.to_string())?;
    roster.checked_score(score, &profile).map_err(|error| error.to_string())?;
    let mut trust = TrustState::new(score, at);
    trust.tier = tier.map_or(trust.tier, |tier| tier.min(trust.tier));
    Ok(AgentRecord::new(agent_id, state, profile, trust))
}

struct Lines<'a> {
    from: &'a mut dyn BufRead,
    number: u64,
    text: String,
}

impl Lines<'_> {
    /// The next line that is not blank.
    fn next(&mut self) -> Result<Option<&str>, Error> {
        loop {
            self.text.clear();
            self.number += 1;
            let read = (&mut *self.from).take(LONGEST_LINE).read_line(&mut self.text);
            match read {
                Err(error) => return Err(self.wrong(&error.to_string())),
                Ok(0) => return Ok(None),
                Ok(length) if length as u64 == LONGEST_LINE && !self.text.ends_with('\n') => {
                    return Err(self.wrong(&format!("expected a line of less than {LONGEST_LINE} bytes")));
                }
                Ok(_) if self.text.trim().is_empty() => {}
                Ok(_) => return Ok(Some(self.text.trim())),
            }
        }
    }

    fn wrong(&self, why: &str) -> Error {
        Error::input("agents", format!("line {}: {why}", self.number))
    }
}

/// The version of the format.
const FORMAT: u32 = 1;
/// No agent that can be registered needs a longer line.
const LONGEST_LINE: u64 = 1 << 20;

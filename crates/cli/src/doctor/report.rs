//! The report of the doctor: a verdict for each host, its findings, and a cell for each fault.

use std::fmt::{self, Write as _};

use serde::Serialize;

use super::model::Fault;
use crate::hook::event::Host;

/// The result of examining one host.
#[derive(Debug)]
pub struct Report {
    /// The examined host.
    pub host: Host,
    /// The verdict on the host.
    pub verdict: Verdict,
    /// The reasons against a green verdict.
    pub findings: Vec<Finding>,
    /// The host's treatment of a call under each fault.
    pub cells: Vec<Cell>,
    /// The tools, and whether the probe of each was refused.
    pub probes: Vec<(String, bool)>,
}

/// The verdict on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every probe was refused, and nothing keeps the host from running the hook.
    Green,
    /// The host may skip the hook, and it cannot be observed whether it does.
    NotProven,
    /// A probe got through, or the host skips the hook.
    Red,
}

/// A reason against a green verdict.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The fault that the finding is an instance of.
    pub fault: Fault,
    /// The best verdict that is possible with this finding.
    pub verdict: Verdict,
    /// Description of the finding.
    pub text: String,
    /// Description of the remedy.
    pub remedy: String,
}

/// The host's treatment of a call under a fault.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// The fault that the cell is about.
    pub fault: Fault,
    /// The host's treatment of the call.
    pub state: State,
    /// Description of the remedy if the call may run; otherwise empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// The host's treatment of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The call does not run.
    Blocked,
    /// The host runs the call.
    Runs,
    /// The fault cannot happen on this host.
    Impossible,
    /// The treatment cannot be observed.
    NotProven,
}

impl Report {
    /// Returns the report as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let probes: Vec<_> =
            self.probes.iter().map(|(tool, refused)| serde_json::json!({"tool": tool, "refused": refused})).collect();
        serde_json::json!({
            "host": self.host.name(), "verdict": self.verdict, "findings": self.findings, "probes": probes,
            "cells": self.cells,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = self.probes.iter().filter(|(_, refused)| *refused).count();
        let host = self.host.name();
        writeln!(out, "{host}: {} ({refused} of {} probes refused)", self.verdict, self.probes.len())?;
        for finding in &self.findings {
            writeln!(out, "  {}: {}\n    do: {}", finding.fault.title(), finding.text, finding.remedy)?;
        }
        for cell in &self.cells {
            let mut line = format!("  {:<18}{}", cell.fault.title(), cell.state);
            if !cell.remedy.is_empty() {
                write!(line, ": {}", cell.remedy)?;
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Green => "green",
            Self::NotProven => "not proven",
            Self::Red => "red",
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Blocked => "blocked",
            Self::Runs => "this host runs the call",
            Self::Impossible => "cannot happen here",
            Self::NotProven => "not proven",
        })
    }
}

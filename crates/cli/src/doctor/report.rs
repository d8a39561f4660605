//! The report of the doctor: a verdict for each host, its findings, and a cell for each fault.

use std::fmt::{self, Write as _};

use serde::Serialize;

use super::model::Fault;
use crate::hook::event::Host;

/// The examination of one host.
#[derive(Debug)]
pub struct Report {
    /// The host.
    pub host: Host,
    /// The verdict.
    pub verdict: Verdict,
    /// What stands against green.
    pub findings: Vec<Finding>,
    /// What the host does with a call under each fault.
    pub cells: Vec<Cell>,
    /// The tools, and whether the probe of each was refused.
    pub probes: Vec<(String, bool)>,
}

/// The verdict on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every probe was refused, and nothing keeps the host from asking.
    Green,
    /// The host may skip the hook, and nobody can see whether it does.
    NotProven,
    /// A probe got through, or the host skips the hook.
    Red,
}

/// Something that stands against green.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The fault that it is an instance of.
    pub fault: Fault,
    /// The best verdict that it leaves.
    pub verdict: Verdict,
    /// What was found.
    pub text: String,
    /// What to do.
    pub remedy: String,
}

/// What a host does with a call under a fault.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// The fault.
    pub fault: Fault,
    /// What the host does.
    pub state: State,
    /// What to do where the call may run; else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// What a host does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The call does not run.
    Blocked,
    /// The host runs the call.
    Runs,
    /// The fault cannot happen on this host.
    Impossible,
    /// Nobody can see what the host does.
    NotProven,
}

impl Report {
    /// The report for programs.
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

//! The tools of the server: admitted, or in quarantine.
//!
//! A tool is pinned at first sight. A tool whose definition changed since it was pinned, and a new tool that
//! resembles a pinned one, are in quarantine until an operator pins them: they are left out of `tools/list`, and
//! calls of them are refused. Pins are in the journal, so they survive a restart.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use rmcp::model::Tool;
use rulekeep::catalogue::ToolLikeness;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::calls::CallError;
use crate::governance::{Governance, unexpected};
use crate::offer::{LeftOut, Offer};
use crate::refusal::Refusal;

/// The tools of the server's last `tools/list`. `None` before the first one, and after the server has reported that
/// its tools changed.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    listing: RwLock<Option<Arc<Listing>>>,
}

/// The result of one `tools/list` of the server, with all pages.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The tools in the server's order.
    tools: Vec<(Tool, Standing)>,
    by_name: HashMap<String, usize>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// The status of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Standing {
    Admitted,
    /// The tool is refused until an operator pins it, for this reason.
    Quarantined(String),
}

impl Catalogue {
    pub(crate) fn current(&self) -> Option<Arc<Listing>> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a listing, pins what is new in it, and stores it as the current one.
    pub(crate) async fn learn(&self, governance: &Governance, offer: Offer) -> Result<Arc<Listing>, CallError> {
        let Offer { tools, left_out } = offer;
        let learned = match Listing::learned(governance, &tools).await {
            // Another connection pinned one of the tools since it was loaded; the next load says so.
            Err(error) if error.code == "FORBIDDEN" => Listing::learned(governance, &tools).await?,
            learned => learned?,
        };
        let by_name = tools.iter().enumerate().map(|(place, tool)| (tool.name.to_string(), place)).collect();
        let listing = Arc::new(Listing { tools: tools.into_iter().zip(learned).collect(), by_name, left_out });
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&listing));
        Ok(listing)
    }

    /// Drops the listing, so that the next call asks the server for its tools first.
    pub(crate) fn expire(&self) {
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Listing {
    /// The tools that the client may see.
    pub(crate) fn admitted(&self) -> Vec<Tool> {
        let admitted = self.tools.iter().filter(|(_, standing)| *standing == Standing::Admitted);
        admitted.map(|(tool, _)| tool.clone()).collect()
    }

    /// The names of the tools in quarantine, each with the reason.
    pub(crate) fn quarantined(&self) -> Vec<Value> {
        let quarantined = self.tools.iter().filter_map(|(tool, standing)| match standing {
            Standing::Admitted => None,
            Standing::Quarantined(why) => Some(json!({ "name": tool.name, "reason": why })),
        });
        quarantined.collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&(Tool, Standing)> {
        self.tools.get(*self.by_name.get(name)?)
    }

    /// The refusal of a call of a tool that was left out.
    pub(crate) fn left_out(&self, name: &str) -> Option<Refusal> {
        let LeftOut { why, .. } = self.left_out.iter().find(|tool| tool.name == name)?;
        let reasoning = format!("the tool {name:?} is left out, because {why}. The server has to list it correctly.");
        Some(Refusal::new("invalid_tool", reasoning))
    }

    /// Loads tools, pins what is new, and returns the standing of each.
    async fn learned(governance: &Governance, tools: &[Tool]) -> Result<Vec<Standing>, CallError> {
        let server = &governance.options.server;
        let report = governance.call("catalogue/load", json!({ "tools": tools, "server": server })).await?;
        let Loaded { tools: classified, resembling } = report;
        let likenesses: HashMap<&str, &Resemblance> = resembling.iter().map(|one| (one.name.as_str(), one)).collect();
        if classified.len() != tools.len() {
            return Err(unexpected("catalogue/load returned a different number of tools"));
        }
        let mut standings: Vec<Standing> = Vec::with_capacity(tools.len());
        let mut fresh: Vec<usize> = Vec::new();
        for (place, tool) in classified.iter().enumerate() {
            if tool.name != *tools[place].name {
                return Err(unexpected("catalogue/load returned a different tool"));
            }
            let is_settled = tool.pinned || tool.overridden.is_some();
            let likeness = likenesses.get(tools[place].name.as_ref());
            standings.push(match (is_settled, !tool.changed, likeness) {
                (true, true, _) => Standing::Admitted,
                (_, false, _) => quarantined("its definition differs from the accepted one"),
                (false, true, Some(likeness)) => quarantined(&described(likeness)),
                (false, true, None) => {
                    fresh.push(place);
                    Standing::Admitted
                }
            });
        }
        for (place, standing) in pinned(governance, tools, &classified, &fresh).await? {
            standings[place] = standing;
        }
        for (tool, standing) in tools.iter().zip(&standings) {
            if let Standing::Quarantined(why) = standing {
                tracing::warn!(server, tool = ?tool.name, why, "a tool is in quarantine");
            }
        }
        Ok(standings)
    }
}

impl Standing {
    pub(crate) fn refusal(&self, server: &str, tool: &str) -> Option<Refusal> {
        let Self::Quarantined(why) = self else { return None };
        let reasoning = format!(
            "the tool {tool:?} is in quarantine: {why}. An operator reviews it and accepts it with \
             `rulekeep mcp accept {tool} --server {server}`; then call it again."
        );
        Some(Refusal::new("quarantine", reasoning))
    }
}

/// Pins new tools with one call. A tool whose definition has changed by then is not admitted.
async fn pinned(
    governance: &Governance,
    tools: &[Tool],
    classified: &[Classified],
    fresh: &[usize],
) -> Result<Vec<(usize, Standing)>, CallError> {
    if fresh.is_empty() {
        return Ok(Vec::new());
    }
    let server = &governance.options.server;
    let named: Vec<Value> = fresh.iter().map(|place| json!({ "name": tools[*place].name, "server": server })).collect();
    let Pinned { tools: pinned } = governance.call("catalogue/pin", json!({ "tools": named })).await?;
    let standing = |(order, place): (usize, &usize)| {
        let is_accepted = |tool: &Classified| tool.pinned && !tool.changed && tool.digest == classified[*place].digest;
        let is_it = pinned.get(order).is_some_and(is_accepted);
        let why = "its definition changed while it was pinned";
        (*place, if is_it { Standing::Admitted } else { quarantined(why) })
    };
    Ok(fresh.iter().enumerate().map(standing).collect())
}

fn quarantined(why: &str) -> Standing {
    Standing::Quarantined(why.to_owned())
}

fn described(Resemblance { of, of_server, likeness, .. }: &Resemblance) -> String {
    let server = of_server.as_deref().map_or_else(String::new, |server| format!(" of the server {server:?}"));
    match likeness {
        ToolLikeness::SameName => format!("another tool{server} has the same name"),
        ToolLikeness::LookAlike => format!("its name reads like {of:?}{server}"),
        ToolLikeness::Renamed => format!("it has the definition of the tool {of:?}, which the server no longer lists"),
    }
}

/// The answer to `catalogue/load`, as far as the gateway uses it.
#[derive(Deserialize)]
struct Loaded {
    tools: Vec<Classified>,
    resembling: Vec<Resemblance>,
}

/// The answer to `catalogue/pin` for several tools.
#[derive(Deserialize)]
struct Pinned {
    tools: Vec<Classified>,
}

/// A tool in the catalog.
#[derive(Deserialize)]
struct Classified {
    name: String,
    digest: String,
    pinned: bool,
    /// The operator's reason for overriding it.
    overridden: Option<String>,
    changed: bool,
}

/// A loaded tool that looks like a pinned one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resemblance {
    name: String,
    of: String,
    of_server: Option<String>,
    likeness: ToolLikeness,
}

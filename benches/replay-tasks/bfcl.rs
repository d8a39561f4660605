//! The Berkeley Function-Calling Leaderboard: requests, the offered tools, and the correct call for each.

use std::error::Error;

use serde_json::Value;

use crate::table::Table;
use crate::world::{World, call_of};

/// Replays every row: its own call, and the calls of other rows with their tools offered too.
pub(crate) fn replay(rows: &[Value], table: &mut Table) -> Result<(), Box<dyn Error>> {
    let tools_of = |row: &Value| row["tools"].as_array().cloned().unwrap_or_default();
    for (number, row) in rows.iter().enumerate() {
        let mut tools = tools_of(row);
        let mut strangers = Vec::new();
        // Rows far apart in the file have other sources; the same ones are used each time.
        for step in 1..=STRANGERS {
            let other = &rows[(number + step * 101) % rows.len()];
            let tool = tools_of(other).into_iter().find(|tool| tool["name"] == other["call"]["name"]);
            if let Some(tool) = tool.filter(|tool| !tools.iter().any(|known| known["name"] == tool["name"])) {
                tools.push(tool);
                strangers.push(call_of(&other["call"]));
            }
        }
        let world = World::new(&tools)?;
        let words = row["text"].as_str().unwrap_or_default();
        let decided = world.enforce_alone(words, &call_of(&row["call"]))?;
        if !decided.is_allowed() {
            table.tell(&format!("{}: {} {}", row["id"], row["call"], decided.reasoning));
        }
        table.count("BFCL: requests whose call is allowed", "93", decided.is_allowed());
        for call in &strangers {
            let decided = world.enforce_alone(words, call)?;
            if !decided.is_effect {
                continue;
            }
            if decided.is_allowed() {
                table.tell(&format!(
                    "{}: {words:?}: stranger allowed: {} {}",
                    row["id"],
                    call.name,
                    Value::Object(call.arguments.clone())
                ));
            }
            table.count("BFCL: strangers' calls with effects not allowed", "95", !decided.is_allowed());
        }
    }
    Ok(())
}

/// Number of other rows whose calls are tried on each request.
const STRANGERS: usize = 5;

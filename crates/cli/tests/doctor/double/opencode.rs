//! opencode: `tool.execute.before` of JavaScript plugins, run by Node.
//!
//! SOURCE: the plugin interface of opencode 1.x as collected in the notes on hosts: an exception refuses the call; a
//! plugin that does not load is skipped silently.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::start;
use super::{Call, Tool};
use crate::world::World;

pub(super) fn runs(world: &World, call: &Call, tool: &Tool) -> bool {
    let mut node = Command::new("node");
    node.args(["--input-type=module", "-e", HOST]);
    let folders = [world.home.join(".config/opencode/plugins"), world.project.join(".opencode/plugins")];
    let ask = json!({"folders": folders, "directory": world.project, "tool": tool.name, "args": tool.input});
    let done = start::program(world, node, &ask.to_string(), Duration::from_secs(3600));
    assert!(done.late || done.exit == Some(0), "the double of opencode needs Node on the path: {}", done.stderr);
    // A plugin that hangs blocks the call forever.
    let _ = call;
    !done.late && done.stdout.trim() == "ran"
}

const HOST: &str = r#"
import { readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const ask = JSON.parse(readFileSync(0, "utf8"));
const hooks = [];
const client = { session: { get: async ({ path }) => ({ data: { id: path.id, parentID: null } }) } };
for (const folder of ask.folders) {
  let names = [];
  try { names = readdirSync(folder).filter((name) => name.endsWith(".js")).sort(); } catch {}
  for (const name of names) {
    try {
      const module = await import(pathToFileURL(folder + "/" + name).href);
      for (const plugin of new Set(Object.values(module))) {
        hooks.push(await plugin({ directory: ask.directory, worktree: ask.directory, project: {}, client }));
      }
    } catch {}
  }
}
try {
  const output = { args: ask.args };
  for (const hook of hooks) {
    await hook["tool.execute.before"]?.({ tool: ask.tool, sessionID: "s", callID: "c" }, output);
  }
  console.log("ran");
} catch (error) {
  console.log("refused: " + error.message);
}
process.exit(0);
"#;

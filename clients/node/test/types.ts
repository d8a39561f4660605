// What type checkers must accept, and what they must not. It is compiled and not run.

import { tool } from "ai";
import { z } from "zod";
import { connect, Denied, type Verdict } from "../index.js";
import { govern } from "../ai.js";

export async function accepted(): Promise<Verdict> {
  const governor = await connect({ home: "/srv/rulekeep", key: "rkp_agent_..." });
  const read = governor.guard(async ({ path }: { path: string }) => path.length, { agentId: "a", tool: "read_file" });
  const length: number = await read({ path: "/srv/a.txt" });
  const tools = govern(
    governor,
    { readFile: tool({ inputSchema: z.object({ path: z.string() }), execute: async ({ path }) => path }) },
    { agentId: "a", wait: length },
  );
  void tools.readFile.inputSchema;
  const verdict = await governor.enforce({ agentId: "a", input: { tool: "read_file", arguments: {} } });
  await governor.report(verdict.proofId, "SUCCESS");
  const status = await governor.call<{ status: string }>("admin/status");
  void status.status;
  const denied: unknown = undefined;
  if (denied instanceof Denied) void denied.verdict.denialClass;
  return verdict;
}

export async function refused(): Promise<void> {
  const governor = await connect();
  // @ts-expect-error: there is no such outcome
  await governor.report("prf_1", "success");
  // @ts-expect-error: neither an intent nor an input
  await governor.enforce({ agentId: "a" });
  // @ts-expect-error: a guard needs an agent
  governor.guard(() => 1, { tool: "read_file" });
}

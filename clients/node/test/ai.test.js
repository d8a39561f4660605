// The adapter of the Vercel AI SDK, with the real package and a model that follows a script.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { generateText, stepCountIs, streamText, tool } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { z } from "zod";

import { connect } from "../index.js";
import { govern } from "../ai.js";
import { bridge } from "./bridge.js";
import { outcomes, POLICIES } from "./policies.js";

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const path = z.object({ path: z.string() });

/** A turn of the model that asks for a tool, or the last one. */
function turn(id, toolName, input) {
  const content = toolName
    ? [{ type: "tool-call", toolCallId: id, toolName, input: JSON.stringify(input) }]
    : [{ type: "text", text: "done" }];
  const reason = toolName ? "tool-calls" : "stop";
  return { content, finishReason: { unified: reason, raw: reason }, usage, warnings: [] };
}

describe("the AI SDK", () => {
  let daemon, governor;
  before(async () => {
    daemon = await bridge();
    governor = await connect({ socket: daemon.socket, key: "rkp_good" });
    await governor.call("policy/load", { text: POLICIES, format: "toml" });
  });
  after(async () => {
    await governor.close();
    await daemon.close();
  });

  test("runs what is allowed and tells the model what is not", async () => {
    await governor.call("agent/register", { agentId: "a", tier: "T4" });
    const ran = [];
    const execute = async ({ path }, { toolCallId }) => {
      ran.push(toolCallId);
      if (path === "/srv/none.txt") throw new Error("no such file");
      return "the notes";
    };
    const tools = govern(
      governor,
      { read_file: tool({ inputSchema: path, execute }), delete_file: tool({ inputSchema: path, execute }) },
      { agentId: "a" },
    );
    const turns = [
      turn("call-1", "read_file", { path: "/srv/a.txt" }),
      turn("call-2", "delete_file", { path: "/srv/a.txt" }),
      turn("call-3", "read_file", { path: "/srv/none.txt" }),
      turn(),
    ];
    const model = new MockLanguageModelV3({ doGenerate: async () => turns.shift() });
    const { steps, text } = await generateText({ model, tools, prompt: "go on", stopWhen: stepCountIs(9) });
    assert.equal(text, "done");
    const told = steps.flatMap(({ content }) => content.filter(({ type }) => /^tool-(result|error)$/.test(type)));
    assert.equal(told[0].output, "the notes");
    assert.match(told[1].error.message, /^DENY: /);
    assert.equal(told[2].error.message, "no such file");
    assert.deepEqual(ran, ["call-1", "call-3"]);
    assert.deepEqual(await outcomes(governor, "a"), ["ALLOW SUCCESS", "DENY", "ALLOW FAILURE"]);
    await assert.rejects(governor.report("prf_1", "SUCCESS"), { code: "PROOF_NOT_FOUND" });
    const again = { agentId: "a", callId: "call-1", outcome: "SUCCESS" };
    assert.equal((await governor.call("outcome/report", again)).outcome, "SUCCESS");
  });

  test("a tool that yields gives its parts as they come, and its last as the result", async () => {
    await governor.call("agent/register", { agentId: "b", tier: "T4" });
    const tools = govern(
      governor,
      {
        read_file: tool({
          inputSchema: path,
          async *execute() {
            yield "half";
            yield "all";
          },
        }),
      },
      { agentId: "b" },
    );
    const { content, ...finish } = turn("call-1", "read_file", { path: "/srv/a.txt" });
    const chunks = [{ type: "stream-start", warnings: [] }, ...content, { type: "finish", ...finish }];
    const model = new MockLanguageModelV3({ doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) });
    const seen = [];
    for await (const part of streamText({ model, tools, prompt: "go on" }).fullStream) {
      if (part.type === "tool-result") seen.push([part.output, part.preliminary === true]);
    }
    assert.deepEqual(seen, [["half", true], ["all", true], ["all", false]]);
    assert.deepEqual(await outcomes(governor, "b"), ["ALLOW SUCCESS"]);
  });

  test("a tool that runs elsewhere is refused when it is wrapped", () => {
    assert.throws(() => govern(governor, { ask: tool({ inputSchema: path }) }, { agentId: "a" }), /ask has no execute/);
  });
});

// The cases of the contract, through the client. The Rust and Python runners go through the same file.
//
// RULEKEEP_SOCKET and RULEKEEP_KEY run them against a daemon whose governor may be changed; without them a bridge is started.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";

import { connect, RulekeepError } from "../index.js";
import { bridge } from "./bridge.js";

const { policies, cases } = JSON.parse(
  readFileSync(new URL("../../../crates/server/tests/contract/cases.json", import.meta.url), "utf8"),
);

describe("the contract", () => {
  let daemon, governor;

  before(async () => {
    const { RULEKEEP_SOCKET: socket, RULEKEEP_KEY: key } = process.env;
    daemon = socket ? undefined : await bridge();
    governor = await connect(daemon ? { socket: daemon.socket, key: "rkp_good" } : { socket, key });
    await governor.call("policy/load", { text: policies, format: "toml" });
  });

  after(async () => {
    await governor.close();
    await daemon?.close();
  });

  for (const [number, { name, tier = "T4", steps }] of cases.entries()) {
    test(name, async () => {
      const names = { agent: `node-${process.pid}-${number}` };
      await governor.call("agent/register", { agentId: names.agent, tier });
      for (const [place, step] of steps.entries()) {
        const where = `step ${place} ${step.method}`;
        let found, kind;
        try {
          found = await governor.call(step.method, filled(step.params, names));
          kind = "result";
        } catch (error) {
          if (!(error instanceof RulekeepError)) throw error;
          const { code, details, httpStatus, message } = error;
          found = { code, details, httpStatus, message };
          kind = "error";
        }
        assert.ok(kind in step, `${where}: ${JSON.stringify(found)}`);
        assertMatches(found, filled(step[kind], names), where);
        for (const [key, path] of Object.entries(step.save ?? {})) {
          names[key] = path.split(".").reduce((value, part) => value[part], found);
        }
      }
    });
  }
});

/** A value with what its names stand for. */
function filled(value, names) {
  if (typeof value === "string" && value.startsWith("$")) return names[value.slice(1)];
  if (Array.isArray(value)) return value.map((item) => filled(item, names));
  if (value === null || typeof value !== "object") return value;
  if (value.$repeat) return value.$repeat[0].repeat(value.$repeat[1]);
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, filled(part, names)]));
}

function assertMatches(found, expected, place) {
  const shown = `${place}: ${JSON.stringify(found)}`;
  if (expected === null || typeof expected !== "object") {
    assert.equal(found, expected, place);
  } else if (Array.isArray(expected)) {
    assert.ok(Array.isArray(found) && found.length === expected.length, shown);
    expected.forEach((item, number) => assertMatches(found[number], item, `${place}.${number}`));
  } else if (expected.$matches) {
    assert.match(found, new RegExp(expected.$matches), place);
  } else {
    assert.ok(found !== null && typeof found === "object", shown);
    for (const [key, part] of Object.entries(expected)) {
      assert.equal(key in found, !part?.$absent, `${place}.${key}: ${JSON.stringify(found)}`);
      if (!part?.$absent && !part?.$any) assertMatches(found[key], part, `${place}.${key}`);
    }
  }
}

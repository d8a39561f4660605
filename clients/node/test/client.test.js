// The client against a daemon: connections, keys, errors, and tool calls under a guard.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer } from "node:net";
import { inspect, promisify } from "node:util";
import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { connect, Denied, RulekeepError } from "../index.js";
import { bridge } from "./bridge.js";
import { outcomes, POLICIES } from "./policies.js";

describe("a connection", () => {
  let daemon;
  before(async () => (daemon = await bridge()));
  after(() => daemon.close());

  test("is made by a home, by $RULEKEEP_HOME or by a socket", async () => {
    process.env.RULEKEEP_HOME = daemon.home;
    try {
      for (const options of [{ home: daemon.home }, { socket: daemon.socket, home: "/nowhere" }, undefined]) {
        const governor = await connect(options);
        assert.equal((await governor.call("admin/status")).status, "healthy");
        await governor.close();
      }
    } finally {
      delete process.env.RULEKEEP_HOME;
    }
  });

  test("by a key that is not known is refused, and the key is in no error and no governor", async () => {
    const refused = await connect({ socket: daemon.socket, key: "rkp_wrong" }).catch((error) => error);
    assert.equal(refused.code, "UNAUTHORIZED");
    assert.ok(!inspect(refused).includes("rkp_wrong"));
    const governor = await connect({ socket: daemon.socket, key: "rkp_good" });
    assert.ok(!inspect(governor, { depth: 9, showHidden: true }).includes("rkp_good"));
    await governor.close();
  });

  test("to nobody says what to do", async () => {
    await assert.rejects(connect({ home: "/nowhere" }), (error) => {
      return error instanceof RulekeepError && error.code === "DISCONNECTED" && /is the daemon running/.test(error.message);
    });
  });

  test("that is lost fails what waits, and the next call makes another", async () => {
    const governor = await connect({ socket: daemon.socket, key: "rkp_good" });
    const waits = governor.call("agent/get", { agentId: "nobody" });
    const lost = assert.rejects(waits, (error) => ["DISCONNECTED", "AGENT_NOT_FOUND"].includes(error.code));
    daemon.cut();
    await lost;
    await assert.rejects(governor.call("agent/get", { agentId: "nobody" }), { code: "AGENT_NOT_FOUND" });
    await governor.close();
    await assert.rejects(governor.call("agent/get", { agentId: "nobody" }), /the governor was closed/);
  });

  test("that gives no answer in time, or none in JSON, fails", async () => {
    const home = await mkdtemp(join(tmpdir(), "rulekeep-node-"));
    const silent = createServer((connection) => {
      connection.on("data", (text) => String(text).includes("proof/verify") && connection.write("nonsense\n"));
    });
    await new Promise((resolve) => silent.listen(join(home, "operator.sock"), resolve));
    const governor = await connect({ home, timeout: 50 });
    await assert.rejects(governor.call("admin/status"), { code: "TIMEOUT", httpStatus: 504 });
    await assert.rejects(governor.call("proof/verify"), /DISCONNECTED: the daemon sent a line that is not JSON/);
    await governor.close();
    await new Promise((resolve) => silent.close(resolve));
    await rm(home, { recursive: true });
  });

  test("an unknown method is an error of its name", async () => {
    const governor = await connect({ socket: daemon.socket });
    await assert.rejects(governor.call("agent/promote"), { code: "INVALID_INPUT", details: { field: "method" } });
    await governor.close();
  });
});

describe("a governor", () => {
  let daemon, governor;
  let agentId;
  let agents = 0;

  before(async () => {
    daemon = await bridge();
    governor = await connect({ socket: daemon.socket, key: "rkp_good" });
    await governor.call("policy/load", { text: POLICIES, format: "toml" });
  });
  after(async () => {
    await governor.close();
    await daemon.close();
  });

  async function agent() {
    agentId = `agent-${++agents}`;
    await governor.call("agent/register", { agentId, tier: "T4" });
  }

  test("parses, decides, reports, queries and counts", async () => {
    await agent();
    const { intent } = await governor.parse(agentId, { tool: "read_file", arguments: { path: "/srv/a.txt" } });
    const verdict = await governor.enforce({ intent });
    assert.equal(verdict.decision, "ALLOW");
    assert.equal((await governor.report(verdict.proofId, "SUCCESS")).outcome, "SUCCESS");
    assert.equal((await governor.query(agentId, { decision: "ALLOW" })).total, 1);
    assert.equal((await governor.stats(agentId)).successRate, 1);
  });

  test("answers many calls at once, each its own", async () => {
    await agent();
    const texts = Array.from({ length: 50 }, (_, number) => `Read the file /srv/${number}.txt`);
    const parsed = await Promise.all(texts.map((text) => governor.parse(agentId, text)));
    parsed.forEach(({ intent }, number) => assert.equal(intent.context.target, `/srv/${number}.txt`));
  });

  test("a task's id that was lost is refused", async () => {
    await agent();
    const request = { agentId, input: "Read the file /srv/a.txt", taskId: undefined };
    await assert.rejects(governor.enforce(request), { code: "INVALID_INPUT", details: { field: "taskId" } });
  });

  test("a guarded function runs where it is allowed, and its end is reported", async () => {
    await agent();
    const read = governor.guard(async function read_file(path) {
      if (path === "/srv/none.txt") throw new Error("no such file");
      return `read ${path}`;
    }, { agentId, parameters: ["path"] });
    assert.equal(await read("/srv/a.txt"), "read /srv/a.txt");
    await assert.rejects(read("/srv/none.txt"), /no such file/);
    await assert.rejects(read("/srv/a.txt", 2), TypeError);
    const remove = governor.guard(() => assert.fail("it ran"), { agentId, tool: "delete_file" });
    await assert.rejects(remove({ path: "/srv/a.txt" }), (error) => error instanceof Denied && error.decision === "DENY");
    await assert.rejects(remove("/srv/a.txt"), TypeError);
    assert.throws(() => governor.guard(() => 1, { agentId }), TypeError);
    await assert.rejects(remove({ path: "x".repeat(70_000) }), (error) => error instanceof Denied && !error.proofId);
    assert.deepEqual(await outcomes(governor, agentId), ["ALLOW SUCCESS", "ALLOW FAILURE", "DENY"]);
  });

  test("a command starts as far as it is granted, and its end is reported", async () => {
    await agent();
    const folder = await mkdtemp(join(tmpdir(), "rulekeep-node-"));
    const start = ([program, ...args]) => promisify(execFile)(program, args, { cwd: folder });
    assert.equal((await governor.guardCommand({ agentId, command: ["cat", "/dev/null"], folder }, start)).stdout, "");
    await assert.rejects(governor.guardCommand({ agentId, command: ["git", "push"], folder }, start), Denied);
    await writeFile(join(folder, "Makefile"), `all:\n\techo made > out\n\techo a > ${folder}-outside\n`);
    const make = governor.guardCommand({ agentId, command: ["make", "-k"], folder }, start);
    // Where commands cannot be confined, nothing says that this one may run.
    const ran = await make.catch((error) => assert.ok(error instanceof Denied || error.code === 2, error));
    if (ran) assert.equal(await readFile(join(folder, "out"), "utf8"), "made\n");
    await assert.rejects(access(`${folder}-outside`));
    assert.deepEqual((await outcomes(governor, agentId)).slice(0, 2), ["ALLOW SUCCESS", "DENY"]);
    await rm(folder, { recursive: true });
  });

  test("an escalation waits for its reviewer", async () => {
    await agent();
    const send = governor.guard(({ to }) => `sent to ${to}`, { agentId, tool: "send_email", wait: 30_000 });
    for (const [answer, to] of [["approve", "ann@example.com"], ["reject", "bob@example.com"]]) {
      const sent = send({ to }).catch((error) => error);
      let pending;
      while (!pending) [pending] = (await governor.call("escalation/list", { agentId, state: "pending" })).items;
      await governor.call(`escalation/${answer}`, { id: pending.id, reviewer: "mail-lead" });
      const result = await sent;
      if (answer === "approve") assert.equal(result, "sent to ann@example.com");
      else assert.equal(result.message, "DENY: the escalation was rejected");
    }
    assert.deepEqual(await outcomes(governor, agentId), ["ESCALATE ESCALATED", "ALLOW SUCCESS", "ESCALATE ESCALATED", "DENY"]);
  });
});

#!/usr/bin/env node
/**
 * A governor over HTTP, from Node 18 or later, with nothing to install:
 *
 *     node node_client.mjs http://127.0.0.1:8080/v1 rkp_admin_...
 *
 * or with RULEKEEP_URL and RULEKEEP_ADMIN_KEY in the environment, which keeps the key out of the list of processes. An
 * administrator's part and an agent's: an agent and its key are made, a request is parsed, decided on and reported, a
 * question goes to a person, and what was recorded is read. It ends with 1 when anything is not as it should be.
 */

import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const ATTEMPTS = 5; // of one call, the first included
const LONGEST_WAIT = 60; // seconds that a 429 may ask for
const TIMEOUT = 30_000; // milliseconds for an answer

/** An error of the contract. */
class Refused extends Error {
  constructor(status, { code, message }) {
    super(`${status} ${code}: ${message}`);
    Object.assign(this, { name: "Refused", status, code });
  }
}

/** Calls by one key. Safe to retry: a POST carries an Idempotency-Key, so that nothing is decided or made twice. */
class Client {
  constructor(url, key) {
    this.url = url.replace(/\/+$/, "");
    this.authorization = `Bearer ${key}`;
  }

  get(path, query = {}) {
    return this.call("GET", `${path}?${new URLSearchParams(query)}`);
  }

  post(path, body) {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": randomUUID() };
    return this.call("POST", path, { headers, body: JSON.stringify(body) });
  }

  delete(path) {
    return this.call("DELETE", path);
  }

  async call(method, path, { headers, body } = {}) {
    const request = { method, body, headers: { ...headers, Authorization: this.authorization } };
    for (let attempt = 1; ; attempt++) {
      let wait = (0.5 + Math.random() / 2) * 0.2 * 2 ** attempt; // backs off, and not all clients at once
      let response, text, why;
      try {
        response = await fetch(this.url + path, { ...request, signal: AbortSignal.timeout(TIMEOUT) });
        text = await response.text();
      } catch (error) {
        // It may have been done all the same: hence the Idempotency-Key.
        if (attempt === ATTEMPTS) throw error;
        why = `no answer (${error.cause?.code ?? error.name})`;
      }
      if (why === undefined) {
        if (response.ok) return JSON.parse(text);
        const refused = new Refused(response.status, errorOf(text, response));
        if (response.status === 429) wait = Number(response.headers.get("Retry-After") ?? NaN);
        const isPassing = response.status === 429 || response.status >= 500;
        if (!isPassing || attempt === ATTEMPTS || !(wait <= LONGEST_WAIT)) throw refused;
        why = refused.message;
      }
      console.log(`  ${method} ${path}: ${why}; again in ${wait.toFixed(1)} s`);
      await sleep(wait * 1000);
    }
  }
}

function errorOf(text, response) {
  try {
    return JSON.parse(text).error ?? {};
  } catch {
    return { code: "HTTP", message: response.statusText }; // from a proxy between, for example
  }
}

async function main() {
  const { RULEKEEP_URL, RULEKEEP_ADMIN_KEY } = process.env;
  const [url, key, ...more] = process.argv.length > 2 ? process.argv.slice(2) : [RULEKEEP_URL, RULEKEEP_ADMIN_KEY];
  if (!url || !key || more.length > 0) {
    throw new Error("usage: node_client.mjs URL ADMIN_KEY, or RULEKEEP_URL and RULEKEEP_ADMIN_KEY in the environment");
  }
  const admin = new Client(url, key);

  // The administrator: an agent, and a key that is for it alone.
  const agentId = `node-${randomUUID()}`;
  const registered = await admin.post("/admin/agents", { agentId, tier: "T3", labels: ["example"] });
  console.log(`registered ${agentId} at ${registered.tier}`);
  const terms = { scope: "agent", plan: "pro", agents: [agentId], name: "Node client" };
  const made = await admin.post("/admin/keys", terms);
  console.log(`made the key ${made.id}`); // its text, made.key, is shown in this answer alone
  const agent = new Client(url, made.key);

  // The agent: what it asks, as the governor reads it; the verdict; what became of it.
  const { intent } = await agent.post("/intent", { agentId, input: "Summarize the ticket about order 8812" });
  console.log(`parsed ${intent.parsedAction}, ${intent.riskLevel}`);
  const verdict = await agent.post("/enforce", { intent });
  console.log(`${verdict.decision}: ${verdict.reasoning}`);
  assert.equal(verdict.decision, "ALLOW");
  // ... do it, within verdict.constraints and with verdict.grantedCapabilities alone ...
  const recorded = await agent.post("/proof/outcome", { proofId: verdict.proofId, outcome: "SUCCESS" });
  console.log(`reported ${recorded.outcome} of ${recorded.id}`);

  // What a person has to agree to.
  const refund = await agent.post("/enforce", { agentId, input: "Refund 80 euros for order 8812" });
  console.log(`${refund.decision}: ${refund.reasoning}`);
  assert.equal(refund.decision, "ESCALATE");
  const waiting = (await admin.get("/admin/escalations", { state: "pending", agentId })).items;
  assert.equal(waiting.length, 1);
  const [{ id, digest, reviewer }] = waiting;
  // Whom the rule asks; whoever has an administrator's key vouches for the name. The digest: exactly what was shown.
  const answer = { reviewer, note: "the parcel came back", digest };
  const resolved = await admin.post(`/admin/escalations/${id}/approve`, answer);
  console.log(`${reviewer}: ${resolved.state}`);
  const answered = await agent.post(`/escalations/${id}/wait`, { timeoutMs: 5000 });
  assert.equal(answered.state, "approved");
  const claimed = await agent.post(`/escalations/${id}/claim`, { intent: refund.intent });
  console.log(`claimed: ${claimed.decision}, until ${claimed.constraints.expiresAt}`);
  assert.equal(claimed.decision, "ALLOW");
  await agent.post("/proof/outcome", { proofId: claimed.proofId, outcome: "SUCCESS" });

  // What an agent's key is not for is refused at once.
  await assert.rejects(agent.get("/admin/status"), { name: "Refused", code: "FORBIDDEN" });
  console.log("the status is not for agents: FORBIDDEN");

  // What was recorded.
  const page = await agent.get("/proof/query", { entityId: agentId, pageSize: 10 });
  console.log(`${page.total} records: ${page.items.map((record) => record.decision).join(", ")}`);
  assert.equal(page.total, 3);
  const stats = await agent.get("/proof/stats", { entityId: agentId });
  console.log(`success rate ${stats.successRate}, chain intact: ${stats.chainIntegrity}`);
  assert.equal(stats.chainIntegrity, true);
  const status = await admin.get("/admin/status");
  console.log(`the governor is ${status.status}, version ${status.version}`);

  const revoked = await admin.delete(`/admin/keys/${made.id}`);
  console.log(`the key ${revoked.id} is ${revoked.state}`);
  assert.equal(revoked.state, "revoked");
}

try {
  await main();
} catch (surprise) {
  console.error(`node_client.mjs: ${surprise.name}: ${surprise.message}`);
  process.exitCode = 1;
}

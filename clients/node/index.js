// A client of the Rulekeep daemon. `index.d.ts` documents what is exported.

import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { Connection, RulekeepError } from "./connection.js";

export { RulekeepError };

export class Denied extends Error {
  constructor(verdict, options) {
    super(`${verdict.decision}: ${verdict.reasoning}`, options);
    this.name = "Denied";
    this.verdict = verdict;
  }

  get decision() {
    return this.verdict.decision;
  }

  get proofId() {
    return this.verdict.proofId;
  }
}

export async function connect({ socket, key, home, timeout = 30_000 } = {}) {
  const path = socket ?? join(home ?? process.env.RULEKEEP_HOME ?? join(homedir(), ".rulekeep"), "operator.sock");
  const governor = new Governor(async (onEnd) => {
    const connection = await Connection.open(path, onEnd);
    if (key !== undefined) await connection.call("session/authenticate", { key }, timeout);
    return connection;
  }, timeout);
  await governor.ready();
  return governor;
}

export class Governor {
  #open;
  #connection;
  #timeout;
  #closed = false;

  constructor(open, timeout) {
    this.#open = open;
    this.#timeout = timeout;
  }

  /** The connection: a new one where the last was lost. Nothing that was sent is sent again. */
  ready() {
    if (this.#closed) return Promise.reject(new RulekeepError("DISCONNECTED", "the governor was closed"));
    if (this.#connection === undefined) {
      const forget = () => {
        if (this.#connection === opened) this.#connection = undefined;
      };
      const opened = this.#open(forget);
      opened.catch(forget);
      this.#connection = opened;
    }
    return this.#connection;
  }

  async call(method, params = {}) {
    return (await this.ready()).call(method, params, this.#timeout);
  }

  parse(agentId, input, context) {
    return this.call("intent", { agentId, input, context });
  }

  enforce(request) {
    // A task's id that was lost is refused by the daemon; JSON would leave it out.
    return this.call("enforce", "taskId" in request ? { ...request, taskId: request.taskId ?? null } : request);
  }

  report(proofId, outcome, note) {
    return this.call("outcome/report", { proofId, outcome, note });
  }

  query(entityId, narrow = {}) {
    return this.call("proof/query", { ...narrow, entityId });
  }

  stats(entityId, period = {}) {
    return this.call("proof/stats", { ...period, entityId });
  }

  toolCall({ agentId, tool, arguments: args, server, callId, wait, ...rest }, work) {
    return this.#run({ agentId, input: { tool, arguments: args, server, callId }, ...rest }, wait, work);
  }

  async #run(request, wait = 0, work) {
    const verdict = await this.#decide(request, wait);
    let outcome = "FAILURE";
    try {
      const result = await work(verdict);
      outcome = "SUCCESS";
      return result;
    } finally {
      await this.report(verdict.proofId, outcome).catch((error) => {
        // The tool has run: its result or its own error is worth more to the caller than this one.
        process.emitWarning(`the outcome ${outcome} of ${verdict.proofId} is not recorded: ${error.message}`, "RulekeepWarning");
      });
    }
  }

  guard(work, { tool = work.name, parameters, ...options }) {
    if (!tool) throw new TypeError("guard: the function has no name; give the tool's: { tool: ... }");
    return async (...args) => {
      const named = parameters ? Object.fromEntries(args.map((value, place) => [nameOf(parameters, place), value])) : args[0];
      if (named === null || typeof named !== "object" || (!parameters && args.length !== 1)) {
        throw new TypeError(`guard: ${tool} takes one object of arguments, or name its parameters: { parameters: [...] }`);
      }
      return this.toolCall({ ...options, tool, arguments: named }, () => work(...args));
    };
  }

  async guardCommand({ agentId, command, folder, context, wait, ...rest }, work) {
    const asked = await this.call("command/request", { agentId, command, folder, context });
    return this.#run({ agentId, ...asked, ...rest }, wait, async (verdict) => {
      const start = await this.call("command/start", { proofId: verdict.proofId, command, folder });
      return work(start.command, verdict);
    });
  }

  async close() {
    this.#closed = true;
    (await this.#connection)?.close();
  }

  async #decide(request, wait) {
    let verdict;
    try {
      verdict = await this.enforce(request);
    } catch (error) {
      // A request that is at fault itself is not decided, and does not run.
      if (!(error instanceof RulekeepError && [400, 413, 422].includes(error.httpStatus))) throw error;
      throw new Denied({ decision: "DENY", reasoning: error.message, ...error.details }, { cause: error });
    }
    for (const end = Date.now() + wait; verdict.decision === "ESCALATE" && Date.now() < end; await sleep(POLL)) {
      const { state } = await this.call("escalation/get", { id: verdict.proofId });
      if (state === "approved") {
        const { proofId: id, intent } = verdict;
        verdict = { intent, ...(await this.call("escalation/claim", { id, intent })) };
      } else if (state !== "pending") {
        verdict = { ...verdict, decision: "DENY", reasoning: `the escalation was ${state}` };
      }
    }
    if (verdict.decision !== "ALLOW") throw new Denied(verdict);
    return verdict;
  }
}

/** Milliseconds between two looks at an escalation. A wait by the daemon would hold up the lines behind it. */
const POLL = 250;

function nameOf(parameters, place) {
  if (place >= parameters.length) throw new TypeError(`guard: argument ${place + 1} has no name in parameters`);
  return parameters[place];
}

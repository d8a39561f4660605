// A daemon for tests: a Unix socket whose connection speaks to a `rulekeep sidecar` of its own. It answers
// `session/authenticate` itself, and refuses a key that is not `rkp_good`.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const program = process.env.RULEKEEP_PROGRAM ?? new URL("../../../target/debug/rulekeep", import.meta.url).pathname;

/** A bridge in a folder of its own. `store` keeps the log from one connection to the next. */
export async function bridge() {
  const home = await mkdtemp(join(tmpdir(), "rulekeep-node-"));
  const socket = join(home, "operator.sock");
  const children = new Set();
  const connections = new Set();
  const server = createServer((connection) => {
    const child = spawn(program, ["sidecar", "--durability", "buffered"], { stdio: ["pipe", "pipe", "ignore"] });
    children.add(child);
    connections.add(connection);
    const ended = () => child.stdin.end();
    connection.on("error", ended).on("close", ended);
    child.stdin.on("error", () => {});
    child.on("exit", () => {
      children.delete(child);
      connection.destroy();
    });
    createInterface({ input: connection }).on("line", (line) => {
      const { id, method, params } = JSON.parse(line);
      if (method !== "session/authenticate") return child.stdin.write(`${line}\n`);
      const error = { code: -32000, message: "the API key is not known", data: { code: "UNAUTHORIZED", httpStatus: 401 } };
      const answer = params.key === "rkp_good" ? { result: {} } : { error };
      connection.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
    });
    child.stdout.pipe(connection);
  });
  await new Promise((resolve) => server.listen(socket, resolve));
  return {
    home,
    socket,
    /** Cuts all connections, as a daemon does that is started anew. */
    cut: () => connections.forEach((connection) => connection.destroy()),
    async close() {
      connections.forEach((connection) => connection.destroy());
      await new Promise((resolve) => server.close(resolve));
      await Promise.all([...children].map((child) => new Promise((resolve) => child.once("exit", resolve))));
      await rm(home, { recursive: true });
    },
  };
}

// A client for the suite's client scenarios: starts the gateway before the scenario's server, and uses all that the server
// offers. The suite checks the requests that reach its server.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const url = process.argv.at(-1);
const gateway = spawn(process.env.GATEWAY, [url], { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, RULEKEEP_MCP_TEST_ROLE: "open-proxy" } });
const waiting = new Map();
createInterface({ input: gateway.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
});

let last = 0;
const ask = (method, params = {}) => new Promise((resolve) => {
  const id = ++last;
  waiting.set(id, resolve);
  const capabilities = { elicitation: {}, sampling: {}, roots: {} };
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "conformance", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  gateway.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta } }) + "\n");
});

const examples = { number: 2, integer: 2, string: "x", boolean: true, object: {}, array: [] };
const example = (schema = {}) =>
  Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, property]) => [name, examples[property.type] ?? null]));

// Calls a tool, and answers each question of the server with a call of another tool between.
async function call(name, args, other) {
  let { result } = await ask("tools/call", { name, arguments: args });
  for (let round = 0; result?.resultType === "input_required" && round < 5; round++) {
    if (other) await ask("tools/call", { name: other, arguments: {} });
    const inputResponses = Object.fromEntries(
      Object.keys(result.inputRequests).map((key) => [key, { action: "accept", content: { confirmed: true } }]),
    );
    ({ result } = await ask("tools/call", { name, arguments: args, inputResponses, requestState: result.requestState }));
  }
}

await ask("server/discover");
const { tools = [] } = (await ask("tools/list")).result ?? {};
const focal = tools.find((tool) => tool.name === "json_schema_2020_12_tool");
const given = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || "{}").toolCalls ?? [];
for (const tool of tools.filter((tool) => !given.some(({ name }) => name === tool.name))) {
  const args = tool.name === "json_schema_echo" ? { schema: focal.inputSchema } : example(tool.inputSchema);
  await call(tool.name, args, tools.find((other) => other.name === "test_mrtr_unrelated")?.name);
}
for (const { name, arguments: args } of given) await call(name, args);
const { resources = [] } = (await ask("resources/list")).result ?? {};
for (const { uri } of resources) await ask("resources/read", { uri });
const { prompts = [] } = (await ask("prompts/list")).result ?? {};
for (const { name } of prompts) await ask("prompts/get", { name });
gateway.stdin.end();
gateway.on("exit", () => process.exit(0));

// A server of revision 2026-07-28 with the tools, resources and prompts that the suite's server scenarios use. It listens on
// a port of loopback, which it prints, and checks little: the suite looks at what the gateway makes of its answers.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const TASKS = "io.modelcontextprotocol/tasks";

const text = (text) => ({ type: "text", text });
const said = (words) => ({ content: [text(words)] });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const embedded = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const fault = (code, message, data) => Object.assign(new Error(message), { code, data });
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const form = (message, name, type = "string") => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema: { type: "object", properties: { [name]: { type } }, required: [name] } },
});
const sampling = (question) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: text(question) }], maxTokens: 100 },
});
const roots = { method: "roots/list", params: {} };
const asking = (inputRequests, requestState) => ({ resultType: "input_required", inputRequests, requestState });
// The answer to a question; anything else than an object counts as none.
const answer = (params, key) => (typeof params.inputResponses?.[key] === "object" ? params.inputResponses[key] : undefined);

const streams = new Map();
const announce = (method) => {
  for (const [id, stream] of streams) {
    stream({ jsonrpc: "2.0", method, params: { _meta: { "io.modelcontextprotocol/subscriptionId": id } } });
  }
};
const requires = (request, name, capabilities) => {
  if (!request.capabilities[name]) throw fault(-32021, "Missing required client capability", { requiredCapabilities: capabilities });
};

const tools = {
  test_simple_text: () => said("This is a simple text response for testing."),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] }),
  test_embedded_resource: () => ({ content: [embedded("test://embedded-resource", "text/plain", "An embedded resource.")] }),
  test_multiple_content_types: () => ({
    content: [text("Several kinds of content:"), image, embedded("test://mixed", "application/json", '{"test":"data"}')],
  }),
  test_error_handling: () => ({ ...said("This tool intentionally returns an error for testing"), isError: true }),
  test_tool_with_progress: async (params, { token, send }) => {
    for (const progress of token === undefined ? [] : [0, 50, 100]) {
      send({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: token, progress, total: 100 } });
      await pause(20);
    }
    return said("Progress test completed");
  },
  test_logging_tool: (params, { level, send }) => {
    if (level) send({ jsonrpc: "2.0", method: "notifications/message", params: { level, data: "logged" } });
    return said("Logging tool completed");
  },
  test_trigger_tool_change: () => (announce("notifications/tools/list_changed"), said("done")),
  test_trigger_prompt_change: () => (announce("notifications/prompts/list_changed"), said("done")),
  test_missing_capability: (params, request) => (requires(request, "sampling", { sampling: {} }), said("declared")),
  test_streaming_elicitation: () => asking({ streaming_elicitation: form("Provide a value", "value") }),
  test_custom_header: (params) => said(params.arguments.value),
  json_schema_2020_12_tool: () => said("done"),
  test_input_required_result_elicitation: (params) =>
    answer(params, "user_name") ? said(`Hello, ${answer(params, "user_name").content?.name}!`) : asking({ user_name: form("Name?", "name") }),
  test_input_required_result_sampling: (params) =>
    answer(params, "capital_question") ? said("sampled") : asking({ capital_question: sampling("What is the capital of France?") }),
  test_input_required_result_list_roots: (params) => (answer(params, "client_roots") ? said("listed") : asking({ client_roots: roots })),
  test_input_required_result_request_state: (params) => confirmed(params),
  test_input_required_result_tampered_state: (params) => confirmed(params),
  test_input_required_result_multiple_inputs: (params) =>
    ["user_name", "greeting", "client_roots"].every((key) => answer(params, key))
      ? said("All inputs received")
      : asking({ user_name: form("Name?", "name"), greeting: sampling("Greet"), client_roots: roots }, "gather"),
  test_input_required_result_multi_round: ({ requestState }) => {
    if (!requestState) return asking({ step1: form("Step 1: name?", "name") }, "round 1");
    return requestState === "round 1" ? asking({ step2: form("Step 2: color?", "color") }, "round 2") : said("complete");
  },
  test_input_required_result_capabilities: (params, { capabilities }) => {
    const all = [["elicitation", { user_name: form("Name?", "name") }], ["sampling", { greeting: sampling("Greet") }], ["roots", { client_roots: roots }]];
    const asked = Object.assign({}, ...all.filter(([name]) => capabilities[name]).map(([, request]) => request));
    return params.inputResponses || !Object.keys(asked).length ? said("complete") : asking(asked);
  },
  greet: (params) => said(`Hello, ${params.arguments?.name}!`),
  slow_compute: async (params, request) => {
    const seconds = params.arguments?.seconds ?? 1;
    const work = async (task) => {
      for (let waited = 0; waited < seconds * 1000 && !task?.stopped; waited += 50) await pause(50);
      return said(`done after ${seconds} seconds`);
    };
    return request.tasks ? begin(work) : work();
  },
  failing_job: (params, request) => required(request, async () => ({ ...(await pause(500), said("failed")), isError: true })),
  protocol_error_job: (params, request) => {
    const work = async () => {
      await pause(200);
      throw fault(-32603, "a failure of the protocol");
    };
    return request.tasks ? begin(work) : work();
  },
  confirm_delete: (params, request) => required(request, async (task) => said(JSON.stringify(await task.ask({ confirm: form("Delete?", "confirm", "boolean") })))),
  multi_input: (params, request) =>
    required(request, async (task) => said(JSON.stringify(await task.ask({ a: form("A?", "value"), b: form("B?", "value") })))),
  test_tool_with_task: (params, request) => {
    requires(request.tasks ? { capabilities: { tasks: {} } } : request, "tasks", { extensions: { [TASKS]: {} } });
    return answer(params, "user_name") ? begin(async () => (await pause(200), said(`Hello, ${answer(params, "user_name").content?.name}!`))) : asking({ user_name: form("Name?", "name") });
  },
};

function confirmed({ requestState }) {
  if (requestState === undefined) return asking({ confirm: form("Please confirm", "ok", "boolean") }, "confirm");
  if (requestState !== "confirm") throw fault(-32602, "requestState was tampered with");
  return said("state-ok");
}

const tasks = new Map();

// Starts a task, which `work` runs.
function begin(work) {
  const now = new Date().toISOString();
  const task = { taskId: randomUUID(), status: "working", createdAt: now, lastUpdatedAt: now, ttlMs: 300000, pollIntervalMs: 100 };
  const state = { task, answers: {} };
  const change = (fields) => Object.assign(task, fields, { lastUpdatedAt: new Date().toISOString() });
  state.ask = (inputRequests) => {
    change({ status: "input_required", inputRequests });
    return new Promise((resolve, reject) => (state.answered = () => {
      const open = Object.entries(inputRequests).filter(([key]) => !(key in state.answers));
      if (state.stopped) return reject(new Error("cancelled"));
      if (open.length) return change({ inputRequests: Object.fromEntries(open) });
      delete task.inputRequests;
      change({ status: "working" });
      resolve(state.answers);
    }));
  };
  const end = (fields) => change(state.stopped ? { status: "cancelled" } : fields);
  work(state).then(
    (result) => end({ status: "completed", result: { resultType: "complete", ...result } }),
    (error) => end({ status: "failed", error: { code: error.code ?? -32603, message: error.message } }),
  );
  tasks.set(task.taskId, state);
  return { resultType: "task", ...task };
}

const required = (request, work) => {
  requires(request.tasks ? { capabilities: { tasks: {} } } : request, "tasks", { extensions: { [TASKS]: {} } });
  return begin(work);
};
const known = ({ taskId }) => tasks.get(taskId) ?? (() => { throw fault(-32602, "unknown task"); })();

const schemas = {
  test_custom_header: { properties: { value: { type: "string", "x-mcp-header": "Value" } }, required: ["value"] },
  json_schema_2020_12_tool: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $defs: { address: { $anchor: "address", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
    properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
    allOf: [{ anyOf: [{ required: ["name"] }, { required: ["address"] }] }],
    if: { required: ["address"] },
    then: { properties: { address: { required: ["street"] } } },
    else: { required: ["name"] },
    additionalProperties: false,
  },
};

const resources = {
  "test://static-text": { mimeType: "text/plain", text: "The content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
};
const prompt = (...contents) => ({ messages: contents.map((content) => ({ role: "user", content })) });
const prompts = {
  test_simple_prompt: () => prompt(text("This is a simple prompt for testing.")),
  test_prompt_with_arguments: ({ arguments: { arg1, arg2 } }) => prompt(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  test_prompt_with_embedded_resource: ({ arguments: given }) =>
    prompt(embedded(given?.resourceUri ?? "test://static-text", "text/plain", "Embedded content."), text("Please use it.")),
  test_prompt_with_image: () => prompt(image, text("Please look at it.")),
  test_input_required_result_prompt: (params) =>
    answer(params, "user_context") ? prompt(text("with context")) : asking({ user_context: form("Context?", "context") }),
};

const cached = { ttlMs: 60000, cacheScope: "public" };
const methods = {
  "server/discover": () => ({
    ...cached,
    supportedVersions: ["2026-07-28"],
    capabilities: {
      tools: { listChanged: true }, prompts: { listChanged: true }, resources: {}, logging: {}, completions: {}, extensions: { [TASKS]: {} },
    },
    serverInfo: { name: "conformance-server", version: "1" },
  }),
  "tools/list": () => ({
    ...cached,
    tools: Object.keys(tools).map((name) => ({ name, description: `The tool ${name}.`, inputSchema: { type: "object", ...schemas[name] } })),
  }),
  "tools/call": (params, request) => (tools[params.name] ?? (() => { throw fault(-32602, "unknown tool"); }))(params, request),
  "resources/list": () => ({ ...cached, resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri, mimeType })) }),
  "resources/templates/list": () => ({ ...cached, resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }] }),
  "resources/read": ({ uri }) => {
    const id = uri.match(/^test:\/\/template\/(.*)\/data$/)?.[1];
    const found = id ? { mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) } : resources[uri];
    if (!found) throw fault(-32602, "Resource not found", { uri });
    return { ...cached, contents: [{ uri, ...found }] };
  },
  "prompts/list": () => ({
    ...cached,
    prompts: Object.keys(prompts).map((name) => ({
      name,
      description: `The prompt ${name}.`,
      arguments: name.endsWith("arguments") ? ["arg1", "arg2"].map((name) => ({ name, required: true })) : [],
    })),
  }),
  "prompts/get": (params) => prompts[params.name](params),
  "completion/complete": () => ({ completion: { values: ["test"], total: 1, hasMore: false } }),
  "tasks/get": (params) => ({ ...known(params).task }),
  "tasks/update": (params) => {
    const state = known(params);
    Object.assign(state.answers, params.inputResponses);
    state.answered?.();
    return {};
  },
  "tasks/cancel": (params) => {
    const state = known(params);
    state.stopped = true;
    state.answered?.();
    return {};
  },
};

const server = createServer(async (incoming, outgoing) => {
  let body = "";
  for await (const part of incoming) body += part;
  const { id, method, params = {} } = JSON.parse(body);
  if (id === undefined) return outgoing.writeHead(202).end();
  const meta = params._meta ?? {};
  const capabilities = meta["io.modelcontextprotocol/clientCapabilities"] ?? {};
  let isStream = false;
  const send = (message) => {
    if (!isStream) outgoing.writeHead(200, { "Content-Type": "text/event-stream" });
    isStream = true;
    outgoing.write(`data: ${JSON.stringify(message)}\n\n`);
  };
  if (method === "subscriptions/listen") {
    const own = { "io.modelcontextprotocol/subscriptionId": id };
    send({ jsonrpc: "2.0", method: "notifications/subscriptions/acknowledged", params: { notifications: params.notifications, _meta: own } });
    streams.set(id, send);
    outgoing.on("close", () => streams.delete(id));
    return;
  }
  const request = {
    send, capabilities, token: meta.progressToken, level: meta["io.modelcontextprotocol/logLevel"], tasks: capabilities.extensions?.[TASKS],
  };
  let reply;
  try {
    if (!methods[method]) throw fault(-32601, "unknown method");
    reply = { result: { resultType: "complete", ...(await methods[method](params, request)) } };
  } catch ({ code = -32603, message, data }) {
    reply = { error: { code, message, data } };
  }
  const message = { jsonrpc: "2.0", id, ...reply };
  if (isStream) return send(message), outgoing.end();
  outgoing.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(message));
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));

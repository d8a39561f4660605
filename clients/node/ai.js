// Vercel AI SDK: tools whose calls are decided before they run. `ai.d.ts` documents what is exported.

export function govern(governor, tools, options) {
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, governed(governor, name, tool, options)]));
}

function governed(governor, name, tool, options) {
  if (typeof tool.execute !== "function") {
    throw new TypeError(`govern: ${name} has no execute: it runs elsewhere, and has to be decided on there`);
  }
  const asked = (input, { toolCallId }) => ({ ...options, tool: name, arguments: input, callId: toolCallId });
  const execute = (input, call) => governor.toolCall(asked(input, call), () => tool.execute(input, call));
  if (tool.execute.constructor.name !== "AsyncGeneratorFunction") return { ...tool, execute };
  // A tool that yields preliminary results: they go on as they come, and the last is the result.
  const generate = async function* (input, call) {
    const parts = [];
    let wake = () => {};
    const done = governor.toolCall(asked(input, call), async () => {
      for await (const part of tool.execute(input, call)) {
        parts.push(part);
        wake();
      }
    });
    let ended = false;
    const end = () => ((ended = true), wake());
    done.then(end, end);
    while (!ended || parts.length > 0) {
      if (parts.length > 0) yield parts.shift();
      else await new Promise((resolve) => (wake = resolve));
    }
    await done;
  };
  return { ...tool, execute: generate };
}

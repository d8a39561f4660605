import type { ToolSet } from "ai";
import type { CallOptions, Governor } from "./index.js";

/**
 * The same tools, each call decided on before it runs and reported after it. What is refused does not run: it throws
 * `Denied`, which the SDK shows the model as a tool error. A tool without `execute` is a `TypeError`.
 *
 *     generateText({ model, tools: govern(governor, { readFile }, { agentId: "support-1" }), prompt })
 */
export function govern<T extends ToolSet>(governor: Governor, tools: T, options: CallOptions): T;

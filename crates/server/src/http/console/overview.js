// The governor's state: each component, today's numbers, and the latencies.

import { call, repeat } from "./api.js";
import { announce, badge, el, facts, faultLine, foreign, number, setText, table, time } from "./dom.js";

export const title = "Overview";

const EVERY = 5_000;

const COMPONENTS = {
  gateway: ["Gateway", "decisions can be made"],
  trustEngine: ["Trust engine", "stored trust is valid"],
  proofChain: ["Proof chain", "every verification succeeded"],
  intentParser: ["Intent parser", "a simple request is parsed"],
  database: ["Database", "the index answers"],
};

const METRICS = {
  activeAgents: "Active agents",
  decisionsToday: "Decisions today (UTC)",
  escalationsToday: "Escalations today (UTC)",
  proofChainLength: "Records in the chain",
};

const LATENCIES = { p50Ms: "Median", p90Ms: "90th percentile", p99Ms: "99th percentile", maxMs: "Longest", };

const span = (seconds) => {
  const parts = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  const found = parts.findIndex(([size]) => seconds >= size);
  const from = found < 0 ? parts.length - 1 : found;
  let left = seconds;
  return parts.slice(from, from + 2).map(([size, unit]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return `${count} ${unit}`;
  }).join(" ");
};

export const milliseconds = (value) => {
  if (typeof value !== "number") return "–";
  if (value === 0) return "0 ms";
  const digits = (shown) => number(Number(shown.toPrecision(3)));
  return value < 0.9995 ? `${digits(value * 1000)} µs` : `${digits(value)} ms`;
};

const values = (names) => Object.fromEntries(Object.keys(names).map((name) => [name, el("span", {}, "–")]));
const shownAs = (names, places) => facts(Object.entries(names).map(([name, label]) => [label, places[name]]));

export const show = (root, signal) => {
  const whole = el("p", { class: "whole" }, "Asking the server…");
  const { line, told } = faultLine(() => { if (before === null) setText(whole, ""); });
  const warnings = el("ul", { class: "warnings", hidden: true, "aria-label": "Warnings" });
  const [metrics, latencies] = [values(METRICS), values(LATENCIES)];
  const { made, body, row } = table("Components", ["Component", "Health", "What is checked"]);
  const healths = {};
  for (const [name, [label, what]] of Object.entries(COMPONENTS)) {
    healths[name] = el("span", {}, "–");
    body.append(row([label, healths[name], what]));
  }
  const latencyTitle = el("h2", {}, "Decision latency");
  const footer = el("p", { class: "hint" });
  root.append(
    line, whole, warnings,
    el("h2", {}, "In numbers"), el("div", { class: "tiles" }, shownAs(METRICS, metrics)),
    latencyTitle, el("div", { class: "tiles" }, shownAs(LATENCIES, latencies)),
    made, footer,
  );

  let before = null;
  let warned = "";
  const update = (status) => {
    if (before !== status.status) {
      const overall = { healthy: "All is well.", degraded: "Works, with a fault.", unhealthy: "Does not work." };
      whole.replaceChildren(badge(status.status), ` ${overall[status.status] ?? ""}`);
      if (before !== null) announce(`The governor is ${status.status} now`);
      before = status.status;
    }
    const list = status.warnings ?? [];
    if (warned !== list.join("\n")) {
      warned = list.join("\n");
      warnings.replaceChildren(...list.map((warning) => el("li", {}, foreign(warning))));
      warnings.hidden = list.length === 0;
    }
    for (const [name, place] of Object.entries(healths)) {
      const health = status.components[name] ?? "unknown";
      if (place.textContent !== health) place.replaceChildren(badge(health));
    }
    for (const [name, place] of Object.entries(metrics)) setText(place, number(status.metrics[name]));
    const { latency } = status.metrics;
    for (const [name, place] of Object.entries(latencies)) setText(place, latency.count > 0 ? milliseconds(latency[name]) : "–");
    setText(latencyTitle, `Decision latency, ${number(latency.count)} in the last ${Math.round(latency.windowSeconds / 60)} minutes`);
    footer.replaceChildren("Rulekeep ", foreign(status.version, 40), `, up for ${span(status.uptime)}, as of `, time(status.timestamp), " UTC");
  };
  repeat(EVERY, async () => update(await call("/admin/status", { signal })), signal, told);
};

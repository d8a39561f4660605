// One agent: its current trust, the trust curve, and its decisions; and the list of agents to choose from.

import { Refused, address, call, part, patiently, repeat } from "./api.js";
import { announce, badge, button, code, el, enable, facts, faultLine, field, foreign, number, percent, plain, plural, setText, svg, table, time } from "./dom.js";

export const title = "Agent";

const EVERY = 10_000;
const CHANGES = 100;
const AGENTS = 25;
const TIERS = [["T0", 0], ["T1", 200], ["T2", 350], ["T3", 500], ["T4", 650], ["T5", 800]];

let chosen = "";
export const prepare = (agentId) => { chosen = agentId; };
export const forget = () => { chosen = ""; };

/** The trust curve as a picture, `width` wide, oldest change first. The table of changes is its text equivalent. */
const curve = (changes, width, label) => {
  const [height, left, right, top, bottom] = [260, 40, 34, 12, 28];
  const moments = changes.map((change) => new Date(change.timestamp).getTime());
  const [from, to] = [moments[0], moments[moments.length - 1]];
  const across = (place) => {
    const share = to > from ? (moments[place] - from) / (to - from) : place / Math.max(1, moments.length - 1);
    return left + share * (width - left - right);
  };
  const up = (score) => top + (1 - score / 1000) * (height - top - bottom);
  const lines = TIERS.flatMap(([tier, lowest]) => [
    svg("line", { x1: left, x2: width - right, y1: up(lowest), y2: up(lowest), class: "grid" }),
    svg("text", { x: left - 6, y: up(lowest) + 4, class: "axis", "text-anchor": "end" }, String(lowest)),
    svg("text", { x: width - right + 6, y: up(lowest) - 4, class: "axis" }, tier),
  ]);
  // A score holds until the next change.
  const steps = changes.map((change, place) => `${place === 0 ? `M${left} ${up(change.from)}` : ""}H${across(place).toFixed(1)}V${up(change.to).toFixed(1)}`);
  const dots = changes.length > 60 ? [] : changes.map((change, place) =>
    svg("circle", { cx: across(place).toFixed(1), cy: up(change.to).toFixed(1), r: 3, class: "dot" }));
  const day = (moment) => new Date(moment).toISOString().slice(0, 16).replace("T", " ");
  return svg("svg", { class: "curve", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`, width, height },
    lines, svg("path", { d: steps.join(""), class: "line" }), dots,
    svg("text", { x: left, y: height - 8, class: "axis" }, day(from)),
    to > from && width > 420 ? svg("text", { x: width - right, y: height - 8, class: "axis", "text-anchor": "end" }, day(to)) : null);
};

const nowFacts = (agent, stats) => facts([
  ["Score", number(agent.score)],
  ["Tier", `${plain(agent.tier)} ${plain(agent.tierName)}`],
  ["Decisions", number(stats.totalRecords)],
  ["Reported successes", percent(stats.successRate)],
  ["Score at decisions, mean", number(Math.round(stats.averageTrustScore))],
]);

const breakdown = (stats) => {
  const { made, body, row } = table("Decisions of this agent", ["Decision", "How many"]);
  for (const [word, count] of Object.entries(stats.decisionBreakdown)) body.append(row([badge(word), number(count)]));
  return made;
};

/** The panel of one agent. Returns a function that reloads it. */
const panel = (root, agentId, signal, { go }) => {
  let pageNumber = 1;
  let history = null;
  let seen = "";
  const heading = el("h2", { id: "agent-title", tabindex: "-1" }, foreign(agentId, 80));
  const { line, told } = faultLine(() => {
    if (seen !== "") return;
    setText(count, "");
    pages.hidden = true;
  });
  const facts = el("div", { class: "tiles" });
  const counts = el("div", {});
  const picture = el("div", { class: "picture" });
  const count = el("p", { class: "hint" }, "Asking the server…");
  const { made, body, row } = table("Changes of trust, newest first", ["Time (UTC)", "Score", "Tier", "Cause", "Note", "Record"]);
  const newer = button("Newer changes", () => { if (pageNumber > 1) turn(pageNumber - 1); });
  const older = button("Older changes", () => { if (history?.hasMore) turn(pageNumber + 1); });
  const pages = el("nav", { class: "pages", "aria-label": "Pages of changes" }, newer, older);
  const toDecisions = button("Its decisions", () => go("decisions", agentId));
  root.replaceChildren(heading, line, facts, el("p", {}, toDecisions), el("h3", {}, "Trust over time"), count, picture, pages, made, counts);

  const label = (items) => {
    const [last, first] = [items[0], items[items.length - 1]];
    return `Curve of the score of ${plain(agentId)}: from ${first.from} to ${last.to} in ${plural(items.length, "change")}. The table below has each of them.`;
  };
  const draw = () => {
    const items = history?.items ?? [];
    const width = Math.max(240, Math.min(960, Math.floor(picture.clientWidth)));
    picture.replaceChildren(...(items.length > 0 ? [curve(items.toReversed(), width, label(items))] : []));
  };
  const observer = new ResizeObserver(() => draw());
  observer.observe(picture);
  signal.addEventListener("abort", () => observer.disconnect(), { once: true });

  const change = (from, to) => (from === to ? String(to) : `${from} → ${to}`);
  const make = (entry) => row([
    time(entry.timestamp), change(entry.from, entry.to), change(plain(entry.fromTier), plain(entry.toTier)),
    foreign(entry.cause, 40), foreign(entry.note ?? "–", 300), entry.proofId ? code(entry.proofId) : "–",
  ]);

  const load = async () => {
    const asked = pageNumber;
    const path = `/agents/${part(agentId)}`;
    const [agent, found, stats] = await Promise.all([
      call(path, { signal }),
      call(address(`${path}/trust`, { page: asked, pageSize: CHANGES }), { signal }),
      call(address("/proof/stats", { entityId: agentId }), { signal }),
    ]);
    if (asked !== pageNumber) return;
    const sees = JSON.stringify([agent, found, stats]);
    if (sees === seen) return;
    const isFirst = seen === "";
    seen = sees;
    history = found;
    facts.replaceChildren(nowFacts(agent, stats));
    counts.replaceChildren(breakdown(stats));
    body.replaceChildren(...found.items.map(make));
    const from = (asked - 1) * CHANGES + 1;
    setText(count, found.items.length === 0 ? "Its trust has not changed." : `Changes ${number(from)} to ${number(from + found.items.length - 1)} of ${number(found.total)}`);
    pages.hidden = asked === 1 && !found.hasMore;
    enable(newer, asked > 1);
    enable(older, found.hasMore);
    draw();
    announce(isFirst ? `Score ${agent.score}, tier ${agent.tier}` : `The agent's score is ${agent.score} now`);
  };
  const atOnce = repeat(EVERY, load, signal, told);
  const turn = (to) => {
    pageNumber = to;
    seen = "";
    atOnce();
  };
  return heading;
};

/** The list of all agents, page by page, by id. */
const listing = (root, signal, pick) => {
  let pageNumber = 1;
  let page = null;
  const count = el("p", { class: "hint" }, "Asking the server…");
  const { line, told } = faultLine(() => { if (page === null) setText(count, ""); });
  const { made, body, row } = table("All agents, by id", ["Agent", "Score", "Tier", "State", "More"]);
  const previous = button("Previous agents", () => { if (pageNumber > 1) load(pageNumber - 1); });
  const next = button("Next agents", () => { if (page?.hasMore) load(pageNumber + 1); });
  root.append(el("h2", {}, "All agents"), line, count, made, el("nav", { class: "pages", "aria-label": "Pages of agents" }, previous, next));
  const make = (agent) => {
    const more = button("Show", () => pick(agent.agentId), "small");
    more.setAttribute("aria-label", `Show ${plain(agent.agentId)}`);
    return row([foreign(agent.agentId, 80), number(agent.score), `${plain(agent.tier)} ${plain(agent.tierName)}`, foreign(agent.state, 40), more]);
  };
  let turning = null;
  const load = async (asked) => {
    pageNumber = asked;
    // The previous page may still be loading.
    turning?.abort();
    turning = new AbortController();
    const turned = AbortSignal.any([signal, turning.signal]);
    try {
      page = await patiently(address("/admin/agents", { page: asked, pageSize: AGENTS }), { signal: turned, told });
    } catch (error) {
      if (turned.aborted) return;
      if (!(error instanceof Refused)) throw error;
      told(error);
      return;
    }
    told();
    body.replaceChildren(...page.items.map(make));
    const from = (asked - 1) * AGENTS + 1;
    setText(count, page.total === 0 ? "There are no agents." : `${number(from)} to ${number(from + page.items.length - 1)} of ${number(page.total)}`);
    enable(previous, asked > 1);
    enable(next, page.hasMore);
  };
  load(1);
};

export const show = (root, signal, frame) => {
  let current = null;
  const input = el("input", { id: "agent-id", type: "text", required: true, autocomplete: "off", autocapitalize: "off", spellcheck: "false", maxlength: "256" });
  const form = el("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); pick(input.value, true); } },
    field("Agent’s id", input), el("button", { type: "submit" }, "Show"));
  const place = el("div", {});
  const all = el("div", {});
  root.append(form, place, all);
  const pick = (agentId, takesFocus) => {
    if (agentId === "") return;
    chosen = agentId;
    input.value = agentId;
    current?.abort();
    current = new AbortController();
    const heading = panel(place, agentId, AbortSignal.any([signal, current.signal]), frame);
    if (takesFocus) heading.focus();
  };
  if (chosen !== "") pick(chosen, false);
  listing(all, signal, (agentId) => pick(agentId, true));
};

// The newest decisions of all agents, live; older ones page by page.

import { Refused, address, call, patiently, part, repeat } from "./api.js";
import { announce, badge, block, button, code, dialog, el, enable, facts, faultLine, field, follow, foreign, number, plain, plural, refusal, setText, table, time } from "./dom.js";
import { written } from "./exact.js";

export const title = "Decisions";

const EVERY = 2_000;
const PAGE = 25;
const TELL_EVERY = 15_000;
const WORDS = ["ALLOW", "DENY", "ESCALATE", "DEGRADE"];
const COLUMNS = ["Time (UTC)", "Agent, trust", "Decision, risk", "Action", "Why", "Outcome", "More"];

let filter = { entityId: "", decision: "" };

/** Shows the decisions of a single agent. */
export const prepare = (agentId) => { filter = { entityId: agentId, decision: "" }; };
export const forget = () => { filter = { entityId: "", decision: "" }; };

/** What an intent asks for: the action, the tool and the commands. */
export const requestOf = (intent) => {
  // A caller's own context may have any form.
  const acts = [intent?.context?.facts?.acts].flat().filter((act) => act instanceof Object);
  const tool = acts.map((act) => act.tool).find((name) => name !== undefined);
  const commands = acts.flatMap((act) => [act.commands ?? []].flat().slice(0, 1));
  return [
    ["Action", intent?.parsedAction && foreign(String(intent.parsedAction))],
    ["Tool", tool && foreign(String(tool))],
    ["Commands", commands.length > 0 && block(commands.join("\n"), "Commands")],
  ];
};

/** The request text, with its heading, if it is kept. */
export const requestText = (text) => (typeof text === "string" ? [el("h3", {}, "Request text"), block(text, "Request text")] : []);

/** What a record was asked for, on two lines: the action and its target, the tool and the command. */
const actionOf = (request) => [
  request?.action ? foreign(request.action, 80) : "–",
  request?.tool || request?.command ? el("div", { class: "hint" }, foreign([request.tool, request.command].filter(Boolean).join(" "), 80)) : null,
].filter(Boolean);

const evidenceOf = (record) => {
  if (record.evidenceErased) return el("p", {}, "The evidence was erased.");
  if (record.evidence === undefined || record.evidence === null) return el("p", {}, "This record has no evidence.");
  return block(written(record.evidence), "Evidence");
};

/** A record with its evidence, in a dialog. */
export const details = async (id, signal, { go }) => {
  const content = el("div", {}, el("p", { role: "status" }, "Asking the server…"));
  const shown = dialog("Decision", content);
  const gone = new AbortController();
  shown.addEventListener("close", () => gone.abort());
  signal.addEventListener("abort", () => shown.close(), { once: true, signal: gone.signal });
  const told = (error) => content.replaceChildren(el("p", { class: "error", role: "alert" }, refusal(error)));
  try {
    const options = { signal: AbortSignal.any([signal, gone.signal]), isExact: true, told };
    const record = await patiently(address(`/proof/records/${part(id)}`, { evidence: true }), options);
    const toAgent = button("Show this agent", () => go("agent", record.entityId));
    const text = record.evidence?.input?.text;
    content.replaceChildren(
      ...requestText(text),
      facts([
        ...requestOf(record.evidence?.intent),
        ["Decision", badge(record.decision)],
        ["Why", foreign(record.reasoning)],
        ["Agent", foreign(record.entityId)],
        ["Risk", badge(record.riskLevel)],
        ["Trust", `${number(record.trustScore)}, ${plain(record.trustTier)}`],
        ["Outcome", record.outcome ? badge(record.outcome) : "not reported"],
        ["Time (UTC)", time(record.timestamp)],
        ["Record", code(record.id)],
        ["Intent", code(record.intentId)],
        ["Answers", record.resolves && code(record.resolves)],
        ["Repeats", record.retryOf && code(record.retryOf)],
        ["Hash", code(record.hash)],
        ["Hash before", code(record.previousHash)],
      ]),
      el("p", {}, toAgent), el("h3", {}, "Evidence"), evidenceOf(record),
    );
  } catch (error) {
    if (gone.signal.aborted || signal.aborted) return;
    if (!(error instanceof Refused)) throw error;
    told(error);
  }
};

export const show = (root, signal, frame) => {
  // The first page is live; `behind` holds the cursors of the pages passed so far.
  let behind = [];
  let page = null;
  let isPaused = false;
  let isFirstFill = true;
  let untold = 0;
  let toldAt = -Infinity;

  const agentInput = el("input", { id: "filter-agent", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", maxlength: "256" });
  agentInput.value = filter.entityId;
  const decisionInput = el("select", { id: "filter-decision" }, el("option", { value: "" }, "All"), WORDS.map((word) => el("option", { value: word }, word)));
  decisionInput.value = filter.decision;
  const pauseButton = button("Pause", () => pause(!isPaused), "quiet");
  pauseButton.setAttribute("aria-pressed", "false");
  const form = el("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); apply(); } },
    field("Agent", agentInput), field("Decision", decisionInput), el("button", { type: "submit" }, "Show"),
    button("Clear", () => { agentInput.value = ""; decisionInput.value = ""; apply(); }, "quiet"), pauseButton);
  decisionInput.addEventListener("change", () => apply());

  const count = el("p", { class: "hint" }, "Asking the server…");
  const { line, told } = faultLine(() => { if (isFirstFill) setText(count, ""); });
  const { made, body, row } = table("Decisions, newest first", COLUMNS);
  const newer = button("Newest", () => turn([]), "");
  const previous = button("Newer", () => turn(behind.slice(0, -1)), "");
  const older = button("Older", () => { if (page?.nextCursor) turn([...behind, page.nextCursor]); }, "");
  root.append(form, line, count, made, el("nav", { class: "pages", "aria-label": "Pages of decisions" }, newer, previous, older));

  const make = (record) => {
    const more = button("Details", () => details(record.id, signal, frame), "small");
    more.setAttribute("aria-label", `Details of ${plain(record.decision)} for ${plain(record.entityId)} at ${plain(record.timestamp)}`);
    return row([
      time(record.timestamp),
      [foreign(record.entityId, 60), el("div", { class: "hint" }, `${number(record.trustScore)}\u00a0${plain(record.trustTier)}`)],
      [badge(record.decision), el("br"), badge(record.riskLevel)],
      actionOf(record.request), foreign(record.reasoning, 160),
      record.outcome ? badge(record.outcome) : "–", more,
    ]);
  };

  const tell = (fresh) => {
    untold += fresh;
    if (untold === 0 || performance.now() - toldAt < TELL_EVERY) return;
    announce(plural(untold, "new decision"));
    untold = 0;
    toldAt = performance.now();
  };

  const load = async () => {
    const [asked, place] = [filter, behind];
    const isLive = place.length === 0;
    if (!isFirstFill && (isPaused || !isLive)) return;
    const cursor = isLive ? "start" : place[place.length - 1];
    const found = await call(address("/admin/records", { ...asked, pageSize: PAGE, cursor, request: true }), { signal });
    if (asked !== filter || place !== behind) return;
    page = found;
    const options = { id: (record) => record.id, version: (record) => record.outcome ?? "", make };
    const fresh = follow(body, found.items, options);
    if (!isFirstFill) tell(fresh.length);
    else announce(found.total === 0 ? "No decisions" : `${plural(found.items.length, "decision")} shown of ${number(found.total)}`);
    isFirstFill = false;
    const first = place.length * PAGE + 1;
    const range = `${number(first)} to ${number(first + found.items.length - 1)} of ${number(found.total)}`;
    setText(count, found.items.length === 0 ? "No decisions match." : `${range}${isLive ? isPaused ? ", paused" : ", live" : ", as it was when paging began"}`);
    for (const back of [newer, previous]) enable(back, !isLive);
    enable(older, Boolean(found.nextCursor));
  };
  const atOnce = repeat(EVERY, load, signal, told);

  const turn = (cursors) => {
    behind = cursors;
    page = null;
    refill();
  };
  const refill = () => {
    isFirstFill = true;
    untold = 0;
    body.replaceChildren();
    atOnce();
  };
  const apply = () => {
    filter = { entityId: agentInput.value, decision: decisionInput.value };
    turn([]);
  };
  const pause = (paused) => {
    isPaused = paused;
    pauseButton.setAttribute("aria-pressed", String(paused));
    if (page && behind.length === 0) setText(count, count.textContent.replace(/, (live|paused)$/, paused ? ", paused" : ", live"));
    if (!paused) atOnce();
  };
};

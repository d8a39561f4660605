// The pending escalations, and the reviewer's answer.

import { Busy, Lost, Refused, address, call, part, patiently, repeat } from "./api.js";
import { announce, badge, block, button, code, dialog, el, enable, facts, faultLine, field, follow, foreign, number, plain, plural, refusal, setText, table, time } from "./dom.js";
import { requestOf, requestText } from "./decisions.js";
import { written } from "./exact.js";

export const title = "Escalations";

const EVERY = 4_000;
const PAGE = 25;

// The name of the signed-in person; sent with each answer, and forgotten with the key.
let reviewer = "";
export const forget = () => { reviewer = ""; };

const list = (values) => (values?.length ? el("ul", {}, values.map((value) => el("li", {}, code(value)))) : "nothing");

const needs = (escalation) => el("ul", {}, escalation.needs.map((need) => {
  const who = need.reviewer ? foreign(need.reviewer, 200) : "anybody but the requester";
  const people = need.people?.length ? [": ", foreign(need.people.join(", "), 1000)] : [];
  return el("li", {}, plural(need.approvals, "approval"), " of ", who, ...people);
}));

const votes = (escalation) => (escalation.votes.length === 0 ? "none" : el("ul", {}, escalation.votes.map((vote) =>
  el("li", {}, foreign(vote.reviewer, 200), vote.approved ? " approved" : " rejected", vote.note ? [": ", foreign(vote.note)] : null))));

const shownFacts = (escalation) => facts([
  ...requestOf(escalation.intent),
  ["Agent", foreign(escalation.agentId)],
  ["Reason", foreign(escalation.reason)],
  ["Risk", badge(escalation.riskLevel)],
  ["Asked (UTC)", time(escalation.createdAt)],
  ["Expires (UTC)", time(escalation.expiresAt)],
  ["Required approvals", needs(escalation)],
  ["Answers so far", votes(escalation)],
  ["Approval grants", list(escalation.onApproval.granted)],
  ["Approval withholds", list(escalation.onApproval.denied)],
  ["Digest", code(escalation.digest)],
  ["Record", code(escalation.proofId)],
]);

const outcome = (answered, isApproved) => {
  if (answered.state === "pending") return "Your answer is recorded; further approvals are required.";
  return isApproved ? `Approved. Its state is now ${answered.state}.` : `Rejected. Its state is now ${answered.state}.`;
};

// Nobody can approve what they cannot see.
const unreadable = (escalation) =>
  el("p", { class: "error" }, "It cannot be read, so it can be rejected but not approved: ", foreign(escalation.unreadable), ".");

/** Shows an escalation and takes the answer; only what was on the screen is approved, by its digest. */
const review = (escalation, signal, changed) => {
  const nameInput = el("input", { id: "reviewer", type: "text", required: true, maxlength: "256", autocomplete: "off", spellcheck: "false" });
  nameInput.value = reviewer;
  const noteInput = el("textarea", { id: "note", rows: "3", maxlength: "4096" });
  const fault = el("p", { class: "error", role: "alert", id: "review-error" });
  const told = el("p", { role: "status" });
  const approve = button("Approve", () => answer("approve"), "main");
  const reject = button("Reject", () => answer("reject"), "danger");
  const form = el("form", { onsubmit: (event) => event.preventDefault() },
    field("Your name, as reviewer", nameInput, "It is recorded in the chain with the answer."),
    field("Note (may be left empty)", noteInput), fault, el("div", { class: "bar" }, escalation.intent ? approve : null, reject));
  const constraints = block(written(escalation.onApproval.constraints), "Constraints of the approval");
  const intent = escalation.intent ? block(written(escalation.intent), "Request") : unreadable(escalation);
  const shown = dialog("Escalation", ...requestText(escalation.input), shownFacts(escalation), el("h3", {}, "Request"), intent,
    el("h3", {}, "Constraints of the approval"), constraints, el("h3", {}, "Your answer"), form, told);
  const gone = new AbortController();
  shown.addEventListener("close", () => gone.abort());
  signal.addEventListener("abort", () => shown.close(), { once: true, signal: gone.signal });

  // A statement is one answer: repeating it after a lost connection does not answer twice.
  const keys = { approve: crypto.getRandomValues(new Uint32Array(4)).join("-"), reject: crypto.getRandomValues(new Uint32Array(4)).join("-") };
  let isBusy = false;
  const busy = (now) => {
    isBusy = now;
    for (const one of [approve, reject]) enable(one, !now);
  };
  const answer = async (word) => {
    if (isBusy) return;
    setText(fault, "");
    nameInput.removeAttribute("aria-invalid");
    if (nameInput.value.trim() === "") {
      setText(fault, "Your name is missing.");
      nameInput.setAttribute("aria-invalid", "true");
      nameInput.focus();
      return;
    }
    reviewer = nameInput.value.trim();
    const body = { reviewer, digest: escalation.digest };
    if (noteInput.value.trim() !== "") body.note = noteInput.value;
    const idempotencyKey = `${keys[word]}-${fingerprint(JSON.stringify(body))}`;
    busy(true);
    setText(told, "Sending…");
    try {
      const answered = await call(`/admin/escalations/${part(escalation.id)}/${word}`, { method: "POST", body, signal, idempotencyKey });
      const text = outcome(answered, word === "approve");
      form.remove();
      setText(told, text);
      announce(text);
      shown.querySelector("button").focus();
      changed();
    } catch (error) {
      if (signal.aborted) return;
      setText(told, "");
      if (error instanceof Lost) setText(fault, "There was no response, so it is unknown whether your answer was recorded. Send it again: it counts once.");
      else if (error instanceof Busy) setText(fault, "The server asks to wait: nothing was sent. Try again when the message above is gone.");
      else if (error instanceof Refused) refused(error);
      else throw error;
    } finally {
      busy(false);
    }
  };
  const refused = (error) => {
    setText(fault, refusal(error));
    if (error.status === 409 || error.status === 404) changed();
  };
};

/** Distinguishes request bodies; nothing depends on its cryptographic strength. */
const fingerprint = (text) => {
  let sum = 0x811c9dc5;
  for (const character of text) sum = Math.imul(sum ^ character.codePointAt(0), 0x01000193) >>> 0;
  return sum.toString(16);
};

export const show = (root, signal) => {
  let pageNumber = 1;
  let page = null;
  let totalBefore = null;
  const fault = el("p", { class: "error", role: "alert" });
  const count = el("p", { class: "hint" }, "Asking the server…");
  const { line, told } = faultLine(() => { if (page === null) setText(count, ""); });
  const { made, body, row } = table("Pending escalations, newest first", ["Asked (UTC)", "Agent", "Risk", "Action", "Why", "Expires (UTC)", "Answer"]);
  made.hidden = true;
  const previous = button("Newer", () => { if (pageNumber > 1) turn(pageNumber - 1); });
  const older = button("Older", () => { if (page?.hasMore) turn(pageNumber + 1); });
  const pages = el("nav", { class: "pages", "aria-label": "Pages of escalations" }, previous, older);
  root.append(line, fault, count, made, pages);

  const openReview = async (id) => {
    setText(fault, "");
    try {
      const escalation = await patiently(`/escalations/${part(id)}`, { signal, isExact: true });
      if (escalation.state === "pending") review(escalation, signal, () => atOnce());
      else announce(`Its state is now ${escalation.state}.`);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refused)) throw error;
      setText(fault, refusal(error));
    }
  };
  const action = (escalation) => (escalation.intent ? foreign(escalation.intent.parsedAction, 60) : "cannot be read");
  const make = (escalation) => {
    const open = button("Review", () => openReview(escalation.id), "small");
    open.setAttribute("aria-label", `Review what ${plain(escalation.agentId)} asked at ${plain(escalation.createdAt)}`);
    return row([
      time(escalation.createdAt), foreign(escalation.agentId, 60), badge(escalation.riskLevel), action(escalation),
      foreign(escalation.reason, 160), time(escalation.expiresAt), open,
    ]);
  };
  const load = async () => {
    const asked = pageNumber;
    const found = await call(address("/admin/escalations", { state: "pending", page: asked, pageSize: PAGE }), { signal });
    if (asked !== pageNumber) return;
    // The last escalation of a page was answered.
    if (found.items.length === 0 && asked > 1) { turn(asked - 1); return; }
    page = found;
    follow(body, found.items, { id: (item) => item.id, version: (item) => `${item.votes.length} ${item.unreadable ?? ""}`, make });
    made.hidden = body.children.length === 0;
    const from = (asked - 1) * PAGE + 1;
    setText(count, found.total === 0 ? "No escalations are pending." : `${number(from)} to ${number(from + found.items.length - 1)} of ${number(found.total)} pending`);
    if (totalBefore === null) announce(found.total === 0 ? "No escalations are pending" : plural(found.total, "pending escalation"));
    else if (found.total > totalBefore) announce(`${plural(found.total, "pending escalation")} now`);
    totalBefore = found.total;
    pages.hidden = asked === 1 && !found.hasMore;
    enable(previous, asked > 1);
    enable(older, found.hasMore);
  };
  const atOnce = repeat(EVERY, load, signal, told);
  const turn = (to) => {
    pageNumber = to;
    atOnce();
  };
};

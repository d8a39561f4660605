// The proof log: its length, whether it verifies, and a complete verification.

import { Lost, Refused, Busy, call, repeat } from "./api.js";
import { announce, badge, button, code, el, enable, facts, faultLine, foreign, number, plural, refusal, setText } from "./dom.js";
import { milliseconds } from "./overview.js";

export const title = "Chain";

const EVERY = 5_000;
// A verification reads the whole log.
const LONGEST = 30 * 60_000;

const found = (checked, took) => {
  const broken = checked.firstBroken;
  return [
    el("p", { class: "whole" }, badge(checked.valid ? "valid" : "broken"), checked.valid ? " The whole chain verifies." : " The chain is broken."),
    facts([
      ["Records checked", number(checked.records)],
      ["Hash of the last", code(checked.headHash)],
      ["Took", took < 1000 ? milliseconds(took) : `${(took / 1000).toFixed(1)} s`],
      ["Breaks at entry", broken && number(broken.sequence)],
      ["Kind", broken && foreign(broken.kind)],
      ["File", broken && [foreign(broken.file), `, byte ${number(broken.offset)}`]],
      ["Record", broken?.proofId && code(broken.proofId)],
      ["Expected", broken && foreign(broken.expected)],
      ["Found", broken && foreign(broken.found)],
    ]),
  ];
};

export const show = (root, signal) => {
  const [length, health, today] = [el("span", {}, "–"), el("span", {}, "–"), el("span", {}, "–")];
  const verify = button("Verify the whole chain", () => check(), "main");
  const { line, told: toldStatus } = faultLine();
  const told = el("p", { role: "status" });
  const result = el("div", {});
  root.append(
    line,
    el("div", { class: "tiles" }, facts([["Records in the chain", length], ["Health", health], ["Records today (UTC)", today]])),
    el("h2", {}, "Verification"),
    el("p", {}, "Each record contains the hash of the previous one. A verification reads the log from its first entry and recomputes every hash. Decisions continue while it runs."),
    el("p", {}, verify), told, result,
  );
  repeat(EVERY, async () => {
    const status = await call("/admin/status", { signal });
    setText(length, number(status.metrics.proofChainLength));
    setText(today, number(status.metrics.decisionsToday));
    if (health.textContent !== status.components.proofChain) health.replaceChildren(badge(status.components.proofChain));
  }, signal, toldStatus);

  let isRunning = false;
  const check = async () => {
    if (isRunning) return;
    isRunning = true;
    enable(verify, false);
    setText(told, "Verifying…");
    result.replaceChildren();
    const began = performance.now();
    try {
      const checked = await call("/admin/verification", { signal, longest: LONGEST });
      result.replaceChildren(...found(checked, performance.now() - began));
      setText(told, "");
      announce(checked.valid ? `The chain is valid: ${plural(checked.records, "record")} checked` : "The chain is broken");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Lost) setText(told, "There was no response, so the state of the chain is unknown. Verify again.");
      else if (error instanceof Busy) setText(told, "The server asks to wait: nothing was verified. Verify again when the message above is gone.");
      else if (error instanceof Refused) setText(told, refusal(error));
      else throw error;
    } finally {
      isRunning = false;
      enable(verify, true);
    }
  };
};

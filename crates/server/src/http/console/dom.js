// Elements, created by name and filled with text: no code reads a text as HTML.

const SVG = "http://www.w3.org/2000/svg";

// Invisible characters, and those that change how their neighbors are read: controls, bidirectional and other format
// characters, fillers, unusual blanks, unpaired surrogates, private and unassigned characters, and stacked combining marks.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}|(?<=\p{M}{3})\p{M}/gu;

const spelled = (character) => `\\u{${character.codePointAt(0).toString(16).padStart(4, "0")}}`;

/** The pieces of an external text, with invisible characters spelled out: `[text, isSpelled]`. */
const pieces = (text, keeps) => {
  const found = [];
  let from = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (keeps.includes(match[0])) continue;
    if (match.index > from) found.push([text.slice(from, match.index), false]);
    found.push([spelled(match[0]), true]);
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push([text.slice(from), false]);
  return found;
};

/** An external text as plain text, for attributes. */
export const plain = (text) => pieces(String(text), "").map(([piece]) => piece).join("");

const cut = (text, most) => {
  const characters = Array.from(text);
  // A word that is cut is left out, unless it is long.
  return characters.length > most ? `${characters.slice(0, most).join("").replace(/\s+\S{0,20}$/, "")}…` : text;
};

/** An external text, isolated from its surroundings. At most `most` characters are shown. */
export const foreign = (text, most = Infinity) => shown("bdi", cut(String(text ?? ""), most), "");

/** An external text of several lines. */
export const block = (text, label) => {
  const made = shown("pre", text, "\n");
  made.tabIndex = 0;
  made.setAttribute("role", "region");
  made.setAttribute("aria-label", label);
  return made;
};

const shown = (name, text, keeps) => {
  const made = document.createElement(name);
  for (const [piece, isSpelled] of pieces(text, keeps)) {
    made.append(...(isSpelled ? [el("span", { class: "spelled" }, piece)] : wrapped(piece)));
  }
  return made;
};

// The longest word that always stays on one line. A longer one may end a line after a sign, or after this many letters.
const WORD = 20;
const PARTS = /[^\p{L}\p{N}\p{M}]{0,4}(?:[\p{L}\p{N}]\p{M}*){1,20}[^\p{L}\p{N}\p{M}]{0,4}|.{1,20}/gsu;

/** A text as nodes, with the places where a line may end: `-` and `/` in a short word are none. */
const wrapped = (text) => text.split(/(\s+)/).flatMap((word) => {
  if (word.length > WORD) return word.match(PARTS).flatMap((part, place) => (place === 0 ? part : [el("wbr"), part]));
  return /[-/?!|}]\S/.test(word) ? el("span", { class: "whole-word" }, word) : word;
});

const fill = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return made;
};

/** An element with attributes, listeners (`onclick`) and children; a string child becomes text. */
export const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** An element of a picture. */
export const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/** A field with its label. */
export const field = (label, input, hint) => {
  if (hint) input.setAttribute("aria-describedby", `${input.id}-hint`);
  const below = hint ? el("p", { class: "hint", id: `${input.id}-hint` }, hint) : null;
  return el("div", { class: "field" }, el("label", { for: input.id }, label), input, below);
};

export const button = (text, onclick, kind = "") => el("button", { type: "button", class: kind, onclick }, text);

/** A disabled button keeps its place in the focus order. */
export const enable = (element, isOn) => element.setAttribute("aria-disabled", String(!isOn));

/** An identifier or a digest. */
export const code = (text) => el("code", {}, foreign(text));

/** Names and values. */
export const facts = (pairs) =>
  el("dl", {}, pairs.filter(([, value]) => value).map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));

/** A table with a caption; its roles are explicit because narrow screens show it as cards. */
export const table = (caption, columns) => {
  const body = el("tbody", { role: "rowgroup" });
  const heads = columns.map((name) => el("th", { scope: "col", role: "columnheader" }, name));
  const made = el("table", { role: "table" }, el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)), body);
  /** A row; the first cell is its header. */
  const row = (cells) => el("tr", { role: "row" }, cells.map((cell, place) => {
    const attributes = { "data-label": columns[place] };
    return place === 0
      ? el("th", { ...attributes, scope: "row", role: "rowheader" }, el("div", {}, cell))
      : el("td", { ...attributes, role: "cell" }, el("div", {}, cell));
  }));
  return { made, body, row };
};

/** A word of the API with its color; the color only repeats the text. */
export const badge = (word) => {
  const kind = String(word).toLowerCase().replace(/[^a-z]/g, "");
  return el("span", { class: `badge is-${kind}` }, foreign(word, 40));
};

const two = (number) => String(number).padStart(2, "0");

/** A time in UTC. */
export const time = (text) => {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) return foreign(text, 40);
  const day = `${moment.getUTCFullYear()}-${two(moment.getUTCMonth() + 1)}-${two(moment.getUTCDate())}`;
  const hour = `${two(moment.getUTCHours())}:${two(moment.getUTCMinutes())}:${two(moment.getUTCSeconds())}`;
  return el("time", { datetime: moment.toISOString() }, `${day} ${hour}`);
};

export const number = (value) => (typeof value === "number" ? value.toLocaleString("en") : "–");

export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

/** A share of 1, to one decimal; only nothing is 0 %, and only everything is 100 %. */
export const percent = (share) => {
  if (share > 0 && share < 0.0005) return "<0.1 %";
  if (share < 1 && share >= 0.9995) return ">99.9 %";
  return `${(100 * share).toFixed(1).replace(/\.0$/, "")} %`;
};

/** A dialog with its own heading: focus stays in it, Escape closes it, and focus returns to where it was. */
export const dialog = (title, ...children) => {
  const before = document.activeElement;
  const close = button("Close", () => made.close(), "quiet");
  const heading = el("h2", { id: "dialog-title", tabindex: "-1" }, title);
  const made = el("dialog", { "aria-labelledby": "dialog-title" },
    el("div", { class: "dialog-top" }, heading, close), children);
  made.addEventListener("close", () => {
    made.remove();
    const back = before?.isConnected ? before : document.getElementById("view-title");
    back?.focus();
  });
  // The browser keeps focus off the page behind; this keeps it off the browser's own bars as well.
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    const stops = Array.from(made.querySelectorAll("button:not([disabled]), input, textarea, select, [tabindex='0']"));
    const [first, last] = [stops[0], stops[stops.length - 1]];
    const at = document.activeElement;
    if (event.shiftKey && (at === first || at === heading)) { event.preventDefault(); last.focus(); }
    if (!event.shiftKey && at === last) { event.preventDefault(); first.focus(); }
  });
  document.body.append(made);
  made.showModal();
  heading.focus();
  return made;
};

let said = Promise.resolve();
let cleared = null;

/** Announces a message to screen readers, at most one per second. It is removed again, so it is not read with the page. */
export const announce = (text) => {
  const place = document.getElementById("announcer");
  said = said.then(() => {
    place.textContent = text;
    clearTimeout(cleared);
    cleared = setTimeout(() => { place.textContent = ""; }, 6000);
    return new Promise((resolve) => { setTimeout(resolve, 1000); });
  });
};

/** The server's refusal, with the error code that the documentation explains. */
export const refusal = (error) => plain(error.code ? `${error.message} (${error.code})` : error.message);

/** A line for the server's refusals, empty while there are none: its element, and the callback for `repeat`. */
export const faultLine = (also = () => {}) => {
  const line = el("p", { class: "error", role: "alert" });
  const told = (error) => {
    setText(line, error ? refusal(error) : "");
    if (error) also();
  };
  return { line, told };
};

export const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

/**
 * Updates a table's rows to `items`, in order, touching only what differs, so that focus and a screen reader's position are
 * kept. A row with focus stays while it has it. Returns the new items.
 */
export const follow = (body, items, { id, version, make }) => {
  const before = new Map(Array.from(body.children, (row) => [row.dataset.id, row]));
  const fresh = [];
  let place = body.firstElementChild;
  for (const item of items) {
    const known = before.get(id(item));
    before.delete(id(item));
    if (known && known.dataset.version === version(item)) {
      while (place && place !== known) place = place.nextElementSibling;
      place = known.nextElementSibling;
      continue;
    }
    const row = make(item);
    row.dataset.id = id(item);
    row.dataset.version = version(item);
    if (!known) {
      fresh.push(item);
      body.insertBefore(row, place);
      continue;
    }
    const had = known.contains(document.activeElement);
    if (place === known) place = known.nextElementSibling;
    known.replaceWith(row);
    if (had) row.querySelector("button")?.focus();
  }
  for (const row of before.values()) {
    if (!row.contains(document.activeElement)) row.remove();
  }
  return fresh;
};

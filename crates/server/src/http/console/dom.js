// Elements, made by name and filled with text: nothing here or elsewhere reads a text as HTML.

const SVG = "http://www.w3.org/2000/svg";

// What a reader does not see, or what changes how its neighbours are read: controls, bidirectional and other format
// characters, fillers, odd blanks, unpaired surrogates, private and unassigned characters, and marks piled upon marks.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}|(?<=\p{M}{3})\p{M}/gu;

const spelled = (character) => `\\u{${character.codePointAt(0).toString(16).padStart(4, "0")}}`;

/** Pieces of a text from outside, its unseen characters spelled out: `[text, isSpelled]`. */
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

/** A text from outside as a plain text, for attributes. */
export const plain = (text) => pieces(String(text), "").map(([piece]) => piece).join("");

const cut = (text, most) => {
  const characters = Array.from(text);
  return characters.length > most ? `${characters.slice(0, most).join("")}…` : text;
};

/** A text from outside, isolated from what stands around it. At most `most` characters are shown. */
export const foreign = (text, most = Infinity) => shown("bdi", cut(String(text ?? ""), most), "");

/** A text of several lines from outside. */
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
    made.append(isSpelled ? el("span", { class: "spelled" }, piece) : piece);
  }
  return made;
};

const fill = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return made;
};

/** An element with attributes, listeners (`onclick`) and children; a child that is a text is a text. */
export const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** An element of a picture. */
export const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/** A field's label and the field. */
export const field = (label, input, hint) => {
  if (hint) input.setAttribute("aria-describedby", `${input.id}-hint`);
  const below = hint ? el("p", { class: "hint", id: `${input.id}-hint` }, hint) : null;
  return el("div", { class: "field" }, el("label", { for: input.id }, label), input, below);
};

export const button = (text, onclick, kind = "") => el("button", { type: "button", class: kind, onclick }, text);

/** A button that is off keeps its place in the order of focus. */
export const enable = (element, isOn) => element.setAttribute("aria-disabled", String(!isOn));

/** An identifier or a digest. */
export const code = (text) => el("code", {}, foreign(text));

/** Names and values. */
export const facts = (pairs) =>
  el("dl", {}, pairs.filter(([, value]) => value !== undefined && value !== null).map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));

/** A table that says what it is; its roles are named because narrow screens lay it out as cards. */
export const table = (caption, columns) => {
  const body = el("tbody", { role: "rowgroup" });
  const heads = columns.map((name) => el("th", { scope: "col", role: "columnheader" }, name));
  const made = el("table", { role: "table" }, el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)), body);
  /** A row; the first cell is its head. */
  const row = (cells) => el("tr", { role: "row" }, cells.map((cell, place) => {
    const attributes = { "data-label": columns[place] };
    return place === 0
      ? el("th", { ...attributes, scope: "row", role: "rowheader" }, el("div", {}, cell))
      : el("td", { ...attributes, role: "cell" }, el("div", {}, cell));
  }));
  return { made, body, row };
};

/** A word of the contract with its colour; what it says, it says in letters too. */
export const badge = (word) => {
  const kind = String(word).toLowerCase().replace(/[^a-z]/g, "");
  return el("span", { class: `badge is-${kind}` }, foreign(word, 40));
};

const two = (number) => String(number).padStart(2, "0");

/** A moment in UTC. */
export const time = (text) => {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) return foreign(text, 40);
  const day = `${moment.getUTCFullYear()}-${two(moment.getUTCMonth() + 1)}-${two(moment.getUTCDate())}`;
  const hour = `${two(moment.getUTCHours())}:${two(moment.getUTCMinutes())}:${two(moment.getUTCSeconds())}`;
  return el("time", { datetime: moment.toISOString() }, `${day} ${hour}`);
};

export const number = (value) => (typeof value === "number" ? value.toLocaleString("en") : "–");

export const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

/** A dialog of its own heading: focus stays in it, Escape closes it, and focus goes back to where it was. */
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
  // The browser keeps focus off the page behind; this keeps it off the browser's own bars too.
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

/** Tells who listens to a screen reader, at most one thing a second. It does not stay for who reads the page from its top. */
export const announce = (text) => {
  const place = document.getElementById("announcer");
  said = said.then(() => {
    place.textContent = text;
    clearTimeout(cleared);
    cleared = setTimeout(() => { place.textContent = ""; }, 6000);
    return new Promise((resolve) => { setTimeout(resolve, 1000); });
  });
};

/** What the server refused, and the code that its documents explain. */
export const refusal = (error) => plain(error.code ? `${error.message} (${error.code})` : error.message);

/** A line for what the server refuses, empty while it refuses nothing: its element, and what `repeat` tells. */
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
 * Makes a table's rows those of `items`, in their order, and touches only what differs, so that focus and what a screen reader
 * is at stay. A row that has the focus stays while it has it. Returns the items that are new.
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

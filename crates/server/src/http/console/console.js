// The frame: signing in and out, the views, and the messages while there is no response.

import { Refused, address, call, hasKey, now, patiently, repeat, setKey, watch } from "./console/api.js";
import { announce, el, number, plain, refusal as refusalText, setText } from "./console/dom.js";
import * as agent from "./console/agent.js";
import * as chain from "./console/chain.js";
import * as decisions from "./console/decisions.js";
import * as escalations from "./console/escalations.js";
import * as overview from "./console/overview.js";

const VIEWS = { overview, decisions, escalations, agent, chain };
const BADGE_EVERY = 10_000;

const find = (id) => document.getElementById(id);
const [nav, leaveButton, login, view] = ["nav", "leave", "login", "view"].map(find);
const [keyInput, loginError, waiting] = ["key", "login-error", "waiting"].map(find);

let session = null;
let shownView = null;
let attempt = null;

// Views.

const nameOf = (hash) => (Object.hasOwn(VIEWS, hash.slice(1)) ? hash.slice(1) : "overview");

const open = (name, takesFocus) => {
  shownView?.abort();
  shownView = new AbortController();
  for (const link of nav.querySelectorAll("a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const { title, show } = VIEWS[name];
  const heading = el("h1", { id: "view-title", tabindex: "-1" }, title);
  document.title = `${title} – Rulekeep`;
  view.replaceChildren(heading);
  view.dataset.view = name;
  show(view, AbortSignal.any([session.signal, shownView.signal]), { go });
  if (takesFocus) heading.focus();
};

/** Switches to a view, and passes it what to show. */
const go = (name, what) => {
  VIEWS[name].prepare?.(what);
  for (const shown of document.querySelectorAll("dialog")) shown.close();
  if (location.hash === `#${name}`) open(name, true);
  else location.hash = name;
};

window.addEventListener("hashchange", () => {
  if (!session || !Object.hasOwn(VIEWS, location.hash.slice(1))) return;
  open(nameOf(location.hash), true);
});

document.querySelector(".skip").addEventListener("click", (event) => {
  // Its address would be taken for a view's.
  event.preventDefault();
  find("main").focus();
});

const countWaiting = async () => {
  const { total } = await call(address("/admin/escalations", { state: "pending", pageSize: 1 }), { signal: session.signal });
  waiting.hidden = total === 0;
  setText(waiting, total === 0 ? "" : ` ${number(total)}`);
};

// Signing in and out.

const enter = () => {
  session = new AbortController();
  login.hidden = true;
  keyInput.value = "";
  for (const shown of [nav, leaveButton, view]) shown.hidden = false;
  repeat(BADGE_EVERY, countWaiting, session.signal);
  open(nameOf(location.hash), true);
};

const leave = (why) => {
  attempt?.abort();
  session?.abort();
  session = null;
  setKey(null);
  for (const shown of document.querySelectorAll("dialog")) shown.close();
  for (const hidden of [nav, leaveButton, view]) hidden.hidden = true;
  for (const { forget } of Object.values(VIEWS)) forget?.();
  view.replaceChildren();
  setText(waiting, "");
  quieten();
  document.title = "Sign in – Rulekeep";
  login.hidden = false;
  setText(loginError, why);
  keyInput.value = "";
  keyInput.focus();
};

const refusal = (error) => {
  if (error.status === 401) return "This key is refused: it is unknown, revoked or has expired.";
  if (error.status === 403) return "This key is not an administrator’s.";
  return `The server answered: ${refusalText(error)}`;
};

find("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  attempt?.abort();
  attempt = new AbortController();
  const { signal } = attempt;
  const text = keyInput.value.trim();
  setText(loginError, "");
  if (!/^[\x21-\x7e]+$/.test(text)) {
    setText(loginError, "This is not an API key: keys consist of printable ASCII characters without spaces.");
    keyInput.select();
    keyInput.focus();
    return;
  }
  setKey(text);
  announce("Signing in");
  try {
    await patiently(address("/admin/records", { pageSize: 1 }), { signal });
    enter();
  } catch (error) {
    if (signal.aborted) return;
    setKey(null);
    if (!(error instanceof Refused)) throw error;
    setText(loginError, refusal(error));
    keyInput.select();
    keyInput.focus();
  }
});

leaveButton.addEventListener("click", () => leave(""));

// Messages while there is no response.

const [banner, bannerText, bannerCount] = ["banner", "banner-text", "banner-count"].map(find);
let counting = null;
let lastWell = "";

const quieten = () => {
  clearInterval(counting);
  banner.hidden = true;
  setText(bannerText, "");
  setText(bannerCount, "");
};

const say = (kind, text, until) => {
  clearInterval(counting);
  banner.hidden = false;
  banner.dataset.kind = kind;
  setText(bannerText, text);
  setText(bannerCount, "");
  if (until === undefined) return;
  // The seconds are only displayed: read out one by one, they would drown everything else.
  const count = () => {
    const left = Math.max(0, Math.ceil((until - now()) / 1000));
    setText(bannerCount, left > 0 ? `${left} s left` : "Trying again");
  };
  count();
  counting = setInterval(count, 500);
};

watch((state, error) => {
  if (state === "lost") {
    const since = session && lastWell ? ` The data shown is from ${lastWell} UTC.` : "";
    say("lost", `The connection to the server is lost. It is retried automatically.${since}`);
  } else if (state === "busy") {
    const why = plain(error.message);
    say("busy", `The server asks to wait${why ? `: ${why}` : ""}. It continues automatically.`, error.until);
  } else {
    lastWell = new Date().toISOString().slice(11, 19);
    if (!banner.hidden) announce("The server answers again.");
    quieten();
    if (state === "unauthorized" && session && hasKey()) leave("This key is no longer accepted: it was revoked or has expired.");
  }
});

document.title = "Sign in – Rulekeep";
login.hidden = false;
keyInput.focus();

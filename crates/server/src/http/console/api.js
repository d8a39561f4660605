// Calls of the API: the key, and what to do while there is no response.

import { exact } from "./exact.js";

/** The server refused the call. */
export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** There was no response. */
export class Lost extends Error {}

/** The server accepts no call before `until`, in milliseconds of `performance.now`. */
export class Busy extends Error {
  constructor(message, until) {
    super(message);
    this.until = until;
  }
}

// The key is kept only here: neither in the address nor in the browser's storage.
let key = null;
let waitsUntil = 0;
let waitsFor = "";
let onState = () => {};

export const now = () => performance.now();

/** The listeners for `lost`, `busy`, `unauthorized` and `well`. */
export const watch = (listener) => { onState = listener; };

export const setKey = (text) => {
  key = text;
  waitsUntil = 0;
};

export const hasKey = () => key !== null;

/** A part of a path. */
export const part = (text) => {
  // A browser interprets these as relative path segments, however they are encoded.
  if (text === "." || text === "..") throw new Refused(400, "INVALID_INPUT", "This name cannot be used in an address: use the sidecar or the library instead.");
  return encodeURIComponent(text);
};

/** An address with a query; undefined and empty values are left out. */
export const address = (path, query = {}) => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
};

const LONGEST = 20_000;

/** Makes one call. Throws `Refused`, `Lost` or `Busy`, or the abort of `signal`. `isExact` keeps numbers as they were written. */
export const call = async (path, { method = "GET", body, signal, longest = LONGEST, idempotencyKey, isExact = false } = {}) => {
  if (now() < waitsUntil) throw new Busy(waitsFor, waitsUntil);
  const headers = { Accept: "application/json", Authorization: `Bearer ${key}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (idempotencyKey) headers["Idempotency-Key"] = idempotencyKey;
  const signals = [AbortSignal.timeout(longest), signal].filter(Boolean);
  const asked = key;
  let response, answer;
  try {
    response = await fetch(`/v1${path}`, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any(signals), cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
    });
    const text = await response.text();
    answer = isExact ? exact(text) : JSON.parse(text);
  } catch (error) {
    if (signal?.aborted) throw error;
    // A response that is not JSON comes from another server.
    const lost = new Lost("no answer");
    if (asked === key) onState("lost", lost);
    throw lost;
  }
  if (response.ok) {
    if (asked === key) onState("well");
    return answer;
  }
  const { code = "", message = "" } = answer?.error ?? {};
  if (response.status === 429) {
    const seconds = Number(response.headers.get("retry-after"));
    waitsUntil = now() + 1000 * (Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 3600) : 5);
    waitsFor = message;
    const busy = new Busy(message, waitsUntil);
    if (asked === key) onState("busy", busy);
    throw busy;
  }
  if (asked === key) onState(response.status === 401 ? "unauthorized" : "well");
  throw new Refused(response.status, code, message);
};

/** Waits; ends early by throwing if `signal` is aborted. */
export const sleep = (milliseconds, signal) => new Promise((resolve, reject) => {
  const end = () => { clearTimeout(timer); reject(signal.reason); };
  const timer = setTimeout(() => { signal?.removeEventListener("abort", end); resolve(); }, milliseconds);
  if (signal?.aborted) end();
  else signal?.addEventListener("abort", end, { once: true });
});

/**
 * A call that is repeated until there is a response, for calls that are safe to repeat. With `told`, it is also repeated while
 * the server answers that it cannot serve the call now; `told` receives each of these responses.
 */
export const patiently = async (path, { told, ...options } = {}) => {
  for (let tries = 0; ; tries += 1) {
    try {
      return await call(path, options);
    } catch (error) {
      if (error instanceof Busy) await sleep(error.until - now() + 50, options.signal);
      else if (error instanceof Lost) await sleep(pause(tries), options.signal);
      else if (told && error instanceof Refused && error.status >= 500) {
        told(error);
        await sleep(pause(tries), options.signal);
      } else throw error;
    }
  }
};

/** The wait after this many calls without a response: 1 s, 2 s, 4 s and so on, up to 15 s. */
export const pause = (tries) => Math.min(15_000, 1000 * 2 ** Math.min(tries, 4));

/**
 * Repeats `work` every `every` milliseconds while the page is visible, until `signal` is aborted. Without a response it waits
 * as required and continues. `told` receives each refusal, and nothing once there is none any more. The returned function
 * runs `work` at once.
 */
export const repeat = (every, work, signal, told = () => {}) => {
  let wake = () => {};
  let again = false;
  const nap = (milliseconds) => new Promise((resolve) => {
    const timer = setTimeout(() => wake(), milliseconds);
    wake = () => { clearTimeout(timer); resolve(); };
  });
  const atOnce = () => { again = true; wake(); };
  const run = async () => {
    let failures = 0;
    while (!signal.aborted) {
      let next = every;
      again = false;
      try {
        if (!document.hidden) {
          await work();
          if (!signal.aborted) told();
        }
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Busy) next = error.until - now() + 50;
        else if (error instanceof Lost || error instanceof Refused) next = Math.max(every, pause(failures));
        else throw error;
        if (error instanceof Refused) told(error);
        failures += 1;
      }
      if (signal.aborted) return;
      if (!again || failures > 0) await nap(next);
    }
  };
  document.addEventListener("visibilitychange", atOnce, { signal });
  signal.addEventListener("abort", () => wake(), { once: true });
  run();
  return atOnce;
};

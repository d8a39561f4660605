// Numbers exactly as written: a double would turn 9007199254740993 into its neighbor, and a person would approve another account.

/** A number that JavaScript writes differently than it was received. */
class Written {
  constructor(text) {
    this.text = text;
  }
}

// If the browser does not provide the digits, the reader has to be told.
const UNSURE = " (approximate: this browser does not provide the exact digits)";

const keep = (_, value, context) => {
  if (typeof value !== "number") return value;
  const source = context?.source;
  if (source === undefined) return Math.abs(value) > Number.MAX_SAFE_INTEGER ? new Written(`${value}${UNSURE}`) : value;
  return String(value) === source ? value : new Written(source);
};

/** Parses JSON text into values, for `written`. */
export const exact = (text) => JSON.parse(text, keep);

/** Formats values as JSON on several lines, each number with the digits received. */
export const written = (value, indent = "") => {
  if (value instanceof Written) return value.text;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const deeper = `${indent}  `;
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => written(item, deeper))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${written(item, deeper)}`);
  const [open, close] = isList ? "[]" : "{}";
  return items.length === 0 ? open + close : `${open}\n${deeper}${items.join(`,\n${deeper}`)}\n${indent}${close}`;
};

// Writes the public descriptions of commands, a line `program subcommand<TAB>description` each:
//   node descriptions.mjs FOLDER_OF_SPECS INDEX_OF_PACKAGES
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [specs, packages] = process.argv.slice(2);
const described = new Map();

function add(command, description) {
  const words = command.split(" ");
  const isPlain = !command.startsWith("@") && words.slice(1).every((word) => !word.startsWith("-") && word !== "help");
  if (description && isPlain && words.length <= 3 && !described.has(command)) {
    described.set(command, String(description).replace(/\s+/g, " "));
  }
}

function walk(spec, command, depth) {
  add(command, spec.description);
  for (const sub of depth < 2 ? spec.subcommands ?? [] : []) {
    for (const name of [sub.name].flat()) {
      if (typeof name === "string" && name) walk(sub, `${command} ${name}`, depth + 1);
    }
  }
}

for (const file of fs.readdirSync(specs).sort()) {
  if (!file.endsWith(".js") || file === "index.js") continue;
  try {
    const spec = (await import(pathToFileURL(path.join(specs, file)))).default;
    if (typeof spec === "object") walk(spec, [spec.name].flat()[0] ?? file.slice(0, -3), 0);
  } catch (error) {
    console.error(`${file}: ${error.message}`);
  }
}

const PROGRAMS = new Set(
  "admin utils net text mail database graphics sound video editors vcs devel web comm otherosfs science httpd shells misc".split(" "),
);
const NOT_PROGRAMS = /^(lib|python3-|golang-|ruby-|fonts-|node-|r-)|-(dev|doc|data|common|dbg|perl|java)$/;
for (const entry of fs.readFileSync(packages, "utf8").split("\n\n")) {
  const field = (name) => entry.match(new RegExp(`^${name}: (.*)$`, "m"))?.[1];
  const [name, section] = [field("Package"), field("Section")?.split("/").pop()];
  if (name && PROGRAMS.has(section) && !NOT_PROGRAMS.test(name)) add(name, field("Description"));
}

process.stdout.write([...described].map(([command, description]) => `${command}\t${description}\n`).join(""));

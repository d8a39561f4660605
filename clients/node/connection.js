// JSON-RPC 2.0 over a Unix socket, one message a line.

import { createConnection } from "node:net";

/** A call that failed. */
export class RulekeepError extends Error {
  constructor(code, message, details = {}, httpStatus = 503) {
    super(`${code}: ${message}`);
    this.name = "RulekeepError";
    Object.assign(this, { code, details, httpStatus });
  }
}

/** One connection. Answers find their requests by id; a connection that is lost fails those that wait. */
export class Connection {
  #socket;
  #waiting = new Map();
  #lastId = 0;
  #rest = "";

  /** Connects; `onEnd` is called when the connection is lost. */
  static open(path, onEnd) {
    return new Promise((resolve, reject) => {
      const socket = createConnection(path);
      const lost = (error) => reject(new RulekeepError("DISCONNECTED", `${path}: ${error.message}; is the daemon running?`));
      socket.once("error", lost);
      socket.once("connect", () => {
        socket.off("error", lost);
        resolve(new Connection(socket, onEnd));
      });
    });
  }

  constructor(socket, onEnd) {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (text) => this.#read(text));
    let why = "the daemon closed the connection";
    socket.on("error", (error) => (why = error.message));
    socket.on("close", () => {
      onEnd();
      for (const { reject } of this.#waiting.values()) reject(new RulekeepError("DISCONNECTED", why));
    });
  }

  /** Sends a request. One whose answer takes longer than `timeout` milliseconds fails; whether it was done is unknown. */
  call(method, params, timeout) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const late = () => settled(reject)(new RulekeepError("TIMEOUT", `${method}: no answer within ${timeout} ms`, {}, 504));
      const timer = setTimeout(late, timeout);
      const settled = (settle) => (value) => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        settle(value);
      };
      this.#waiting.set(id, { resolve: settled(resolve), reject: settled(reject) });
      this.#socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  }

  close() {
    this.#socket.end();
  }

  #read(text) {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop();
    for (const line of lines) {
      let answer;
      try {
        answer = JSON.parse(line);
      } catch {
        this.#socket.destroy(new Error("the daemon sent a line that is not JSON"));
        return;
      }
      const waiting = this.#waiting.get(answer.id);
      if (answer.error) waiting?.reject(failure(answer.error));
      else waiting?.resolve(answer.result);
    }
  }
}

/** The error for one of JSON-RPC. */
function failure({ code, message, data }) {
  if (data?.code) return new RulekeepError(data.code, message, data.details, data.httpStatus);
  if (code === -32601) return new RulekeepError("INVALID_INPUT", message, { field: "method" }, 400);
  return new RulekeepError("INTERNAL", message, {}, 500);
}

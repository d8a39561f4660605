// Written by `rulekeep hook install --host opencode`; `rulekeep hook uninstall --host opencode` removes it.
// Asks Rulekeep before each tool runs. Whatever goes wrong, the tool does not run.
import { spawn } from "node:child_process"

const command = "rulekeep"

/** Sends an event to the hook. Returns what it prints, and throws its reason unless it exits with 0. */
function ask(event, seconds) {
  return new Promise((resolve, reject) => {
    const refuse = (reason) => reject(new Error(reason.trim() || "Rulekeep refused the call"))
    const child = spawn(command, ["hook", "--host", "opencode"], { stdio: ["pipe", "pipe", "pipe"] })
    const timer = setTimeout(() => {
      child.kill()
      refuse(`Rulekeep did not answer within ${seconds} seconds`)
    }, seconds * 1000)
    let reason = ""
    let answer = ""
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (text) => (answer += text))
    child.stderr.setEncoding("utf8")
    child.stderr.on("data", (text) => (reason += text))
    child.on("error", (error) => {
      clearTimeout(timer)
      refuse(`Rulekeep does not start: ${error.message}`)
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code === 0) resolve(answer)
      else refuse(reason)
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

export const Rulekeep = async ({ client, directory }) => {
  const parents = new Map()

  /** The conversation with the user that a session belongs to: a sub-agent has a session of its own. */
  async function conversation(session) {
    let root = session
    for (let depth = 0; depth < 32; depth++) {
      if (!parents.has(root)) {
        const answer = await client.session.get({ path: { id: root } })
        if (!answer?.data) throw new Error(`Rulekeep cannot tell whose session ${root} is`)
        parents.set(root, answer.data.parentID ?? null)
      }
      const parent = parents.get(root)
      if (parent === null) return { session: root, subagent: root === session ? null : session, cwd: directory }
      root = parent
    }
    throw new Error(`Rulekeep cannot tell whose session ${session} is: its parents have no end`)
  }

  return {
    "chat.message": async (input, output) => {
      const where = await conversation(input.sessionID)
      // The prompt of a sub-agent is the agent's, not the user's.
      if (where.subagent !== null) return
      const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = texts.map((part) => part.text).join("\n")
      await ask({ event: "chat.message", ...where, prompt }, 30)
    },
    "tool.execute.before": async (input, output) => {
      const where = await conversation(input.sessionID)
      const call = { tool: input.tool, args: output.args, call: input.callID }
      const answer = await ask({ event: "tool.execute.before", ...where, ...call }, 600)
      // The hook may narrow the arguments to what the policy permits.
      if (answer.trim()) Object.assign(output.args, JSON.parse(answer).args)
    },
    "tool.execute.after": async (input, output) => {
      try {
        const where = await conversation(input.sessionID)
        const call = { tool: input.tool, args: input.args ?? {}, call: input.callID, output: output?.output ?? null }
        await ask({ event: "tool.execute.after", ...where, ...call }, 30)
      } catch {
        // The tool has run: a report that fails changes nothing.
      }
    },
    event: async ({ event }) => {
      if (event.type !== "session.deleted") return
      const session = event.properties?.info?.id
      if (typeof session !== "string" || event.properties.info.parentID) return
      await ask({ event: "session.deleted", session, subagent: null, cwd: directory }, 5).catch(() => {})
    },
  }
}

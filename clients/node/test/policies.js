// Files are read, code runs confined, mail is asked about, and what else there is is denied.
export const POLICIES = `
name = "tests"

[[rule]]
id = "files-are-read"
effect = "allow"
match.capabilities = ["file:read"]

[[rule]]
id = "code-is-confined"
effect = "allow"
when = "has(context.confinable)"
constraints = { confine = "workspace" }

[[rule]]
id = "mail-needs-a-reviewer"
effect = "escalate"
reviewer = "mail-lead"
match.capabilities = ["email:send"]
`;

/** The decisions and outcomes of an agent, the oldest first. */
export async function outcomes(governor, agentId) {
  const { items } = await governor.query(agentId, { order: "oldest" });
  return items.map(({ decision, outcome }) => (outcome ? `${decision} ${outcome}` : decision));
}

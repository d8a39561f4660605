import pytest
import rulekeep

POLICIES = """
name = "tests"

[[rule]]
id = "files-are-read"
effect = "allow"
match.capabilities = ["file:read"]
constraints = { maxRecords = 7 }

[[rule]]
id = "mail-needs-a-reviewer"
effect = "escalate"
reviewer = "mail-lead"
match.capabilities = ["email:send"]
"""


@pytest.fixture
def governor(tmp_path):
    """A governor in memory that lets the agent `a` read files, asks about mail, and denies what else there is."""
    file = tmp_path / "policies.toml"
    file.write_text(POLICIES, encoding="utf-8")
    with rulekeep.Governor.open(policies=file, durability="buffered") as opened:
        opened.agents.register("a", tier="T4")
        yield opened


@pytest.fixture
def outcomes(governor):
    """The decisions and outcomes on record, the oldest first."""

    def read():
        items = governor.query("a", order="oldest")["items"]
        return [(record["decision"], record.get("outcome")) for record in items]

    return read

"""In-process governance for software agents: decide by policy and trust before a tool runs, and keep a proof of it.

    import rulekeep

    governor = rulekeep.Governor.open("governance", auto_register=True)
    verdict = governor.enforce(agent_id="support-1", input="Summarize the meeting notes")
    if verdict["decision"] == "ALLOW":
        governor.report(verdict["proofId"], "SUCCESS")

    @governor.guard("support-1")
    def send_email(to: str, body: str) -> None: ...
"""

from importlib.metadata import version as _version

from .errors import Denied, RulekeepError
from .governor import Governor
from .guard import ToolCall, current_verdict
from .types import Intent, Parse, Record, Statistics, Verdict

__version__ = _version("rulekeep")

__all__ = [
    "Denied",
    "Governor",
    "Intent",
    "Parse",
    "Record",
    "RulekeepError",
    "Statistics",
    "ToolCall",
    "Verdict",
    "__version__",
    "current_verdict",
]

"""The exceptions of the package."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .types import Verdict


class RulekeepError(Exception):
    """A call that failed."""

    def __init__(self, code: str, message: str, details: dict[str, Any] | None = None, http_status: int = 0) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        """The code of the contract, for example ``AGENT_NOT_FOUND``."""
        self.message = message
        """What was wrong, where, and what was expected."""
        self.details = details or {}
        """The part of the error that programs act on, for example the name of a field."""
        self.http_status = http_status
        """The HTTP status that goes with the code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.message, self.details, self.http_status)


class Denied(Exception):
    """A tool call that was not allowed, and did not run."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict['decision']}: {verdict['reasoning']}")
        self.verdict = verdict
        """The whole decision. Without ``proofId`` the request could not be decided at all."""

    @property
    def decision(self) -> str:
        """DENY, or ESCALATE where a reviewer has to agree first, or DEGRADE where only a part was granted."""
        return self.verdict["decision"]

    @property
    def proof_id(self) -> str | None:
        """The record of the decision. After ESCALATE it names the escalation too."""
        return self.verdict.get("proofId")


def from_native(code: str, message: str, details: str | None, http_status: int) -> RulekeepError:
    """The exception for an error of the native module, whose details are JSON text."""
    return RulekeepError(code, message, None if details is None else json.loads(details), http_status)

"""The shapes of answers, for type checkers. At run time they are plain dictionaries."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Decision = Literal["ALLOW", "DENY", "ESCALATE", "DEGRADE"]
Risk = Literal["LOW", "MEDIUM", "HIGH", "CRITICAL"]
Outcome = Literal["SUCCESS", "FAILURE", "ESCALATED", "UNKNOWN"]


class ToolInput(TypedDict, total=False):
    """A tool call as the input of ``parse`` and ``enforce``; ``tool`` and ``arguments`` are required."""

    tool: str
    arguments: Any
    server: str
    callId: str


class Intent(TypedDict, total=False):
    """What an agent wants to do, as policies see it."""

    id: str
    agentId: str
    parsedAction: str
    riskLevel: Risk
    requiredCapabilities: list[str]
    context: dict[str, Any]
    timestamp: str


class Parse(TypedDict):
    """The answer of ``parse``."""

    intent: Intent
    confidence: float
    alternatives: list[dict[str, Any]]


class TrustSnapshot(TypedDict):
    """The trust in an agent when a decision was made."""

    score: int
    tier: str
    tierName: str


class _Verdict(TypedDict):
    decision: Decision
    reasoning: str
    grantedCapabilities: list[str]
    deniedCapabilities: list[str]
    constraints: dict[str, Any]
    proofId: str
    trustSnapshot: TrustSnapshot


class Verdict(_Verdict, total=False):
    """The answer of ``enforce``. The last three fields are there where an input was parsed."""

    denialClass: str
    retryable: bool
    intent: Intent
    confidence: float
    alternatives: list[dict[str, Any]]


class _Record(TypedDict):
    id: str
    entityId: str
    intentId: str
    decision: Decision
    reasoning: str
    trustScore: int
    trustTier: str
    riskLevel: Risk
    timestamp: str
    hash: str
    previousHash: str


class Record(_Record, total=False):
    """A proof record."""

    outcome: Outcome


class Page(TypedDict):
    """A page of proof records."""

    items: list[Record]
    total: int
    page: int
    pageSize: int
    hasMore: bool


class Statistics(TypedDict):
    """The statistics of an agent."""

    entityId: str
    totalRecords: int
    successRate: float
    averageTrustScore: float
    chainIntegrity: bool
    decisionBreakdown: dict[Decision, int]
    riskBreakdown: dict[Risk, int]
    period: dict[str, str]

#!/usr/bin/env python3
"""A governor over HTTP, from Python: pip install requests

    python3 python_client.py http://127.0.0.1:8080/v1 rkp_admin_...

or with RULEKEEP_URL and RULEKEEP_ADMIN_KEY in the environment, which keeps the key out of the list of processes. An
administrator's part and an agent's: an agent and its key are made, a request is parsed, decided on and reported, a
question goes to a person, and what was recorded is read. It ends with 1 when anything is not as it should be.
"""

import os
import random
import sys
import time
import uuid

import requests

ATTEMPTS = 5  # of one call, the first included
LONGEST_WAIT = 60  # seconds that a 429 may ask for
TIMEOUT = (5, 30)  # seconds to connect, and between two bytes of the answer


class Refused(Exception):
    """An error of the contract."""

    def __init__(self, status: int, error: dict):
        super().__init__(f"{status} {error.get('code')}: {error.get('message')}")
        self.status, self.code = status, error.get("code")


class Client:
    """Calls by one key. Safe to retry: a POST carries an Idempotency-Key, so that nothing is decided or made twice."""

    def __init__(self, url: str, key: str):
        self.url = url.rstrip("/")
        self.session = requests.Session()  # keeps the connection
        self.session.headers["Authorization"] = f"Bearer {key}"

    def get(self, path: str, **query) -> dict:
        return self.call("GET", path, params=query)

    def post(self, path: str, body: dict) -> dict:
        return self.call("POST", path, json=body, headers={"Idempotency-Key": str(uuid.uuid4())})

    def delete(self, path: str) -> dict:
        return self.call("DELETE", path)

    def call(self, method: str, path: str, **what) -> dict:
        for attempt in range(1, ATTEMPTS + 1):
            wait = random.uniform(0.5, 1) * 0.2 * 2**attempt  # backs off, and not all clients at once
            try:
                response = self.session.request(method, self.url + path, timeout=TIMEOUT, **what)
            except (requests.ConnectionError, requests.Timeout) as error:
                # It may have been done all the same: hence the Idempotency-Key.
                if attempt == ATTEMPTS:
                    raise
                why = f"no answer ({type(error).__name__})"
            else:
                if response.ok:
                    return response.json()
                refused = Refused(response.status_code, self.error_of(response))
                if response.status_code == 429:
                    wait = float(response.headers.get("Retry-After", "inf"))
                is_passing = response.status_code == 429 or response.status_code >= 500
                if not is_passing or attempt == ATTEMPTS or wait > LONGEST_WAIT:
                    raise refused
                why = str(refused)
            print(f"  {method} {path}: {why}; again in {wait:.1f} s")
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    @staticmethod
    def error_of(response: requests.Response) -> dict:
        try:
            return response.json()["error"]
        except (ValueError, KeyError, TypeError):  # from a proxy between, for example
            return {"code": "HTTP", "message": response.reason}


def expect(what: str, found, expected) -> None:
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def main() -> None:
    arguments = sys.argv[1:] or [os.environ.get("RULEKEEP_URL", ""), os.environ.get("RULEKEEP_ADMIN_KEY", "")]
    if len(arguments) != 2 or not all(arguments):
        sys.exit("usage: python_client.py URL ADMIN_KEY, or RULEKEEP_URL and RULEKEEP_ADMIN_KEY in the environment")
    admin = Client(*arguments)

    # The administrator: an agent, and a key that is for it alone.
    agent_id = f"python-{uuid.uuid4()}"
    registered = admin.post("/admin/agents", {"agentId": agent_id, "tier": "T3", "labels": ["example"]})
    print(f"registered {agent_id} at {registered['tier']}")
    made = admin.post("/admin/keys", {"scope": "agent", "plan": "pro", "agents": [agent_id], "name": "Python client"})
    print(f"made the key {made['id']}")  # its text, made["key"], is shown in this answer alone
    agent = Client(arguments[0], made["key"])

    # The agent: what it asks, as the governor reads it; the verdict; what became of it.
    asks = {"agentId": agent_id, "input": "Summarize the ticket about order 8812"}
    parsed = agent.post("/intent", asks)
    print(f"parsed {parsed['intent']['parsedAction']}, {parsed['intent']['riskLevel']}")
    verdict = agent.post("/enforce", {"intent": parsed["intent"]})
    print(f"{verdict['decision']}: {verdict['reasoning']}")
    expect("a summary", verdict["decision"], "ALLOW")
    # ... do it, within verdict["constraints"] and with verdict["grantedCapabilities"] alone ...
    recorded = agent.post("/proof/outcome", {"proofId": verdict["proofId"], "outcome": "SUCCESS"})
    print(f"reported {recorded['outcome']} of {recorded['id']}")

    # What a person has to agree to.
    refund = agent.post("/enforce", {"agentId": agent_id, "input": "Refund 80 euros for order 8812"})
    print(f"{refund['decision']}: {refund['reasoning']}")
    expect("a refund", refund["decision"], "ESCALATE")
    waiting = admin.get("/admin/escalations", state="pending", agentId=agent_id)["items"]
    expect("questions", len(waiting), 1)
    question = waiting[0]
    # Whom the rule asks; whoever has an administrator's key vouches for the name. The digest: exactly what was shown.
    answer = {"reviewer": question["reviewer"], "note": "the parcel came back", "digest": question["digest"]}
    resolved = admin.post(f"/admin/escalations/{question['id']}/approve", answer)
    print(f"{question['reviewer']}: {resolved['state']}")
    answered = agent.post(f"/escalations/{question['id']}/wait", {"timeoutMs": 5000})
    expect("the question", answered["state"], "approved")
    claimed = agent.post(f"/escalations/{question['id']}/claim", {"intent": refund["intent"]})
    print(f"claimed: {claimed['decision']}, until {claimed['constraints']['expiresAt']}")
    expect("the claim", claimed["decision"], "ALLOW")
    agent.post("/proof/outcome", {"proofId": claimed["proofId"], "outcome": "SUCCESS"})

    # What an agent's key is not for is refused at once.
    try:
        agent.get("/admin/status")
    except Refused as refused:
        expect("the status, by an agent", refused.code, "FORBIDDEN")
        print(f"the status is not for agents: {refused}")
    else:
        raise AssertionError("an agent's key read the status")

    # What was recorded.
    page = agent.get("/proof/query", entityId=agent_id, pageSize=10)
    print(f"{page['total']} records: {', '.join(record['decision'] for record in page['items'])}")
    expect("records", page["total"], 3)
    stats = agent.get("/proof/stats", entityId=agent_id)
    print(f"success rate {stats['successRate']}, chain intact: {stats['chainIntegrity']}")
    expect("the chain", stats["chainIntegrity"], True)
    status = admin.get("/admin/status")
    print(f"the governor is {status['status']}, version {status['version']}")

    revoked = admin.delete(f"/admin/keys/{made['id']}")
    print(f"the key {revoked['id']} is {revoked['state']}")
    expect("the key", revoked["state"], "revoked")


if __name__ == "__main__":
    try:
        main()
    except (Refused, requests.RequestException, AssertionError, KeyError, ValueError) as surprise:
        sys.exit(f"python_client.py: {type(surprise).__name__}: {surprise}")

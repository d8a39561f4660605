"""The time of `enforce` from Python, in memory and buffered: python crates/python/tests/bench_enforce.py [CALLS]

Fails where the median of the first line, a decision without parsing, is 30 microseconds or more.
"""

import statistics
import sys
import time

import rulekeep

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
INTENT = {"agentId": "a", "parsedAction": "read_file", "riskLevel": "LOW", "requiredCapabilities": ["file:read"]}
CALL = {"tool": "read_file", "arguments": {"path": "/srv/notes.txt"}}


def measure(name, ask):
    for _ in range(1000):
        ask()
    times = []
    for _ in range(CALLS):
        started = time.perf_counter_ns()
        ask()
        times.append((time.perf_counter_ns() - started) / 1000)
    times.sort()
    median = statistics.median(times)
    print(f"{name:28} median {median:6.1f} us   p99 {times[int(len(times) * 0.99)]:6.1f} us   {CALLS} calls")
    return median


def main():
    with rulekeep.Governor.open(durability="buffered") as governor:
        governor.agents.register("a", tier="T4")
        first = measure("enforce, an intent", lambda: governor.enforce(INTENT))
        parsed = governor.parse("a", CALL)["intent"]
        measure("enforce, a parsed intent", lambda: governor.enforce(parsed))
        measure("enforce, a tool call", lambda: governor.enforce(agent_id="a", input=CALL))
        measure("enforce, a text", lambda: governor.enforce(agent_id="a", input="Summarize the meeting notes"))
        guarded = governor.guard("a", "read_file")(lambda path: path)
        measure("a guarded function", lambda: guarded("/srv/notes.txt"))
    return 0 if first < 30 else 1


if __name__ == "__main__":
    sys.exit(main())

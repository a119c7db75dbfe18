"""CPU time of checking a request of 200 kB against its protocol's allow list, and of bounding its tokens.

The request is a long conversation with messages of 1,500 characters, which the session has seen before.
The parts of which the bound is made are not timed: the session's transcript needs them too. ::

    python perf/checked_requests.py --rounds 50
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from measure import Report, arguments, machine, slowness

from codetaste.gateway.prompt.bound import PartBound, TokenCounts
from codetaste.gateway.prompt.parts import request_parts
from codetaste.llm.messages import Message, Reply, Request, StopReason, Usage
from codetaste.llm.wire.allow_lists import ALLOW_LISTS

BODY_BYTES = 200_000
MAX_MS = 1.0
_REQUEST = Request("", (), max_output_tokens=2000)
_REPLY = Reply(Message("assistant", ()), StopReason.END, Usage(input=50_000, output=100), "m")
_WORDS = "x" * 1500
_ARGUMENTS = {"command": "git status --short", "more": ["a"] * 20}

TURNS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "anthropic": (
        "messages",
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": _WORDS},
                    {"type": "tool_use", "id": "t", "name": "Bash", "input": _ARGUMENTS},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": _WORDS}]},
        ],
    ),
    "openai": (
        "input",
        [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": _WORDS}]},
            {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": _WORDS},
        ],
    ),
    "openai-chat": (
        "messages",
        [
            {
                "role": "assistant",
                "content": _WORDS,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": _WORDS},
        ],
    ),
}


def main() -> int:
    chosen = arguments(__doc__, 50).parse_args()
    report = Report(
        "checking a request of 200 kB against the allow list, and bounding its tokens",
        machine(),
        slowness=slowness(),
    )
    for protocol, (key, turn) in TURNS.items():
        body: dict[str, Any] = {"model": "m", key: turn * (BODY_BYTES // len(json.dumps(turn)))}
        counts = TokenCounts().for_session()
        checked_ms, bounded_ms = [], []
        for _ in range(chosen.rounds):
            parts = request_parts(protocol, body)
            began_s = time.process_time()
            found = ALLOW_LISTS[protocol].check_request(body, {}, {})
            checked_s = time.process_time()
            bound = PartBound(parts, protocol, (), counts, 1024)
            bounded_s = time.process_time()
            checked_ms.append((checked_s - began_s) * 1000)
            bounded_ms.append((bounded_s - checked_s) * 1000)
            if found.refusals:
                raise SystemExit(found.describe())
            bound.learn(_REQUEST, _REPLY)
        report.add(f"{protocol}: allow list, CPU", checked_ms, " ms")
        report.add(f"{protocol}: bound, CPU", bounded_ms, " ms")
        both = [sum(each) for each in zip(checked_ms, bounded_ms, strict=True)]
        report.add(f"{protocol}: both, CPU", both, " ms", most=MAX_MS, scaled=True)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())

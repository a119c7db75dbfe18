"""CPU time of checking one request of 200 kB against the allow list of its protocol.

The request is a long conversation with messages of 1,500 characters. ::

    python perf/checked_requests.py --rounds 50
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from measure import Report, arguments, machine

from codetaste.llm.wire.allow_lists import ALLOW_LISTS

BODY_BYTES = 200_000
MAX_MS = 1.0
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
    report = Report("checking a request of 200 kB against the allow list", machine())
    for protocol, (key, turn) in TURNS.items():
        body: dict[str, Any] = {"model": "m", key: turn * (BODY_BYTES // len(json.dumps(turn)))}
        times_ms = []
        for _ in range(chosen.rounds):
            began_s = time.process_time()
            found = ALLOW_LISTS[protocol].check_request(body, {}, {})
            times_ms.append((time.process_time() - began_s) * 1000)
            if found.refusals:
                raise SystemExit(found.describe())
        report.add(f"{protocol}, CPU", times_ms, " ms", most=MAX_MS)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())

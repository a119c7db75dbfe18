"""Lines of a journal with times of the test's choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JOB = "infer/a/open/direct/x__y-1/execute"


class JournalLines:
    """The journal of a run; ``at`` is the time of the next line, in seconds."""

    def __init__(self, run: Path) -> None:
        self.path = run / "journal.jsonl"
        self.at = 1000.0
        run.mkdir(parents=True, exist_ok=True)
        self.path.write_text("")
        self.add("journal", format=2)
        self.session()

    def add(self, event: str, **fields: Any) -> None:
        """Add a line."""
        with self.path.open("a") as file:
            file.write(json.dumps({"event": event, **fields, "t": self.at}) + "\n")

    def session(self) -> None:
        """Add the beginning of a session."""
        self.add("session", pid=1, host="h", limits=[None, None, None, None])

    def job(self, key: str = JOB, needs: tuple[str, ...] = ()) -> None:
        """Add a job."""
        self.add("job", key=key, title="t", lane="m", needs=list(needs), path=[key])

    def start(self, key: str = JOB, attempt: int = 1) -> None:
        """Start an attempt."""
        self.add("started", key=key, attempt=attempt)

    def reserve(self, effect: str, number: int = 1, key: str = JOB, usd: str = "1.0") -> str:
        """Reserve money for a call; returns its id."""
        call = f"{key}/{effect}#{number}"
        fields = {"fingerprint": "f", "effect": effect, "path": [key], "usd": usd, "tokens": 100}
        self.add("reserved", call=call, key=key, note={"model": "m"}, **fields)
        return call

    def settle(self, call: str, *content: dict[str, Any], usd: str = "0.25", stop: str = "tool_use") -> None:
        """Settle a call with a reply of these blocks."""
        usage = {"input": 5, "cache_read": 0, "cache_write": 0, "output": 2, "reasoning": 0}
        message = {"role": "assistant", "content": list(content)}
        reply = {"message": message, "stop": stop, "usage": usage, "model": "m-1", "request_id": ""}
        value = {"reply": reply, "call": call, "usage": usage}
        self.add("settled", call=call, usd=usd, tokens=7, value=value)

    def tool(self, effect: str, text: str, key: str = JOB, *, is_error: bool = False) -> None:
        """Add the result of a tool."""
        value = {"content": text, "is_error": is_error, "mistake": False, "finish": False, "facts": []}
        self.add("effect", key=key, fingerprint="f", name=effect, value=value)

    def end(self, key: str = JOB, status: str = "done") -> None:
        """End a job."""
        self.add("ended", key=key, fingerprint="f", status=status)


def text(words: str) -> dict[str, Any]:
    """Return a text block of a reply."""
    return {"type": "text", "text": words}


def call(call_id: str, **arguments: Any) -> dict[str, Any]:
    """Return a call of "bash" in a reply."""
    return {"type": "call", "id": call_id, "name": "bash", "arguments": arguments}

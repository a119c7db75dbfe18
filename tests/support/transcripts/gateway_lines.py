"""Write the lines of a gateway's transcript by hand, so that each part of it can be what a test needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class GatewayLines:
    """The lines of one session of a job."""

    def __init__(self, run: Path, name: str = "transcript.jsonl", *, attempt: int = 1) -> None:
        self.path = run / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._attempt = attempt
        self._parts: dict[str, str] = {}
        self._sent: list[list[str]] = []
        self.add({"transcript": 2, "job": "j", "attempt": attempt, "protocol": "anthropic"})

    def add(self, line: dict[str, Any]) -> None:
        """Add a line."""
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def exchange(
        self,
        messages: list[dict[str, Any]],
        *reply: dict[str, Any],
        tools: list[str] | None = None,
        error: str = "",
        status: int = 200,
        **more: Any,
    ) -> None:
        """Add a request and its reply, as the gateway would: after the request with the longest beginning."""
        names = [self._part(message) for message in messages]
        number = len(self._sent) + 1
        commons = [
            next((n for n, (one, two) in enumerate(zip(sent, names, strict=False)) if one != two), None)
            for sent in self._sent
        ]
        lengths = [
            min(len(sent), len(names)) if common is None else common
            for sent, common in zip(self._sent, commons, strict=True)
        ]
        line: dict[str, Any] = {
            "request": number,
            "effect": f"gateway/attempt-{self._attempt}/call-{number}",
            "time": f"2026-01-01T00:00:{number:02}.000+00:00",
        }
        common = 0
        if lengths:
            common = max(lengths)
            before = len(lengths) - lengths[::-1].index(common)
            line |= {"continues": before, "common": common}
        self.add({**line, "tools": tools or ["bash"], "added": names[common:], **more})
        self._sent.append(names)
        answers = [self._part(message) for message in reply]
        failed = {"error": error} if error else {}
        self.add({"reply": number, "status": status, "messages": answers, "duration_s": 0.5, **failed})

    def _part(self, message: dict[str, Any]) -> str:
        text = json.dumps(message, sort_keys=True)
        if text not in self._parts:
            self._parts[text] = f"m{len(self._parts)}"
            self.add({"part": self._parts[text], "kind": "message", "value": message})
        return self._parts[text]

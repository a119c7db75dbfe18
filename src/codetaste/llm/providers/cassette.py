"""Recorded conversations with a model, and the first difference of an unrecorded request.

A cassette stores each message once, however many requests of a conversation contain it. A request is
identified by model, system prompt, tools, options and messages. Raw blocks, the provider's ids of tool calls
(which are numbered instead) and the output cap (which a budget may lower) do not count. Requests contain no
API keys and no headers, so cassettes contain none either.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from codetaste.core.hashing import json_digest
from codetaste.core.jsonl import JsonlFile
from codetaste.errors import ConfigError, JournalError
from codetaste.llm.codec import block_to_json, reply_from_json, reply_to_json, tool_to_json, value_to_json
from codetaste.llm.messages import ToolCall, ToolResult

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.llm.messages import Block, Reply, Request

_SHOWN = 60
"""Characters shown on each side of a difference."""


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Identifies a request in a cassette: named parts with their digests, and ``key``, the digest of all."""

    key: str
    parts: tuple[tuple[str, str], ...]
    bodies: dict[str, Any] = field(compare=False)

    @classmethod
    def from_request(cls, model: str, request: Request) -> RequestKey:
        """Return the key of ``request`` to ``model``."""
        numbers: dict[str, str] = {}
        named: list[tuple[str, Any]] = [
            ("model", model),
            ("system", value_to_json(request.system)),
            ("tools", [tool_to_json(tool) for tool in request.tools]),
            ("options", value_to_json(request.options)),
        ]
        for number, message in enumerate(request.messages, 1):
            content = [_numbered(block, numbers) for block in message.content]
            named.append((f"message {number} ({message.role})", [message.role, content]))
        parts = tuple((name, json_digest(body)) for name, body in named)
        return cls(json_digest(parts), parts, {json_digest(body): body for _, body in named})


def _numbered(block: Block, numbers: dict[str, str]) -> dict[str, Any]:
    """Return a block as JSON, with the ids of tool calls replaced by numbers in order of appearance."""
    written = block_to_json(block)
    if isinstance(block, ToolCall):
        written["id"] = numbers.setdefault(block.id, f"call-{len(numbers) + 1}")
    elif isinstance(block, ToolResult):
        written["call"] = numbers.setdefault(block.call_id, f"call-{len(numbers) + 1}")
    return written


class Cassette:
    """A recording in one JSON-lines file; several processes may append to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._record = JsonlFile(path)
        self._bodies: dict[str, Any] = {}
        self._parts: dict[str, tuple[tuple[str, str], ...]] = {}
        self._replies: dict[tuple[str, int], dict[str, Any]] = {}
        self._loaded = False
        self._lock = anyio.Lock()

    @classmethod
    def at(cls, path: Path, model_id: str) -> Cassette:
        """Return the cassette at ``path``: a ``.jsonl`` file, or a folder with one file per model."""
        return cls(path if path.suffix == ".jsonl" else path / f"{model_id}.jsonl")

    def check(self, *, recorded: bool) -> None:
        """Check that the file can be used; does blocking I/O.

        Args:
            recorded: whether it must exist and have a recorded reply.

        Raises:
            ConfigError: it cannot be used.
        """
        if recorded and not self.path.is_file():
            raise ConfigError(f'no cassette {self.path}; record one first with mode = "record"')
        try:
            self._load()
        except JournalError as error:
            raise ConfigError(str(error)) from error
        self._loaded = True
        if recorded and not self._replies:
            raise ConfigError(f'{self.path} holds no recorded reply; record one first with mode = "record"')

    async def load(self) -> None:
        """Read the file, once.

        Raises:
            JournalError: it cannot be read, or a line is damaged.
        """
        async with self._lock:
            if not self._loaded:
                await anyio.to_thread.run_sync(self._load)
                self._loaded = True

    def _load(self) -> None:
        self._record.read_into(self._take)

    def _take(self, line: dict[str, Any]) -> None:
        if "body" in line and "part" in line:
            self._bodies[line["part"]] = line["body"]
        elif {"key", "nth", "parts", "reply"} <= line.keys():
            reply_from_json(line["reply"])
            self._parts[line["key"]] = tuple((str(name), str(part)) for name, part in line["parts"])
            # If a request was recorded twice, the later recording counts.
            self._replies[line["key"], line["nth"]] = line["reply"]

    def reply(self, key: str, nth: int) -> Reply | None:
        """Return the reply to the ``nth`` request (from 0) with this ``key``, None if it is not recorded."""
        written = self._replies.get((key, nth))
        return None if written is None else reply_from_json(written)

    def count(self, key: str) -> int:
        """Return how many replies are recorded for a request."""
        nth = 0
        while (key, nth) in self._replies:
            nth += 1
        return nth

    async def add(self, request: RequestKey, nth: int, reply: Reply) -> None:
        """Record a reply; it is on disk when this returns.

        Raises:
            JournalError: the file cannot be written.
        """
        written, parts = reply_to_json(reply), [list(part) for part in request.parts]
        new = {part: body for part, body in request.bodies.items() if part not in self._bodies}
        entry = {"key": request.key, "nth": nth, "parts": parts, "reply": written}
        await self._record.append([*({"part": part, "body": body} for part, body in new.items()), entry])
        self._bodies.update(new)
        self._parts[request.key] = request.parts
        self._replies[request.key, nth] = written

    def describe_mismatch(self, request: RequestKey) -> str:
        """Describe in one line the first difference from the most similar recorded request."""
        if not self._parts:
            return f"{self.path} holds no recorded request"
        nearest = max(self._parts.values(), key=lambda parts: _agreement(parts, request.parts))
        for at, (name, part) in enumerate(request.parts):
            if at >= len(nearest):
                text = _readable(request.bodies[part])
                start = repr(text[: 2 * _SHOWN]) + ("…" if len(text) > 2 * _SHOWN else "")
                return f"{name} comes after the end of the recorded conversation: {start}"
            if nearest[at][1] != part:
                recorded = self._bodies.get(nearest[at][1])
                return f"{name} differs: {_difference(recorded, request.bodies[part])}"
        following = nearest[len(request.parts)][0]
        return f"the recorded conversation continues with {following}, this one stops before it"


def _agreement(
    recorded: tuple[tuple[str, str], ...], requested: tuple[tuple[str, str], ...]
) -> tuple[int, int, int]:
    """Rank a recorded request by the equal parts before the first difference, then by all equal parts."""
    same = [one == other for one, other in zip(recorded, requested, strict=False)]
    leading = same.index(False) if False in same else len(same)
    return leading, sum(same), -abs(len(recorded) - len(requested))


def _readable(body: Any) -> str:  # noqa: ANN401 - JSON data
    return json.dumps(body, sort_keys=True, ensure_ascii=False)


def _difference(recorded: Any, requested: Any) -> str:  # noqa: ANN401 - JSON data
    """Show both texts around the first character in which they differ."""
    one, other = _readable(recorded), _readable(requested)
    pairs = zip(one, other, strict=False)
    at = next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    window = slice(max(0, at - _SHOWN // 2), at + _SHOWN)
    return f"at character {at}, recorded {one[window]!r}, requested {other[window]!r}"

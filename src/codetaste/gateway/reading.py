"""A transcript read back: each request with its whole conversation, its answer, and the calls in that."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from codetaste.errors import JournalError
from codetaste.llm.codec import unpack
from codetaste.llm.record import Record
from codetaste.llm.wire.calls import read_arguments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Exchanged:
    """One request and what became of it.

    Attributes:
        protocol: in which the parts are written.
        admission: counts the admissions in the file, from 1; ``number`` counts the requests of each.
        number: see above.
        request: the line of the request, as ``transcript.py`` describes it.
        reply: the line of what became of it; empty where the run was killed before it was known.
        tools: of the request.
        system: blocks of instructions of the request.
        said: the conversation of the request.
        answered: what was said then, as a conversation has it; empty where there was no reply.
    """

    protocol: str
    admission: int
    number: int
    request: Mapping[str, Any]
    reply: Mapping[str, Any]
    tools: tuple[Any, ...]
    system: tuple[Any, ...]
    said: tuple[Any, ...]
    answered: tuple[Any, ...]

    @property
    def main(self) -> bool:
        """Whether it was a turn of the agent, not a call on the side."""
        return not self.request.get("side", False)

    @property
    def calls(self) -> tuple[Called, ...]:
        """The tools that the reply asks for, in order."""
        return tuple(calls_in(self.protocol, self.answered))


@dataclass(frozen=True, slots=True)
class Called:
    """A tool that a model asked for; a tool that takes a text has it as the argument ``input``."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(slots=True)
class _Request:
    line: Mapping[str, Any]
    tools: list[str]
    system: list[str]
    said: list[str]


@dataclass(slots=True)
class _File:
    """What the lines read so far say."""

    parts: dict[str, Any] = field(default_factory=dict)
    protocol: str = ""
    admission: int = 0
    requests: dict[int, _Request] = field(default_factory=dict)
    replies: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def take(self, line: Mapping[str, Any]) -> None:
        number = line["request"]
        after = self.requests.get(line.get("after", 0)) or _Request({}, [], [], [])
        self.requests[number] = _Request(
            line,
            line.get("tools", after.tools),
            line.get("system", after.system),
            [*after.said[: line.get("keep", 0)], *line["added"]],
        )

    def exchanged(self) -> Iterator[Exchanged]:
        for number, request in self.requests.items():
            reply = self.replies.get(number, {})
            yield Exchanged(
                self.protocol,
                self.admission,
                number,
                request.line,
                reply,
                self._values(request.tools),
                self._values(request.system),
                self._values(request.said),
                self._values(reply.get("said", ())),
            )

    def _values(self, names: Iterable[str]) -> tuple[Any, ...]:
        return tuple(self.parts[name] for name in names)


async def read_transcript(path: Path, fetch: Callable[[str], Awaitable[str]]) -> list[Exchanged]:
    """Return all requests of a transcript, in order.

    Args:
        path: the file.
        fetch: returns a text by its digest: ``JobContext.fetch``, or that of the run's ``Blobs``.

    Raises:
        JournalError: it is missing, or a part of it is.
    """
    file, found = _File(), list[Exchanged]()
    lines = await anyio.to_thread.run_sync(list, Record(path).read())
    if not lines:
        raise JournalError(f"{path}: there is no transcript")
    try:
        for line in lines:
            match line:
                case {"transcript": _, "protocol": protocol}:
                    found.extend(file.exchanged())
                    file = _File(file.parts, protocol, file.admission + 1)
                case {"part": name, "kept": digest}:
                    file.parts[name] = unpack(json.loads(await fetch(digest)))
                case {"part": name, "value": value}:
                    file.parts[name] = unpack(value)
                case {"request": _}:
                    file.take(line)
                case {"reply": number}:
                    file.replies[number] = line
        found.extend(file.exchanged())
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"{path}: is damaged: {error!r}") from error
    return found


def calls_in(protocol: str, said: Iterable[Any]) -> Iterator[Called]:
    """Yield the tool calls in what a model said, in the words of its protocol."""
    for each in said:
        if protocol == "anthropic":
            content = each.get("content")
            for block in content if isinstance(content, list) else ():
                if block.get("type") == "tool_use":
                    yield _called(block.get("name"), block.get("input"))
        elif protocol == "openai":
            if each.get("type") == "function_call":
                yield _called(each.get("name"), each.get("arguments"))
            elif each.get("type") == "custom_tool_call":
                yield _called(each.get("name"), {"input": each.get("input")})
        else:
            for call in each.get("tool_calls") or ():
                kind = call.get("custom") or call.get("function") or {}
                given = {"input": kind.get("input")} if "custom" in call else kind.get("arguments")
                yield _called(kind.get("name"), given)


def _called(name: object, arguments: object) -> Called:
    if isinstance(arguments, str):
        arguments = read_arguments(arguments)[0]
    return Called(str(name or ""), arguments if isinstance(arguments, dict) else {})

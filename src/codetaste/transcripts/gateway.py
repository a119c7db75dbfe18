"""Events of a gateway's transcript: each message once, though every request repeats its conversation.

The requests of one file belong to several conversations: that of the agent, those of its sub-agents, and side
calls such as titles. A request continues the conversation of the request that its line names. One that shares
nothing with an earlier request, but has the tools of the agent itself, is the agent's own after it has
compacted its conversation.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, TypeAlias

from codetaste.core.files import open_regular_file
from codetaste.core.text import shorten
from codetaste.core.units import parse_iso_time
from codetaste.errors import JournalError
from codetaste.llm.codec import value_from_json
from codetaste.llm.messages import Usage
from codetaste.orchestration.journal.blobs import BLOBS_FOLDER, Blobs
from codetaste.transcripts.blocks import message_blocks
from codetaste.transcripts.event import EventCounter, EventKind, ReplyFacts
from codetaste.transcripts.loop import block_event, reply_events
from codetaste.transcripts.record_lines import parse_object, record_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.transcripts.blocks import MessageBlock
    from codetaste.transcripts.event import TranscriptEvent
    from codetaste.transcripts.record_lines import RecordLine

_MIN_SYSTEM_CHARS = 500
"""Shorter ones are shown at the beginning only: Claude Code changes its first block with every request."""
_NOT_RESENT = frozenset({EventKind.REASONING, EventKind.SYSTEM, EventKind.ERROR})
"""Kinds of events that agents and providers leave out of later requests as a matter of course."""
_CLEARED = frozenset({"[Old tool result content cleared]"})
"""What Claude Code sends in place of old results when its conversation gets long."""
_MAX_NOTE_CHARS = 2000
_MAX_REQUESTS = 256
"""Requests whose messages are stored: the writer continues one of the last 32."""
_Key: TypeAlias = tuple[str, str, bytes]
"""The key of a block; see ``MessageBlock.key``."""


def gateway_events(path: Path, run: Path) -> Iterator[TranscriptEvent]:
    """Yield the events of the file. Blocking.

    Args:
        path: the file.
        run: the run's folder, which has long messages under their hash.
    """
    reader = _Reader(path, Blobs(run / BLOBS_FOLDER))
    for line in record_lines(path):
        written, problem = parse_object(line)
        if written is None:
            if problem:
                yield reader.problem(f"line {line.number}: {problem}")
            continue
        try:
            match written:
                case {"transcript": _}:
                    reader.begin()
                case {"part": str(name)}:
                    reader.parts.add(name, line)
                case {"request": int(number)}:
                    yield from reader.request(number, written)
                case {"reply": int(number)}:
                    yield from reader.reply(number, written)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            yield reader.problem(f"line {line.number} is damaged ({type(error).__name__})")


@dataclass(slots=True)
class _Conversation:
    """One conversation.

    Attributes:
        agent: its name, "" for that of the agent itself.
        tools: names of its tools.
        sent: the messages of its last request, and the events that show each of them.
        replied: the events of replies that no request has sent back yet.
        results: ids of calls whose result was shown.
        system: instructions that were shown.
    """

    agent: str
    tools: tuple[str, ...] = ()
    sent: dict[str, list[tuple[_Key, int]]] = field(default_factory=dict)
    replied: list[tuple[_Key, int]] = field(default_factory=list)
    results: set[str] = field(default_factory=set)
    system: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Request:
    conversation: _Conversation
    turn: int
    messages: tuple[str, ...]
    tools: tuple[str, ...]
    system: tuple[str, ...]
    facts: ReplyFacts


class _Reader:
    def __init__(self, path: Path, blobs: Blobs) -> None:
        self._path, self._blobs = path, blobs
        self._events = EventCounter()
        self._turn = 0
        self._names: Counter[str] = Counter()
        self.begin()

    def begin(self) -> None:
        """Begin a session: nothing of an earlier one is part of its requests."""
        self.parts = _Parts(self._path, self._blobs)
        self._requests: dict[int, _Request] = {}
        self._main: _Conversation | None = None

    def problem(self, text: str) -> TranscriptEvent:
        return self._events.make(EventKind.PROBLEM, self._turn, text)

    def request(self, number: int, line: Mapping[str, Any]) -> Iterator[TranscriptEvent]:
        self._turn += 1
        before = self._requests.get(line.get("continues", 0))
        for old in [*self._requests][: len(self._requests) - _MAX_REQUESTS]:
            del self._requests[old]
        common = int(line.get("common", 0)) if before else 0
        messages = (*(before.messages[:common] if before else ()), *_names(line["added"]))
        tools = _names(line["tools"]) if "tools" in line else before.tools if before else ()
        system = _names(line["system"]) if "system" in line else before.system if before else ()
        conversation = self._conversation_of(line, before if common else None, tools, messages)
        sent_at = parse_iso_time(line.get("time"))
        self._events.agent, self._events.at = conversation.agent, sent_at
        facts = ReplyFacts(
            effect=str(line.get("effect", "")), model=str(line.get("model", "")), sent_at=sent_at
        )
        self._requests[number] = _Request(conversation, self._turn, messages, tools, system, facts)
        yield from self._system(conversation, system)
        yield from self._messages(conversation, messages)

    def reply(self, number: int, line: Mapping[str, Any]) -> Iterator[TranscriptEvent]:
        request = self._requests[number]
        conversation = request.conversation
        self._events.agent = conversation.agent
        duration_s = _number(line.get("duration_s"))
        if duration_s is not None and request.facts.sent_at is not None:
            self._events.at = request.facts.sent_at + duration_s
        facts = ReplyFacts(
            request.facts.effect,
            str(line.get("model") or request.facts.model),
            str(line.get("stop", "")),
            _usage(line.get("usage")),
            _dollars(line.get("cost_usd")),
            request.facts.sent_at,
            duration_s,
        )
        error = line.get("error")
        if error:
            text = f"HTTP {line.get('status', '?')}: {error}"
            yield self._events.make(EventKind.ERROR, request.turn, text, reply=facts)
            return
        blocks: list[MessageBlock] = []
        for name in _names(line.get("messages", [])):
            value, problem = self.parts.value(name)
            if problem:
                yield self._events.make(EventKind.PROBLEM, request.turn, problem)
            blocks += message_blocks(value)
        yield from reply_events(self._events, request.turn, blocks, facts)
        first = self._events.number - len(blocks) + 1
        conversation.replied += [(block.key, first + place) for place, block in enumerate(blocks)]

    def _conversation_of(
        self, line: Mapping[str, Any], before: _Request | None, tools: tuple[str, ...], names: Sequence[str]
    ) -> _Conversation:
        """Return the conversation of a request that shares messages with ``before``, or with no other."""
        side_call = line.get("side_call") is True
        if before is not None and side_call == before.conversation.agent.startswith("side call"):
            conversation = before.conversation
            if self._continues(conversation, tools, names):
                conversation.tools = tools
                return conversation
        if side_call:
            return _Conversation(self._name("side call"), tools)
        if self._main is None:
            self._main = _Conversation("", tools)
            return self._main
        if tools == self._main.tools:
            return self._main
        return _Conversation(self._name("sub-agent"), tools)

    def _continues(self, conversation: _Conversation, tools: tuple[str, ...], names: Sequence[str]) -> bool:
        """Whether a request goes on with a conversation, and not only begins with the same messages."""
        if tools == conversation.tools and conversation is self._main:
            return True
        shared = len(conversation.sent.keys() & set(names))
        return shared == len(conversation.sent) or (
            tools == conversation.tools and 2 * shared > len(conversation.sent)
        )

    def _name(self, kind: str) -> str:
        self._names[kind] += 1
        return f"{kind} {self._names[kind]}"

    def _system(self, conversation: _Conversation, names: Sequence[str]) -> Iterator[TranscriptEvent]:
        begins = not conversation.system
        for name in names:
            if name in conversation.system:
                continue
            conversation.system.add(name)
            value, problem = self.parts.value(name)
            if problem:
                yield self.problem(problem)
            text = "\n".join(block.text for block in message_blocks(value))
            if text and (begins or len(text) >= _MIN_SYSTEM_CHARS):
                yield self._events.make(EventKind.SYSTEM, self._turn - 1, text)

    def _messages(self, conversation: _Conversation, names: Sequence[str]) -> Iterator[TranscriptEvent]:
        """Yield what the request has and no event has shown, and a note on what it has no longer."""
        known, sent = conversation.sent, dict[str, list[tuple[_Key, int]]]()
        gone = [block for name in known.keys() - set(names) for block in known[name]] + conversation.replied
        for name in names:
            if name in known:
                sent[name] = known[name]
            if name in sent:
                continue
            sent[name] = []
            value, problem = self.parts.value(name)
            if problem:
                yield self.problem(problem)
            for block in message_blocks(value):
                shown = _take(gone, block.key)
                if shown is None and block.call_id in conversation.results and block.kind is EventKind.RESULT:
                    yield from self._other_result(block)
                    continue
                if shown is None:
                    event = block_event(self._events, self._turn - 1, block)
                    yield replace(event, from_client=block.kind.of_model)
                    shown = event.number
                    if block.kind is EventKind.RESULT and block.call_id:
                        conversation.results.add(block.call_id)
                sent[name].append((block.key, shown))
        conversation.sent, conversation.replied = sent, []
        if left_out := [number for key, number in gone if key[0] not in _NOT_RESENT]:
            text = f"From here on these events are no longer sent, or are sent shortened: {_ranges(left_out)}"
            yield self._events.make(EventKind.NOTE, self._turn - 1, text)

    def _other_result(self, block: MessageBlock) -> Iterator[TranscriptEvent]:
        """Yield a note on a result that the agent sends in place of an earlier one of the same call."""
        if block.text not in _CLEARED:
            text = (
                f"In place of an earlier result the agent now sends: {shorten(block.text, _MAX_NOTE_CHARS)}"
            )
            yield self._events.make(EventKind.NOTE, self._turn - 1, text, call_id=block.call_id)


class _Parts:
    """The parts of conversations that a session has written so far; they are read when they are shown."""

    def __init__(self, path: Path, blobs: Blobs) -> None:
        self._path, self._blobs = path, blobs
        self._places: dict[str, tuple[int, int]] = {}

    def add(self, name: str, line: RecordLine) -> None:
        """Note the line of a part; the first one of a name counts."""
        self._places.setdefault(name, (line.offset, len(line.data)))

    def value(self, name: str) -> tuple[Any, str]:
        """Return the content of a part, or what is wrong with it."""
        if name not in self._places:
            return None, f"a part of the conversation is missing: {name[:32]}"
        offset, size = self._places[name]
        try:
            with open_regular_file(self._path) as file:
                file.seek(offset)
                line = json.loads(file.read(size))
            value = line.get("value")
            if "stored" in line:
                value = json.loads(self._blobs.read(str(line["stored"])))
            return value_from_json(value), ""
        except (JournalError, OSError):
            return None, "a part of the conversation is missing or damaged in blobs/"
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            return None, "a part of the conversation is damaged"


def _take(gone: list[tuple[_Key, int]], key: _Key) -> int | None:
    """Remove the first block with this key, and return the number of its event."""
    for place, (other, number) in enumerate(gone):
        if other == key:
            del gone[place]
            return number
    return None


def _names(value: Iterable[Any]) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str))


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers as text: "3–7, 9"."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{first}–{last}" if first < last else str(first) for first, last in found)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < 10**9 else None


def _dollars(value: object) -> Decimal | None:
    try:
        usd = Decimal(value) if isinstance(value, str) and len(value) < 40 else None  # noqa: PLR2004 - no amount is longer
    except InvalidOperation:
        return None
    return usd if usd is not None and usd.is_finite() else None


def _usage(value: object) -> Mapping[str, int] | None:
    if not isinstance(value, dict):
        return None
    return {kind: value[kind] for kind in Usage.KINDS if type(value.get(kind)) is int and value[kind] >= 0}

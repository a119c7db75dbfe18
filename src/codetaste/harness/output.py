"""Parser of an agent's standard output: JSON lines, matched by the patterns of its ``agent.toml``.

The output is untrusted: lines that are not JSON, too long, or of another shape are skipped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from codetaste.harness.manifest import (
        AgentManifest,
        CountPattern,
        EndEvent,
        EventPattern,
        ExpectedValue,
        NumberFields,
    )

MAX_LINE_BYTES = 16 * 1024**2
"""A longer line is skipped."""
MAX_MESSAGE_CHARS = 20_000
"""Length to which the last message is cut."""
_MAX_DISTINCT = 1_000_000
_MAX_COUNT = 10**15
_MAX_USD, _USD_DIGITS = Decimal(10) ** 9, 10


@dataclass(frozen=True, slots=True)
class ReportedResult:
    """What an agent's output has reported so far; None is a number that was not reported.

    Attributes:
        outcome: of the last event that ends a run: "success", "budget", "error"; "" without one.
        problem: what contradicts a success, "" if nothing does.
        message: its last message, shortened.
        turns: replies of its model.
        tool_calls: number of tool calls.
        usage: tokens, as the agent counts them.
        cost_usd: the cost that the agent reports, in US dollars.
    """

    outcome: str = ""
    problem: str = ""
    message: str = ""
    turns: int | None = None
    tool_calls: int | None = None
    usage: Usage | None = None
    cost_usd: Decimal | None = None


class OutputParser:
    """Parses a stream as it arrives, in chunks of any size.

    ``event_count`` is the number of parsed lines: lines that contain all words that some pattern requires.
    """

    def __init__(self, manifest: AgentManifest) -> None:
        self._manifest = manifest
        self._required_words = _find_required_words(manifest)
        self.event_count = 0
        self._line = bytearray()
        self._skipping = False
        self._turns, self._tool_calls = _PartCounter(manifest.turns), _PartCounter(manifest.tool_calls)
        self._message = ""
        self._end: tuple[EndEvent, dict[str, Any]] | None = None

    def feed(self, chunk: bytes) -> None:
        """Parse the next chunk."""
        ended, newline, rest = chunk.rpartition(b"\n")
        if newline:
            first, _, lines = ended.partition(b"\n")
            self._add(first)
            self._end_line()
            if self._may_match(lines):
                for line in lines.split(b"\n"):
                    self._parse_line(line)
        self._add(rest)

    def result(self) -> ReportedResult:
        """Return what the stream has reported, including its last line if that lacks only the newline."""
        self._end_line()
        turns, tool_calls = self._turns.total, self._tool_calls.total
        if self._end is None:
            return ReportedResult(message=self._message, turns=turns, tool_calls=tool_calls)
        ending, event = self._end
        numbers = self._manifest.numbers
        message = self._message if ending.message is None else _text_at(event, ending.message)
        own_turns = _number(event, numbers.turns)
        return ReportedResult(
            outcome=ending.outcome,
            problem=_contradiction(ending, message),
            message=message[-MAX_MESSAGE_CHARS:],
            turns=turns if own_turns is None else own_turns,
            tool_calls=tool_calls,
            usage=_usage(event, numbers),
            cost_usd=_usd(event, numbers.cost_usd),
        )

    def _add(self, part: bytes) -> None:
        if self._skipping or len(self._line) + len(part) > MAX_LINE_BYTES:
            self._skipping = True
            self._line.clear()
        else:
            self._line += part

    def _end_line(self) -> None:
        if not self._skipping:
            self._parse_line(bytes(self._line))
        self._line.clear()
        self._skipping = False

    def _may_match(self, text: bytes) -> bool:
        return any(all(word in text for word in each) for each in self._required_words)

    def _parse_line(self, line: bytes) -> None:
        line = line.strip()
        if not line.startswith(b"{") or not self._may_match(line):
            return
        self.event_count += 1
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        ending = next((each for each in self._manifest.end_events if _matches(event, each.when)), None)
        if ending is not None:
            self._end = (ending, event)
        self._turns.count(event)
        self._tool_calls.count(event)
        pattern = self._manifest.message
        for part in _parts(event, pattern):
            if pattern is not None and (text := _text_at(part, pattern.text)):
                self._message = text[-MAX_MESSAGE_CHARS:]


def _contradiction(ending: EndEvent, message: str) -> str:
    """Return what contradicts a reported success, "" if nothing does."""
    if ending.outcome != "success":
        return ""
    if ending.requires_message and not message.strip():
        return "it reported success without a final message"
    pattern, last = ending.failure_pattern, message[-MAX_MESSAGE_CHARS:]
    found = pattern.search(last) if pattern else None
    if found or message.lstrip().startswith(ending.failure_prefixes):
        return f"it reported success with the message: {(found.group() if found else message)[:200]}"
    return ""


class _PartCounter:
    """Counts the parts that a pattern matches; ``total`` is None without a pattern."""

    def __init__(self, rule: CountPattern | None) -> None:
        self._rule = rule
        self._seen: set[str] = set()
        self._total = 0

    @property
    def total(self) -> int | None:
        return None if self._rule is None else self._total + len(self._seen)

    def count(self, event: dict[str, Any]) -> None:
        for part in _parts(event, self._rule):
            name = (
                next(_values_at(part, self._rule.distinct), None)
                if self._rule and self._rule.distinct
                else None
            )
            if name is None or len(self._seen) >= _MAX_DISTINCT:
                self._total += 1
            else:
                self._seen.add(str(name)[:200])


def _find_required_words(manifest: AgentManifest) -> tuple[tuple[bytes, ...], ...]:
    """Return for each pattern the words of every matching line; searching for them is cheap in a flood."""
    rules: list[Mapping[str, ExpectedValue]] = [ending.when for ending in manifest.end_events]
    rules += [pick.when for pick in (manifest.message, manifest.turns, manifest.tool_calls) if pick]
    return tuple(
        tuple(
            json.dumps(value).encode()
            for value in when.values()
            if isinstance(value, str) and value.isascii() and value.isalnum()
        )
        for when in rules
    )


def _parts(event: dict[str, Any], pick: EventPattern | None) -> Iterator[Any]:
    if pick is None or not _matches(event, pick.when):
        return
    members = (event,) if pick.each is None else next(_values_at(event, pick.each), None)
    for member in members if isinstance(members, list | tuple) else ():
        if _matches(member, pick.where):
            yield member


def _matches(event: Any, when: Mapping[str, ExpectedValue]) -> bool:  # noqa: ANN401 - JSON
    # 1 == True in Python, but not in an agent.toml.
    return all(
        any(
            type(found) is type(choice) and found == choice
            for found in _values_at(event, place)
            for choice in (wanted if isinstance(wanted, tuple) else (wanted,))
        )
        for place, wanted in when.items()
    )


def _values_at(event: Any, place: str) -> Iterator[Any]:  # noqa: ANN401 - JSON
    """Yield the values at the path ``place``: none, one, or all that its ``*`` matches."""
    key, _, rest = place.partition(".")
    members: Iterable[Any] = ()
    if key == "*":
        members = event.values() if isinstance(event, dict) else event if isinstance(event, list) else ()
    elif isinstance(event, dict) and key in event:
        members = (event[key],)
    for member in members:
        if rest:
            yield from _values_at(member, rest)
        else:
            yield member


def _text_at(event: Any, place: str) -> str:  # noqa: ANN401 - JSON
    found = next(_values_at(event, place), None)
    return found if isinstance(found, str) else ""


def _number(event: Any, place: str | None) -> int | None:  # noqa: ANN401 - JSON
    """Return the sum of the numbers at the path ``place``; None if there are none or other values."""
    found = list(_values_at(event, place)) if place else []
    whole = [each for each in found if type(each) is int and 0 <= each <= _MAX_COUNT]
    return sum(whole) if found and len(whole) == len(found) else None


def _usd(event: Any, place: str | None) -> Decimal | None:  # noqa: ANN401 - JSON
    found = next(_values_at(event, place), None) if place else None
    if type(found) not in {int, float}:
        return None
    amount = Decimal(str(found))
    return round(amount, _USD_DIGITS) if amount.is_finite() and 0 <= amount <= _MAX_USD else None


def _usage(event: Any, numbers: NumberFields) -> Usage | None:  # noqa: ANN401 - JSON
    places = (numbers.input, numbers.cache_read, numbers.cache_write, numbers.output, numbers.reasoning)
    found = [_number(event, place) for place in places]
    if found[0] is None and found[3] is None:
        return None
    given, read, write, output, reasoning = (each or 0 for each in found)
    if numbers.input_includes_cached:
        given = max(0, given - read - write)
    return Usage(given, read, write, output, reasoning)

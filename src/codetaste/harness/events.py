"""What an agent's output tells: lines of JSON, read by its adapter's patterns, whatever else is among them.

Nothing here trusts the program: lines that are no JSON, absurdly long, or of another shape are passed over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from codetaste.harness.manifest import Counted, Ending, Figures, Manifest, Pick, Wanted

LINE_BYTES = 16 * 1024**2
"""A longer line is passed over."""
MESSAGE_CHARS = 20_000
"""What is kept of the last words."""
_MOST_COUNTED = 1_000_000
_MOST = 10**15
_MOST_USD, _DIGITS = Decimal(10) ** 9, 10


@dataclass(frozen=True, slots=True)
class Told:
    """What a program's output has told so far; None is what it has not.

    Attributes:
        outcome: of the last event that ends a run: "success", "budget", "error"; "" without one.
        problem: what contradicts a success, "" if nothing does.
        message: its last words, shortened.
        turns: answers of its model.
        tool_calls: tools that were called.
        usage: tokens, as it counts them.
        cost_usd: what it believes to have cost, in US dollars.
    """

    outcome: str = ""
    problem: str = ""
    message: str = ""
    turns: int | None = None
    tool_calls: int | None = None
    usage: Usage | None = None
    cost_usd: Decimal | None = None


class EventReader:
    """Reads a stream as it comes, in pieces of any size.

    ``events`` is how many lines were looked into: those in which the words stand that some pattern wants.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._wanted = _words_wanted(manifest)
        self.events = 0
        self._line = bytearray()
        self._skipping = False
        self._turns, self._tool_calls = _Count(manifest.turns), _Count(manifest.tool_calls)
        self._said = ""
        self._end: tuple[Ending, dict[str, Any]] | None = None

    def feed(self, chunk: bytes) -> None:
        """Take the next piece."""
        ended, newline, rest = chunk.rpartition(b"\n")
        if newline:
            first, _, lines = ended.partition(b"\n")
            self._add(first)
            self._end_line()
            if self._wants(lines):
                for line in lines.split(b"\n"):
                    self._take(line)
        self._add(rest)

    def told(self) -> Told:
        """Return what the stream has told, its last line too if that is whole without its end."""
        self._end_line()
        turns, tool_calls = self._turns.total, self._tool_calls.total
        if self._end is None:
            return Told(message=self._said, turns=turns, tool_calls=tool_calls)
        ending, event = self._end
        figures = self._manifest.figures
        message = self._said if ending.message is None else _text_at(event, ending.message)
        own_turns = _number(event, figures.turns)
        return Told(
            outcome=ending.outcome,
            problem=_doubt(ending, message),
            message=message[-MESSAGE_CHARS:],
            turns=turns if own_turns is None else own_turns,
            tool_calls=tool_calls,
            usage=_usage(event, figures),
            cost_usd=_usd(event, figures.cost_usd),
        )

    def _add(self, part: bytes) -> None:
        if self._skipping or len(self._line) + len(part) > LINE_BYTES:
            self._skipping = True
            self._line.clear()
        else:
            self._line += part

    def _end_line(self) -> None:
        if not self._skipping:
            self._take(bytes(self._line))
        self._line.clear()
        self._skipping = False

    def _wants(self, text: bytes) -> bool:
        return any(all(word in text for word in each) for each in self._wanted)

    def _take(self, line: bytes) -> None:
        text = line.strip()
        if not text.startswith(b"{") or not self._wants(text):
            return
        self.events += 1
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            return
        ending = next((each for each in self._manifest.ends if _fits(event, each.when)), None)
        if ending is not None:
            self._end = (ending, event)
        self._turns.count(event)
        self._tool_calls.count(event)
        said = self._manifest.message
        for part in _parts(event, said):
            if said is not None and (words := _text_at(part, said.text)):
                self._said = words[-MESSAGE_CHARS:]


def _doubt(ending: Ending, message: str) -> str:
    """Say what contradicts a success, "" if nothing does."""
    if ending.outcome != "success":
        return ""
    if ending.words and not message.strip():
        return "it calls a success what ended without a word"
    if ending.failures and message.lstrip().startswith(ending.failures):
        return f"it calls a success what says: {message[:200]}"
    return ""


class _Count:
    """How many different parts were seen; None without a rule that says which."""

    def __init__(self, rule: Counted | None) -> None:
        self._rule = rule
        self._seen: set[str] = set()
        self._total = 0

    @property
    def total(self) -> int | None:
        return None if self._rule is None else self._total + len(self._seen)

    def count(self, event: dict[str, Any]) -> None:
        for part in _parts(event, self._rule):
            name = next(_at(part, self._rule.distinct), None) if self._rule and self._rule.distinct else None
            if name is None or len(self._seen) >= _MOST_COUNTED:
                self._total += 1
            else:
                self._seen.add(str(name)[:200])


def _words_wanted(manifest: Manifest) -> tuple[tuple[bytes, ...], ...]:
    """For each pattern, what a line must have in it to fit: cheap to look for, so that floods cost little."""
    rules: list[Mapping[str, Wanted]] = [ending.when for ending in manifest.ends]
    rules += [pick.when for pick in (manifest.message, manifest.turns, manifest.tool_calls) if pick]
    return tuple(
        tuple(
            json.dumps(value).encode()
            for value in when.values()
            if isinstance(value, str) and value.isascii() and value.isalnum()
        )
        for when in rules
    )


def _parts(event: dict[str, Any], pick: Pick | None) -> Iterator[Any]:
    if pick is None or not _fits(event, pick.when):
        return
    members = (event,) if pick.each is None else next(_at(event, pick.each), None)
    for member in members if isinstance(members, list | tuple) else ():
        if _fits(member, pick.where):
            yield member


def _fits(event: Any, when: Mapping[str, Wanted]) -> bool:  # noqa: ANN401 - JSON
    return all(any(_is(found, wanted) for found in _at(event, place)) for place, wanted in when.items())


def _is(found: Any, wanted: Wanted) -> bool:  # noqa: ANN401 - JSON
    choices = wanted if isinstance(wanted, tuple) else (wanted,)
    # In Python 1 == True, in an agent.toml it is not.
    return any(type(found) is type(choice) and found == choice for choice in choices)


def _at(event: Any, place: str) -> Iterator[Any]:  # noqa: ANN401 - JSON
    """Yield what stands at ``place``: nothing, one value, or as many as its ``*`` leads to."""
    key, _, rest = place.partition(".")
    members: Iterable[Any] = ()
    if key == "*":
        members = event.values() if isinstance(event, dict) else event if isinstance(event, list) else ()
    elif isinstance(event, dict) and key in event:
        members = (event[key],)
    for member in members:
        if rest:
            yield from _at(member, rest)
        else:
            yield member


def _text_at(event: Any, place: str) -> str:  # noqa: ANN401 - JSON
    found = next(_at(event, place), None)
    return found if isinstance(found, str) else ""


def _number(event: Any, place: str | None) -> int | None:  # noqa: ANN401 - JSON
    """The sum of what stands at ``place``; None where nothing that can be counted does."""
    found = list(_at(event, place)) if place else []
    whole = [each for each in found if type(each) is int and 0 <= each <= _MOST]
    return sum(whole) if found and len(whole) == len(found) else None


def _usd(event: Any, place: str | None) -> Decimal | None:  # noqa: ANN401 - JSON
    found = next(_at(event, place), None) if place else None
    if type(found) not in {int, float}:
        return None
    amount = Decimal(str(found))
    return round(amount, _DIGITS) if amount.is_finite() and 0 <= amount <= _MOST_USD else None


def _usage(event: Any, figures: Figures) -> Usage | None:  # noqa: ANN401 - JSON
    places = (figures.input, figures.cache_read, figures.cache_write, figures.output, figures.reasoning)
    found = [_number(event, place) for place in places]
    if found[0] is None and found[3] is None:
        return None
    given, read, write, output, reasoning = (each or 0 for each in found)
    if figures.input_has_cached:
        given = max(0, given - read - write)
    return Usage(given, read, write, output, reasoning)

"""The most that a request's prompt can have in tokens, by what its provider has counted of the same parts.

A prompt is at most what was counted for an earlier request, and the bytes of the parts that were not in it:
providers tokenize part by part. So a conversation that goes on is bounded closely, also where a program
changes a block of its instructions each time, or leaves out what it had said.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.gateway.parts import said_parts
from codetaste.llm.bound import PER_CALL
from codetaste.llm.prefix import believable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.gateway.parts import Part
    from codetaste.llm.messages import Reply, Request

_CONVERSATIONS = 16
"""Counts that are remembered of a job: its last eight requests, with and without their replies."""
_OPENINGS = 4
"""Counts that are remembered of a model: how its last jobs began, as their instructions are much the same."""
Key = int
"""What a part is remembered by: its name, and how many equal ones stood before it."""


@dataclass(frozen=True, slots=True)
class _Count:
    """What a provider counted for a prompt of these parts; equal ones are told apart by their number."""

    keys: frozenset[Key]
    tokens: int


class Counts:
    """What is remembered of a model, for all its jobs."""

    def __init__(self) -> None:
        self._openings: deque[_Count] = deque(maxlen=_OPENINGS)

    def of_a_job(self) -> JobCounts:
        """Return the memory of a new job."""
        return JobCounts(self._openings)


class JobCounts:
    """What is remembered of one job."""

    def __init__(self, openings: deque[_Count]) -> None:
        self._openings, self._began = openings, False
        self._counts: deque[_Count] = deque(openings, maxlen=_CONVERSATIONS)

    def tokens(self, sizes: dict[Key, int]) -> int:
        """Return what a prompt of these parts cannot exceed."""
        bounds = [PER_CALL + sum(sizes.values())]
        keys = sizes.keys()
        bounds.extend(
            count.tokens + PER_CALL + sum(map(sizes.__getitem__, keys - count.keys)) for count in self._counts
        )
        return min(bounds)

    def learn(self, keys: frozenset[Key], tokens: int) -> None:
        """Remember what a provider counted."""
        count = _Count(keys, tokens)
        self._counts.append(count)
        if not self._began:
            self._began = True
            self._openings.append(count)


class WireBound:
    """Bounds the prompt of one request as a program wrote it."""

    def __init__(self, parts: Iterable[Part], counts: JobCounts) -> None:
        self._sizes, self._seen = dict[Key, int](), Counter[str]()
        self._add(parts, self._sizes)
        self._counts, self._most = counts, counts.tokens(self._sizes)

    def tokens(self, request: Request) -> int:  # noqa: ARG002 - it is bounded as it was written
        """Return a number of tokens that the prompt cannot exceed."""
        return self._most

    def learn(self, request: Request, reply: Reply) -> None:
        """Remember the provider's count, of the prompt alone and with the reply, where it makes sense."""
        usage = reply.usage
        if usage is None or not believable(usage, self.tokens(request), request.max_output_tokens):
            return
        self._counts.learn(frozenset(self._sizes), usage.prompt)
        if reply.message.raw is not None:
            whole = dict(self._sizes)
            self._add(said_parts(raw_said(reply)), whole)
            self._counts.learn(frozenset(whole), usage.prompt + usage.output)

    def _add(self, parts: Iterable[Part], sizes: dict[Key, int]) -> None:
        for part in parts:
            sizes[hash((part.name, self._seen[part.name]))] = part.size
            self._seen[part.name] += 1


def raw_said(reply: Reply) -> list[object]:
    """Return a reply as its provider's protocol has it in a conversation."""
    raw = reply.message.raw
    if raw is None:
        return []
    if raw.protocol == "anthropic":
        return [{"role": "assistant", "content": [*raw.blocks]}]
    return [*raw.blocks]

"""Listens to an answer that is relayed to a program, to know what it cost and said; never in its way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from codetaste.errors import ModelError
from codetaste.llm.wire.http import read_json
from codetaste.llm.wire.sse import MOST_BYTES, Events

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.llm.messages import Reply, Usage


class Assembly(Protocol):
    """What puts a streamed reply together."""

    @property
    def complete(self) -> bool:
        """Whether the reply has come to its end."""
        ...

    @property
    def usage(self) -> Usage | None:
        """What the provider has counted so far."""
        ...

    def feed(self, data: str) -> None:
        """Take the data of one event."""
        ...

    def reply(self) -> Reply:
        """Return the whole reply."""
        ...


@dataclass(frozen=True, slots=True)
class Tapped:
    """What is known of an answer.

    Attributes:
        reply: where it came to its end; its usage is the provider's last word.
        usage: what was counted up to where it broke off, or in all; None where nothing was.
        error: why there is no reply; ``unbilled`` where the provider certainly did not begin one.
    """

    reply: Reply | None
    usage: Usage | None
    error: ModelError | None

    @property
    def complete(self) -> bool:
        """Whether ``usage`` is what the provider bills."""
        return self.reply is not None and self.reply.usage is not None


class Tap:
    """Takes the bytes of one answer with status 200 as they are relayed, cut anywhere; raises nothing.

    Args:
        assembly: puts a stream together; None for an answer in one piece.
        whole: reads an answer in one piece, parsed.
    """

    def __init__(self, assembly: Assembly | None, whole: Callable[[Any], Reply]) -> None:
        self._assembly, self._whole = assembly, whole
        self._events = Events()
        self._body = bytearray()
        self._complete = False
        self._reply: Reply | None = None
        self._error: ModelError | None = None

    @property
    def ended(self) -> bool:
        """Whether all has been heard that matters: the reply's end, or an error."""
        return self._complete or self._reply is not None or self._error is not None

    def feed(self, chunk: bytes) -> None:
        """Take what is relayed next."""
        if self.ended:
            return
        if self._assembly is None:
            # One byte more than is ever read tells that it was too long.
            self._body += chunk[: MOST_BYTES + 1 - len(self._body)]
            return
        try:
            for data in self._events.feed(chunk):
                self._assembly.feed(data)
                if self._assembly.complete:
                    self._complete = True
                    return
        except ModelError as error:
            self._error = error

    def tapped(self) -> Tapped:
        """Return what is known when no more is relayed, at the end or before it."""
        if self._reply is None and self._error is None:
            try:
                self._reply = self._last_word()
            except ModelError as error:
                self._error = error
        counted = None if self._assembly is None else self._assembly.usage
        usage = counted if self._reply is None or self._reply.usage is None else self._reply.usage
        return Tapped(self._reply, usage, self._error)

    def _last_word(self) -> Reply:
        if self._assembly is not None:
            return self._assembly.reply()
        return self._whole(read_json(self._body.decode("utf-8", "replace")))

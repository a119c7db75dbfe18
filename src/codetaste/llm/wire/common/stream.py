"""What the decoders of a streamed reply share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.errors import MalformedReply
from codetaste.llm.wire.common.http import read_json
from codetaste.llm.wire.common.usage import UsageReports

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from codetaste.llm.messages import Reply, Usage

DONE = "[DONE]"
"""The last event of a stream of Chat Completions, and of some servers in other protocols."""

TRAILING_S = 0.25
"""How long to wait for the end of the body after a complete reply, so that the connection can be reused."""
_LAST_EVENT_S, _USAGE_S = 1.5, 5.0


class StreamDecoder(ABC):
    """Decodes a streamed reply; takes its events in order.

    Args:
        request_id: the provider's id of the request.
        taken: ids of earlier tool calls; a call with such an id, or none, gets a new one.
        decode_usage: returns the usage in a report of the protocol.

    Attributes:
        complete: whether the stream has nothing more to say.
        has_ended: whether the reply is whole, although its usage or the last event may be missing.
    """

    def __init__(
        self,
        request_id: str = "",
        *,
        taken: Collection[str] = (),
        decode_usage: Callable[[object], Usage | None],
    ) -> None:
        self._request_id, self._taken = request_id, taken
        self._reports, self._usage_is_final = UsageReports(decode_usage), False
        self.complete = self.has_ended = False

    @property
    def usage(self) -> Usage | None:
        """The usage that the provider has reported so far."""
        return self._reports.usage

    @property
    def patience_s(self) -> float:
        """How long to wait for more: some servers send no usage or no last event, and do not hang up."""
        if self.complete:
            return TRAILING_S
        if not self.has_ended:
            return math.inf
        return _LAST_EVENT_S if self._usage_is_final else _USAGE_S

    def feed(self, data: str) -> None:
        """Take the data of one event.

        Raises:
            ModelError: the provider reports an error.
            MalformedReply: the event is malformed.
        """
        event = read_json(data)
        try:
            self._take(event)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise MalformedReply(f"malformed event ({error!r}): {one_line(data)}") from error

    @abstractmethod
    def _take(self, event: Any) -> None:  # noqa: ANN401 - JSON data
        """Take one event; any error of a malformed one may be raised."""

    def reply(self) -> Reply:
        """Return the complete reply; its usage is unknown if the output was counted before the end only.

        Raises:
            ModelUnavailable: the stream ended early.
            MalformedReply: the reply is malformed.
        """
        return replace(self._decode(), usage=self._reports.usage if self._usage_is_final else None)

    @abstractmethod
    def _decode(self) -> Reply:
        """Return the complete reply without its usage, or raise the reason why there is none."""

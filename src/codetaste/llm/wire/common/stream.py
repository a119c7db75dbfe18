"""What the decoders of a streamed reply share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.errors import MalformedReply
from codetaste.llm.wire.common.http import read_json

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.llm.messages import Reply, Usage

DONE = "[DONE]"
"""The last event of a stream of Chat Completions, and of some servers in other protocols."""


class StreamDecoder(ABC):
    """Decodes a streamed reply; takes its events in order.

    Args:
        request_id: the provider's id of the request.
        taken: ids of earlier tool calls; a call with such an id, or none, gets a new one.

    Attributes:
        complete: whether the stream has nothing more to say.
    """

    def __init__(self, request_id: str = "", *, taken: Collection[str] = ()) -> None:
        self._request_id, self._taken = request_id, taken
        self.complete = False

    @property
    @abstractmethod
    def usage(self) -> Usage | None:
        """The usage that the provider has reported so far."""

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

    @abstractmethod
    def reply(self) -> Reply:
        """Return the complete reply.

        Raises:
            ModelUnavailable: the stream ended early.
            MalformedReply: the reply is malformed.
        """

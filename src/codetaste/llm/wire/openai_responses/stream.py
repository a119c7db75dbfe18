"""Decode a streamed reply of OpenAI's Responses protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.errors import MalformedReply, ModelUnavailable
from codetaste.llm.wire.common.openai import error_in_stream, usage_from
from codetaste.llm.wire.common.stream import DONE, StreamDecoder
from codetaste.llm.wire.openai_responses.client import reply_from

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.llm.messages import Reply, Usage


class ResponsesStreamDecoder(StreamDecoder):
    """Takes events in order; the reply is complete once the response has ended."""

    def __init__(self, request_id: str = "", *, taken: Collection[str] = ()) -> None:
        super().__init__(request_id, taken=taken)
        self._accepted = self._started = False
        self._items: list[dict[str, Any]] = []
        self._begun: set[object] = set()
        self._response: dict[str, Any] | None = None

    @property
    def usage(self) -> Usage | None:
        """The usage; the provider reports it only at the end."""
        return usage_from((self._response or {}).get("usage"))

    def feed(self, data: str) -> None:
        """Take the data of one event."""
        if data.strip() != DONE:
            super().feed(data)

    def reply(self) -> Reply:
        """Return the complete reply, or raise the reason why there is none."""
        if self._response is None:
            where = "in the middle of the reply" if self._accepted else "before the reply began"
            raise ModelUnavailable(f"the connection was lost {where}")
        output = self._response.get("output")
        # The final event repeats all items, but not with every server.
        if not isinstance(output, list) or len(output) < len(self._items):
            if self._begun:
                raise MalformedReply("the response ended before one of its items did")
            output = self._items
        return reply_from(
            {**self._response, "output": output}, request_id=self._request_id, taken=self._taken
        )

    def _take(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "error" or (kind is None and event.get("error")):
            raise self._failed(event)
        self._accepted = True
        match kind:
            case "response.output_item.added":
                self._started = True
                self._begun.add(event.get("output_index"))
            case "response.output_item.done":
                self._started = True
                self._begun.discard(event.get("output_index"))
                self._items.append({**event["item"]})
            case "response.completed" | "response.incomplete":
                response = event["response"]
                self._response = {"status": str(kind).removeprefix("response."), **response}
                self.complete = True
            case "response.failed":
                raise self._failed(event["response"])
            case _:
                pass

    def _failed(self, body: dict[str, Any]) -> Exception:
        return error_in_stream(body, accepted=self._accepted, started=self._started)

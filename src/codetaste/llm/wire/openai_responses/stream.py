"""Decode a streamed reply of OpenAI's Responses protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.errors import MalformedReply, ModelUnavailable
from codetaste.llm.wire.common.http import member
from codetaste.llm.wire.common.openai import error_in_stream, usage_from
from codetaste.llm.wire.common.stream import DONE, StreamDecoder
from codetaste.llm.wire.openai_responses.client import failure_of, reply_from

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.llm.messages import Reply


class ResponsesStreamDecoder(StreamDecoder):
    """Takes events in order; the reply is complete once the response has ended."""

    def __init__(self, request_id: str = "", *, taken: Collection[str] = ()) -> None:
        super().__init__(request_id, taken=taken, decode_usage=usage_from)
        self._accepted = self._started = False
        self._items: list[dict[str, Any]] = []
        self._begun: set[object] = set()
        self._response: dict[str, Any] | None = None

    def feed(self, data: str) -> None:
        """Take the data of one event; ``[DONE]`` after whole items stands for the final event."""
        if data.strip() != DONE:
            super().feed(data)
        elif not self._begun and any(item.get("type") != "reasoning" for item in self._items):
            self._response, self.has_ended = {"status": "completed"}, True

    def _decode(self) -> Reply:
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
        self._accepted, response = True, event.get("response") or {}
        self._reports.add(member(response, "usage"))
        match kind:
            case "response.output_item.added":
                self._started = True
                self._begun.add(event.get("output_index"))
            case "response.output_item.done":
                self._started = True
                self._begun.discard(event.get("output_index"))
                self._items.append({**event["item"]})
            case "response.completed" | "response.incomplete":
                status = event["response"].get("status") or str(kind).removeprefix("response.")
                self._response = {**response, "status": status}
                self._usage_is_final = response.get("usage") is not None
                self.complete = self.has_ended = True
            case "response.failed":
                raise self._failed(failure_of(response or event))
            case _:
                pass

    def _failed(self, body: dict[str, Any]) -> Exception:
        return error_in_stream(body, accepted=self._accepted, started=self._started)

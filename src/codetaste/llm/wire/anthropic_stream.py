"""A streamed reply of the Anthropic Messages protocol, put together event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.errors import ModelUnavailable
from codetaste.llm.wire.anthropic import error_in_stream, reply_from, usage_from
from codetaste.llm.wire.calls import read_arguments
from codetaste.llm.wire.http import take_event

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.llm.messages import Reply, Usage

# What each kind of delta adds to, by text.
_APPENDED = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


class Assembly:
    """Takes events in order; ``reply`` is what they say once ``message_stop`` has come."""

    def __init__(self, request_id: str = "", *, taken: Collection[str] = ()) -> None:
        self._request_id, self._taken = request_id, taken
        self._message: dict[str, Any] | None = None
        self._usage: dict[str, Any] = {}
        self._final_usage = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._grown: dict[tuple[int, str], list[str]] = {}
        self._arguments: dict[int, list[str]] = {}
        self._complete = False

    @property
    def started(self) -> bool:
        """Whether the provider has begun a reply, and so may bill it."""
        return self._message is not None

    @property
    def complete(self) -> bool:
        """Whether the reply has come to its end."""
        return self._complete

    @property
    def usage(self) -> Usage | None:
        """What the provider has counted so far; the output is a guess of its until the end."""
        return usage_from(self._usage)

    def feed(self, data: str) -> None:
        """Take the data of one event.

        Raises:
            ModelError: the provider reports an error.
            MalformedReply: the event makes no sense.
        """
        take_event(data, self._take)

    def reply(self) -> Reply:
        """Return the whole reply.

        Raises:
            ModelUnavailable: it was cut off on the way.
        """
        if self._message is None:
            raise ModelUnavailable("the connection was closed before the reply began")
        if not self._complete:
            raise ModelUnavailable("the connection was lost in the middle of the reply")
        faults: dict[int, str] = {}
        blocks = []
        for (index, target), texts in self._grown.items():
            self._blocks[index][target] = "".join(texts)
        for place, (index, block) in enumerate(sorted(self._blocks.items())):
            if index in self._arguments:
                arguments, fault = read_arguments("".join(self._arguments[index]))
                block["input"] = arguments
                if fault is not None:
                    faults[place] = fault
            blocks.append(block)
        # Without the closing count the output is a guess of the provider's: then the cost is unknown.
        usage = self._usage if self._final_usage else None
        message = {**self._message, "content": blocks, "usage": usage}
        return reply_from(message, request_id=self._request_id, faults=faults, taken=self._taken)

    def _take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                self._message = dict(event["message"])
                self._count(self._message.get("usage"))
            case "content_block_start":
                self._blocks[int(event["index"])] = dict(event["content_block"])
            case "content_block_delta":
                self._add(int(event["index"]), event["delta"])
            case "message_delta":
                self._end(event)
            case "message_stop":
                self._complete = True
            case "error":
                raise error_in_stream(event, started=self.started)
            case _:
                pass

    def _add(self, index: int, delta: dict[str, Any]) -> None:
        block, kind = self._blocks[index], delta["type"]
        if kind in _APPENDED:
            target, source = _APPENDED[kind]
            # Only a text can be added to a text; they are joined at the end, as there may be thousands.
            begun = [("" + (block.get(target) or ""))]
            self._grown.setdefault((index, target), begun).append("" + delta[source])
        elif kind == "input_json_delta":
            self._arguments.setdefault(index, []).append("" + delta["partial_json"])
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]

    def _end(self, event: dict[str, Any]) -> None:
        if self._message is None:
            raise ValueError("message_delta before message_start")
        self._message.update(event.get("delta") or {})
        usage = event.get("usage")
        self._count(usage)
        self._final_usage = isinstance(usage, dict) and usage.get("output_tokens") is not None

    def _count(self, usage: object) -> None:
        """Lay newer counts, which are running totals, over older ones."""
        if isinstance(usage, dict):
            self._usage.update({name: count for name, count in usage.items() if count is not None})

"""Decode a streamed reply of the Anthropic Messages protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.errors import ModelUnavailable
from codetaste.llm.wire.anthropic.client import error_in_stream, reply_from, usage_from
from codetaste.llm.wire.common.stream import StreamDecoder
from codetaste.llm.wire.common.tool_calls import read_arguments

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.llm.messages import Reply, Usage

# By kind of delta: the field of the block that grows, and the field of the delta with the text.
_APPENDED = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


class AnthropicStreamDecoder(StreamDecoder):
    """Takes events in order; the reply is complete after ``message_stop``."""

    def __init__(self, request_id: str = "", *, taken: Collection[str] = ()) -> None:
        super().__init__(request_id, taken=taken)
        self._message: dict[str, Any] | None = None
        self._usage: dict[str, Any] = {}
        self._final_usage = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._grown: dict[tuple[int, str], list[str]] = {}
        self._arguments: dict[int, list[str]] = {}

    @property
    def usage(self) -> Usage | None:
        """The usage reported so far; until the end, the output count is an estimate."""
        return usage_from(self._usage)

    def reply(self) -> Reply:
        """Return the complete reply, or raise the reason why there is none."""
        if self._message is None:
            raise ModelUnavailable("the connection was closed before the reply began")
        if not self.complete:
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
        # Without the final count the output is only an estimate, so the cost is unknown.
        usage = self._usage if self._final_usage else None
        message = {**self._message, "content": blocks, "usage": usage}
        return reply_from(message, request_id=self._request_id, faults=faults, taken=self._taken)

    def _take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                # Not ``dict(…)``: it takes a list of pairs too.
                self._message = {**event["message"]}
                self._count(self._message.get("usage"))
            case "content_block_start":
                self._blocks[int(event["index"])] = {**event["content_block"]}
            case "content_block_delta":
                self._add(int(event["index"]), event["delta"])
            case "message_delta":
                if self._message is None:
                    raise ValueError("message_delta before message_start")
                self._message.update(event.get("delta") or {})
                usage = event.get("usage")
                self._count(usage)
                self._final_usage = isinstance(usage, dict) and usage.get("output_tokens") is not None
            case "message_stop":
                self.complete = True
            case "error":
                raise error_in_stream(event, started=self._message is not None)
            case _:
                pass

    def _add(self, index: int, delta: dict[str, Any]) -> None:
        block, kind = self._blocks[index], delta["type"]
        if kind in _APPENDED:
            target, source = _APPENDED[kind]
            # ``"" +`` raises for anything but a text. The pieces, maybe thousands, are joined at the end.
            begun = [("" + (block.get(target) or ""))]
            self._grown.setdefault((index, target), begun).append("" + delta[source])
        elif kind == "input_json_delta":
            self._arguments.setdefault(index, []).append("" + delta["partial_json"])
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]

    def _count(self, usage: object) -> None:
        """Replace older counts by newer ones, which are running totals."""
        if isinstance(usage, dict):
            self._usage.update({name: count for name, count in usage.items() if count is not None})

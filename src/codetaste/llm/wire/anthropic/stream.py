"""Decode a streamed reply of the Anthropic Messages protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.errors import ModelUnavailable
from codetaste.llm.wire.anthropic.client import error_in_stream, reply_from, usage_from
from codetaste.llm.wire.common.http import member
from codetaste.llm.wire.common.stream import DONE, StreamDecoder
from codetaste.llm.wire.common.tool_calls import read_arguments
from codetaste.llm.wire.common.usage import count

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.llm.messages import Reply

# By kind of delta: the field of the block that grows, and the field of the delta with the text.
_APPENDED = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}
# Servers may leave out the event that begins such a block.
_BLOCK_TYPES = {"text_delta": "text", "thinking_delta": "thinking"}


class AnthropicStreamDecoder(StreamDecoder):
    """Takes events in order; the reply has ended with a stop reason, ``message_stop`` or ``[DONE]``."""

    def __init__(self, request_id: str = "", *, taken: Collection[str] = ()) -> None:
        super().__init__(request_id, taken=taken, decode_usage=usage_from)
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._open: set[int] = set()
        self._grown: dict[tuple[int, str], list[str]] = {}
        self._arguments: dict[int, list[str]] = {}

    def feed(self, data: str) -> None:
        """Take the data of one event."""
        if data.strip() != DONE:
            super().feed(data)
        elif self._blocks and not self._open:
            self.has_ended = True

    def _decode(self) -> Reply:
        if self._message is None:
            raise ModelUnavailable("the connection was closed before the reply began")
        if not self.has_ended:
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
        message = {**self._message, "content": blocks}
        return reply_from(message, request_id=self._request_id, faults=faults, taken=self._taken)

    def _take(self, event: dict[str, Any]) -> None:
        match event.get("type") or ("error" if event.get("error") else ""):
            case "message_start":
                # Not ``dict(…)``: it takes a list of pairs too.
                self._message = {**event["message"]}
                self._reports.add(self._message.get("usage"))
            case "content_block_start":
                self._blocks[index := int(event["index"])] = {**event["content_block"]}
                self._open.add(index)
                self._usage_is_final = False
            case "content_block_delta":
                self._add(int(event["index"]), event["delta"])
                self._usage_is_final = False
            case "content_block_stop":
                self._open.discard(int(event["index"]))
            case "message_delta":
                if self._message is None:
                    raise ValueError("message_delta before message_start")
                given = {**(event.get("delta") or {})}
                self._message |= {name: value for name, value in given.items() if value is not None}
                self.has_ended = bool(self._message.get("stop_reason"))
                output = count(member(usage := event.get("usage"), "output_tokens"))
                self._reports.add(usage)
                # A zero after a reply means that nothing was counted.
                self._usage_is_final |= bool(output) or (output == 0 and not self._blocks)
            case "message_stop":
                # A proxy may send it after a cut, in the middle of a block.
                self.complete, self.has_ended = True, self.has_ended or not self._open
            case "error":
                raise error_in_stream(event, started=self._message is not None)
            case _:
                pass

    def _add(self, index: int, delta: dict[str, Any]) -> None:
        kind = delta["type"]
        if index not in self._blocks and kind in _BLOCK_TYPES:
            self._blocks[index] = {"type": _BLOCK_TYPES[kind]}
        block = self._blocks[index]
        if kind in _APPENDED:
            target, source = _APPENDED[kind]
            # ``"" +`` raises for anything but a text. The pieces, maybe thousands, are joined at the end.
            begun = [("" + (block.get(target) or ""))]
            self._grown.setdefault((index, target), begun).append("" + delta[source])
        elif kind == "input_json_delta":
            self._arguments.setdefault(index, []).append("" + delta["partial_json"])
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]

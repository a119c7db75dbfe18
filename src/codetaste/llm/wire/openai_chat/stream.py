"""Decode a streamed reply of the Chat Completions protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.errors import MalformedReply, ModelUnavailable
from codetaste.llm.wire.common.openai import error_in_stream, usage_from
from codetaste.llm.wire.common.stream import DONE, StreamDecoder
from codetaste.llm.wire.common.tool_calls import read_arguments
from codetaste.llm.wire.openai_chat.client import REASONING, content_texts, is_error, reply_from

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.llm.messages import Reply


@dataclass(slots=True)
class _Call:
    """A tool call under construction. ``extra`` has fields that the server adds, such as signatures."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether its arguments are a complete object."""
        ended = bool(self.arguments) and self.arguments[-1].rstrip().endswith("}")
        return ended and read_arguments("".join(self.arguments))[1] is None

    def wire(self) -> dict[str, Any]:
        """Return the call in the format of a reply that was not streamed."""
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {**self.extra, "id": self.id, "type": "function", "function": function}


class ChatStreamDecoder(StreamDecoder):
    """Takes chunks in order; the reply has ended once a chunk has a finish reason, or after ``[DONE]``."""

    def __init__(self, request_id: str = "", *, taken: Collection[str] = ()) -> None:
        super().__init__(request_id, taken=taken, decode_usage=usage_from)
        self._head: dict[str, Any] | None = None
        self._texts: dict[str, list[str]] = {}
        self._details: list[Any] = []
        self._calls: list[_Call] = []
        self._finish = ""

    def feed(self, data: str) -> None:
        """Take the data of one event; some servers never send the last one."""
        if data.strip() != DONE:
            super().feed(data)
            return
        self.complete = True
        has_text = any("".join(self._texts.get(name, ())) for name in ("content", "refusal"))
        is_whole = all(call.whole or not "".join(call.arguments).strip() for call in self._calls)
        self.has_ended = self.has_ended or (is_whole and (has_text or bool(self._calls)))

    def _decode(self) -> Reply:
        if self._head is None:
            raise ModelUnavailable("the connection was lost before the reply began")
        if not self.has_ended:
            if self.complete:
                raise MalformedReply("a stream with [DONE], but without a finish reason and a whole reply")
            raise ModelUnavailable("the connection was lost in the middle of the reply")
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {name: "".join(pieces) for name, pieces in self._texts.items()}
        if self._details:
            message["reasoning_details"] = self._details
        if self._calls:
            message["tool_calls"] = [call.wire() for call in self._calls]
        return reply_from(message, self._finish, self._head, request_id=self._request_id, taken=self._taken)

    def _take(self, chunk: dict[str, Any]) -> None:
        if is_error(chunk):
            accepted = self._head is not None
            raise error_in_stream(chunk, accepted=accepted, started=accepted)
        named = {name: chunk[name] for name in ("id", "model") if chunk.get(name)}
        self._head = {**(self._head or {}), **named}
        generated, usages = False, [chunk.get("usage")]
        for choice in chunk.get("choices") or ():
            # Only one reply was requested; any other choice is ignored.
            if choice.get("index") not in {None, 0}:
                continue
            if choice.get("error"):
                raise error_in_stream(choice, accepted=True, started=bool(self._texts or self._calls))
            delta = choice.get("delta") or {}
            self._add(delta)
            generated = generated or any(map(delta.get, ("content", "refusal", "tool_calls", *REASONING)))
            if isinstance(reason := choice.get("finish_reason"), str) and reason:
                self._finish, self.has_ended = reason, True
            usages.append(choice.get("usage"))
        # With some servers counts are running totals: they are final if nothing is generated after them.
        self._usage_is_final = self._usage_is_final and not generated
        for usage in filter(None, usages):
            self._reports.add(usage)
            self._usage_is_final = self.has_ended or not generated

    def _add(self, delta: dict[str, Any]) -> None:
        for name in ("content", "refusal", *REASONING[:2]):
            if delta.get(name) is not None:
                self._texts.setdefault(name, []).extend(content_texts(delta[name]))
        for detail in delta.get(REASONING[2]) or ():
            # The texts of pieces with the same index are joined.
            last = self._details[-1] if self._details else None
            if last is None or "index" not in detail or last.get("index") != detail["index"]:
                self._details.append(dict(detail))
                continue
            for name, value in detail.items():
                joined = name in {"text", "summary", "data"} and isinstance(last.get(name), str)
                last[name] = last[name] + value if joined and isinstance(value, str) else value
        for call in delta.get("tool_calls") or ():
            self._add_to_call(call)

    def _add_to_call(self, delta: dict[str, Any]) -> None:
        function, call_id = delta.get("function") or {}, delta.get("id") or ""
        complete = bool(function.get("name") and function.get("arguments"))
        call = self._find_call(delta.get("index"), call_id, complete=complete)
        call.id = call.id or str(call_id)
        # Usually sent once; some servers repeat it with each piece.
        call.name = call.name or str(function.get("name") or "")
        arguments = function.get("arguments")
        if arguments is not None:
            call.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
        known = {"index", "id", "type", "function"}
        call.extra.update({name: value for name, value in delta.items() if name not in known})

    def _find_call(self, index: object, call_id: str, *, complete: bool) -> _Call:
        """Return the call that a piece belongs to: by index if the server sends one, by id, or the last.

        Several complete calls may have the same index or id; ``complete`` marks a piece that is a whole call.
        """
        number = index if type(index) is int else None
        if number is not None:
            same = [call for call in self._calls if call.index == number]
        else:
            same = [call for call in self._calls if call.id == call_id] if call_id else self._calls
        call = same[-1] if same else None
        if (
            call is None
            or (call_id and call.id and call_id != call.id)
            or (complete and call.name and call.whole)
        ):
            call = _Call(number)
            self._calls.append(call)
        return call

"""A streamed reply of the Chat Completions protocol, put together chunk by chunk."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.errors import ModelUnavailable
from codetaste.llm.wire.calls import read_arguments
from codetaste.llm.wire.http import take_event
from codetaste.llm.wire.openai_chat import REASONING, is_error, reply_from, words
from codetaste.llm.wire.openai_errors import error_in_stream
from codetaste.llm.wire.openai_usage import usage_from

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.llm.messages import Reply, Usage

DONE = "[DONE]"


@dataclass(slots=True)
class _Call:
    """A tool call in the making. ``extra`` is what a server adds to it, signatures among it."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether its arguments are a whole object."""
        ended = bool(self.arguments) and self.arguments[-1].rstrip().endswith("}")
        return ended and read_arguments("".join(self.arguments))[1] is None

    def wire(self) -> dict[str, Any]:
        """Return the call as one that was not streamed has it."""
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {**self.extra, "id": self.id, "type": "function", "function": function}


class Assembly:
    """Takes chunks in order; ``reply`` is what they say once they have given a reason to end."""

    def __init__(self, request_id: str = "", *, taken: Collection[str] = ()) -> None:
        self._request_id, self._taken = request_id, taken
        self._head: dict[str, Any] | None = None
        self._texts: dict[str, list[str]] = {}
        self._details: list[Any] = []
        self._calls: list[_Call] = []
        self._finish: str | None = None
        self._usage: object = None
        self._counted: object = None
        self._complete = False

    @property
    def complete(self) -> bool:
        """Whether the provider has said that no more will come; some never do."""
        return self._complete

    @property
    def usage(self) -> Usage | None:
        """What the provider has counted so far."""
        return usage_from(self._counted)

    def feed(self, data: str) -> None:
        """Take the data of one event.

        Raises:
            ModelError: the provider reports an error.
            MalformedReply: the chunk makes no sense.
        """
        if data.strip() == DONE:
            self._complete = True
            return
        take_event(data, self._take)

    def reply(self) -> Reply:
        """Return the whole reply.

        Raises:
            ModelUnavailable: it was cut off on the way.
        """
        if self._head is None:
            raise ModelUnavailable("the connection was lost before the reply began")
        if self._finish is None:
            raise ModelUnavailable("the connection was lost in the middle of the reply")
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {name: "".join(pieces) for name, pieces in self._texts.items()}
        if self._details:
            message["reasoning_details"] = self._details
        if self._calls:
            message["tool_calls"] = [call.wire() for call in self._calls]
        return reply_from(
            message,
            self._finish,
            self._head,
            usage=self._usage,
            request_id=self._request_id,
            taken=self._taken,
        )

    def _take(self, chunk: dict[str, Any]) -> None:
        if is_error(chunk):
            accepted = self._head is not None
            raise error_in_stream(chunk, accepted=accepted, started=accepted)
        self._head = {
            **(self._head or {}),
            **{name: chunk[name] for name in ("id", "model") if chunk.get(name)},
        }
        # Counts are running totals with some servers: those that come with the end or after it are the last.
        usage = chunk.get("usage")
        for choice in chunk.get("choices") or ():
            # One reply is asked for; whatever else comes is not ours.
            if choice.get("index") in {None, 0}:
                self._add(choice.get("delta") or {})
                if isinstance(reason := choice.get("finish_reason"), str) and reason:
                    self._finish = reason
                usage = usage or choice.get("usage")
        self._counted = usage or self._counted
        if self._finish is not None and usage is not None:
            self._usage = usage

    def _add(self, delta: dict[str, Any]) -> None:
        for name in ("content", "refusal", *REASONING[:2]):
            if delta.get(name) is not None:
                self._texts.setdefault(name, []).extend(words(delta[name]))
        for detail in delta.get(REASONING[2]) or ():
            self._add_detail(detail)
        for call in delta.get("tool_calls") or ():
            self._add_to_call(call)

    def _add_detail(self, detail: dict[str, Any]) -> None:
        """Take a piece of reasoning: the texts of pieces with one index belong together."""
        last = self._details[-1] if self._details else None
        if last is None or "index" not in detail or last.get("index") != detail["index"]:
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            joined = name in {"text", "summary", "data"} and isinstance(last.get(name), str)
            last[name] = last[name] + value if joined and isinstance(value, str) else value

    def _add_to_call(self, delta: dict[str, Any]) -> None:
        function, call_id = delta.get("function") or {}, delta.get("id") or ""
        again = bool(function.get("name") and function.get("arguments"))
        call = self._call_of(delta.get("index"), call_id, again=again)
        call.id = call.id or str(call_id)
        # Given once, as a rule; some servers repeat it with each piece.
        call.name = call.name or str(function.get("name") or "")
        arguments = function.get("arguments")
        if arguments is not None:
            call.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
        known = {"index", "id", "type", "function"}
        call.extra.update({name: value for name, value in delta.items() if name not in known})

    def _call_of(self, index: object, call_id: str, *, again: bool) -> _Call:
        """Find the call that a piece belongs to: by index where servers give one, else by id, else the last.

        Several whole calls may come under one index, or one id: ``again`` marks a whole one.
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
            or (again and call.name and call.whole)
        ):
            call = _Call(number)
            self._calls.append(call)
        return call

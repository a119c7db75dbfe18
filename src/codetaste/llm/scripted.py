"""Provider "scripted": a Python function decides each reply from the conversation alone.

It has a price and keeps a bill, as a real provider does: the ledger has one line for each call that was
answered, on disk before the answer is given. So budgets bite, an interrupted call can be recalled, and a test
can compare what was billed with what was accounted for.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread

from codetaste.errors import CodetasteError, ConfigError, JournalError, ModelRefused
from codetaste.import_path import load_object
from codetaste.llm.codec import (
    canonical,
    message_to_json,
    reply_from_json,
    reply_to_json,
    request_to_json,
    usage_to_json,
)
from codetaste.llm.messages import Block, Message, Reply, Stop, Text, ToolCall, ToolResult, Usage
from codetaste.llm.record import Record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from codetaste.errors import ModelError
    from codetaste.llm.messages import Request
    from codetaste.llm.pricing import Price

BYTES_PER_TOKEN = 4
"""How a scripted model counts; every real tokenizer does about as well on source code."""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply with all that a script can decide about it.

    Attributes:
        content: what the model says.
        stop: why it ends; by default as the content suggests.
        usage: what it costs; by default counted from bytes. None: the provider does not tell, but bills.
        latency_s: seconds between the bill and the reply.
        fault: raised instead of the reply, after billing it: a connection that was lost in mid-reply.
    """

    content: str | Block | Sequence[Block]
    stop: Stop | None = None
    usage: Usage | Literal["counted"] | None = "counted"
    latency_s: float = 0.0
    fault: ModelError | None = None


Spoken = Said | Reply | Message | Block | Sequence[Block] | str
if TYPE_CHECKING:
    Script = Callable[[Request], Spoken | Awaitable[Spoken]]


def load_script(path: str, *, base_dir: Path, model_id: str) -> Script:
    """Import the function that a config names.

    Raises:
        ConfigError: there is none.
    """
    try:
        script: Script = load_object(path, base_dir=base_dir)
    except ConfigError as error:
        raise ConfigError(*(f"models[{model_id}].model: {problem}" for problem in error.problems)) from error
    if not callable(script):
        raise ConfigError(f"models[{model_id}].model: {path} is no function of a request")
    return script


class ScriptedModel:
    """A model whose replies a function decides. One at a time may use a ledger."""

    def __init__(self, model_id: str, script: Script, *, price: Price | None, ledger: Path) -> None:
        self._id = model_id
        self._script = script
        self._name = f"scripted:{getattr(script, '__name__', type(script).__name__)}"
        self._price = price
        self._ledger = Record(ledger)
        self._billed: set[str] | None = None
        self._loading = anyio.Lock()

    @property
    def id(self) -> str:
        """What the config calls this model."""
        return self._id

    @property
    def remembers(self) -> bool:
        """The ledger has every call that was billed."""
        return True

    async def complete(self, request: Request, *, call: str) -> Reply:
        """Answer as the script says; a call that was billed before is answered as before, and not billed.

        Raises:
            ModelError: the script raised it.
            ModelRefused: the script failed, or said what is no reply.
            JournalError: the ledger cannot be written.
        """
        known = await self.recall(call)
        if known is not None:
            return known
        said = await self._ask(request)
        reply, billed = self._reply(request, said, call)
        await self._bill(call, reply, billed)
        await anyio.sleep(said.latency_s)
        if said.fault is not None:
            raise said.fault
        return reply

    async def recall(self, call: str) -> Reply | None:
        """Return what ``call`` was answered, from the ledger."""
        async with self._loading:
            if self._billed is None:
                lines = await anyio.to_thread.run_sync(list, self._ledger.read())
                self._billed = {line["call"] for line in lines if "call" in line}
        if call not in self._billed:
            return None
        return await anyio.to_thread.run_sync(self._find, call)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _ask(self, request: Request) -> Said:
        try:
            spoken: Any = self._script(request)
            if inspect.isawaitable(spoken):
                spoken = await spoken
        except CodetasteError:
            raise
        except (Exception, SystemExit) as error:
            raise ModelRefused(f"the script of model {self._id!r} failed: {_where(error)}") from error
        return self._said(spoken)

    def _said(self, spoken: Any) -> Said:  # noqa: ANN401 - whatever a script returns
        match spoken:
            case Said():
                return spoken
            case Reply():
                return Said(spoken.message.content, spoken.stop, spoken.usage)
            case Message():
                return Said(spoken.content)
            case str() | Text() | ToolCall() | ToolResult() | Sequence():
                return Said(spoken)
        raise ModelRefused(
            f"the script of model {self._id!r} returned {type(spoken).__name__}, which is no reply"
        )

    def _reply(self, request: Request, said: Said, call: str) -> tuple[Reply, Usage]:
        """Return the reply, and what is billed for it, which the reply need not tell."""
        content = self._content(said.content)
        stop = said.stop or (
            Stop.TOOL_USE if any(isinstance(block, ToolCall) for block in content) else Stop.END
        )
        message = Message("assistant", content)
        if isinstance(said.usage, Usage):
            return Reply(message, stop, said.usage, self._name, call), said.usage
        cap = request.max_output_tokens
        if _tokens(_written(message)) > cap:
            message, stop = _cut(message, cap), Stop.LENGTH
        counted = Usage(
            input=_tokens(canonical(request_to_json(request))), output=min(cap, _tokens(_written(message)))
        )
        return Reply(message, stop, None if said.usage is None else counted, self._name, call), counted

    def _content(self, content: Any) -> tuple[Block, ...]:  # noqa: ANN401 - whatever a script returns
        if isinstance(content, str):
            return (Text(content),) if content else ()
        blocks = content if isinstance(content, Sequence) else (content,)
        for block in blocks:
            if not isinstance(block, Text | ToolCall):
                raise ModelRefused(
                    f"the script of model {self._id!r} put {type(block).__name__} into a reply; "
                    "a reply is made of Text and ToolCall"
                )
        return tuple(blocks)

    async def _bill(self, call: str, reply: Reply, usage: Usage) -> None:
        cost = None if self._price is None else str(self._price.cost_usd(usage))
        line = {
            "call": call,
            "usage": usage_to_json(usage),
            "cost_usd": cost,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "reply": reply_to_json(reply),
        }
        await self._ledger.append([line])
        if self._billed is not None:
            self._billed.add(call)

    def _find(self, call: str) -> Reply | None:
        for line in self._ledger.read():
            if line.get("call") == call:
                try:
                    return reply_from_json(line["reply"])
                except (KeyError, TypeError, ValueError) as error:
                    raise JournalError(
                        f"{self._ledger.path}: the reply to {call} cannot be read: {error}"
                    ) from error
        return None


def _where(error: BaseException) -> str:
    """Say an error with the line of the script that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _written(message: Message) -> str:
    return canonical(message_to_json(message)["content"])


def _tokens(text: str) -> int:
    return -(-len(text) // BYTES_PER_TOKEN)


def _cut(message: Message, cap: int) -> Message:
    """Return as much of ``message`` as ``cap`` tokens hold; a call that does not fit is cut off."""
    left = cap * BYTES_PER_TOKEN
    kept: list[Block] = []
    for block in message.content:
        size = len(_written(Message("assistant", (block,))))
        if size > left:
            kept.extend(_cut_block(block, left))
            break
        kept.append(block)
        left -= size
    return Message("assistant", tuple(kept))


def _cut_block(block: Block, left: int) -> list[Block]:
    if isinstance(block, Text):
        text = block.text[:left]
        while text and len(canonical(text)) > left:
            text = text[: len(text) * 3 // 4]
        return [Text(text)] if text else []
    if isinstance(block, ToolCall):
        return [replace(block, arguments={}, fault="the reply was cut off inside this call")]
    return []

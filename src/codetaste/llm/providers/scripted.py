"""Provider "scripted": a Python function computes each reply from the conversation.

Like a real provider it has a price and keeps a bill: the ledger has one line per answered call, written to
disk before the reply is returned. So budgets apply, an interrupted call can be looked up, and a test can
compare the bill with the run's accounts.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread

from codetaste.core.hashing import canonical_json
from codetaste.core.imports import load_object
from codetaste.core.jsonl import JsonlFile
from codetaste.core.text import one_line
from codetaste.errors import CodetasteError, ConfigError, ModelSetupError
from codetaste.llm.codec import (
    message_to_json,
    reply_from_json,
    reply_to_json,
    request_to_json,
    usage_to_json,
)
from codetaste.llm.messages import Block, Message, Reply, StopReason, TextBlock, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from codetaste.errors import ModelError
    from codetaste.llm.messages import Request
    from codetaste.llm.price import Price

BYTES_PER_TOKEN = 4
"""The tokenizer of a scripted model; roughly right for real tokenizers on source code."""


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """A reply with everything that a script can set.

    Attributes:
        content: text or blocks of the reply.
        stop: why it ends; by default derived from the content.
        usage: billed tokens; by default counted from bytes. None: counted and billed, but not reported.
        latency_s: seconds between the bill and the reply.
        fault: raised instead of the reply, after billing it, like a connection lost in mid-reply.
    """

    content: str | Block | Sequence[Block]
    stop: StopReason | None = None
    usage: Usage | Literal["counted"] | None = "counted"
    latency_s: float = 0.0
    fault: ModelError | None = None


ScriptOutput = ScriptedReply | Reply | Message | Block | Sequence[Block] | str
if TYPE_CHECKING:
    Script = Callable[[Request], ScriptOutput | Awaitable[ScriptOutput]]


def load_script(path: str, *, base_dir: Path, model_id: str) -> Script:
    """Import the function that a config names.

    Raises:
        ConfigError: it does not exist or is not callable.
    """
    try:
        script: Script = load_object(path, base_dir=base_dir)
    except ConfigError as error:
        raise ConfigError(*(f"models[{model_id}].model: {problem}" for problem in error.problems)) from error
    if not callable(script):
        raise ConfigError(f"models[{model_id}].model: {path} is not a function of a request")
    return script


class ScriptedModel:
    """A model whose replies a function computes. Only one instance at a time may use a ledger."""

    has_ledger = True

    def __init__(self, model_id: str, script: Script, *, price: Price | None, ledger: Path) -> None:
        self.id, self._script = model_id, script
        self._name = f"scripted:{getattr(script, '__name__', type(script).__name__)}"
        self._price = price
        self._ledger = JsonlFile(ledger)
        self._billed: set[str] | None = None
        self._loading = anyio.Lock()

    async def complete(self, request: Request, *, call: str) -> Reply:
        """Return the script's reply; a call that was billed before gets the same reply without a new bill.

        Raises:
            ModelError: the script raised it.
            ModelSetupError: the script failed, or did not return a reply.
            JournalError: the ledger cannot be written.
        """
        known = await self.lookup(call)
        if known is not None:
            return known
        scripted = await self._run_script(request)
        reply, billed = self._reply(request, scripted, call)
        line = {
            "call": call,
            "usage": usage_to_json(billed),
            "cost_usd": None if self._price is None else str(self._price.cost_usd(billed)),
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "reply": reply_to_json(reply),
        }
        await self._ledger.append([line])
        if self._billed is not None:
            self._billed.add(call)
        await anyio.sleep(scripted.latency_s)
        if scripted.fault is not None:
            raise scripted.fault
        return reply

    async def lookup(self, call: str) -> Reply | None:
        """Return the reply to an earlier ``call`` from the ledger."""
        async with self._loading:
            if self._billed is None:
                billed = set[str]()
                take = partial(_take_call, billed)
                await anyio.to_thread.run_sync(self._ledger.read_into, take)
                self._billed = billed
        if call not in self._billed:
            return None
        return await anyio.to_thread.run_sync(self._find, call)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _run_script(self, request: Request) -> ScriptedReply:
        try:
            output: Any = self._script(request)
            if inspect.isawaitable(output):
                output = await output
        except CodetasteError:
            raise
        except (Exception, SystemExit) as error:
            # The first frame is this function, the second one the script.
            frames = traceback.extract_tb(error.__traceback__)[1:]
            of_script = [frame for frame in frames if frame.filename == frames[0].filename]
            place = f" ({of_script[-1].filename}:{of_script[-1].lineno})" if of_script else ""
            problem = f"{type(error).__name__}: {one_line(str(error))}{place}"
            raise ModelSetupError(f"the script failed: {problem}", "model") from error
        match output:
            case ScriptedReply():
                return output
            case Reply():
                return ScriptedReply(output.message.content, output.stop, output.usage)
            case Message():
                return ScriptedReply(output.content)
            case str() | TextBlock() | ToolCall() | ToolResult() | Sequence():
                return ScriptedReply(output)
        raise ModelSetupError(f"the script returned {type(output).__name__}, which is not a reply", "model")

    def _reply(self, request: Request, scripted: ScriptedReply, call: str) -> tuple[Reply, Usage]:
        """Return the reply and the billed usage, which the reply need not report."""
        content = self._content(scripted.content)
        stop = scripted.stop or (
            StopReason.TOOL_USE if any(isinstance(block, ToolCall) for block in content) else StopReason.END
        )
        message = Message("assistant", content)
        if isinstance(scripted.usage, Usage):
            return Reply(message, stop, scripted.usage, self._name, call), scripted.usage
        cap = request.max_output_tokens
        if _tokens(_content_json(message)) > cap:
            message, stop = _truncate(message, cap), StopReason.LENGTH
        counted = Usage(
            input=_tokens(canonical_json(request_to_json(request))),
            output=min(cap, _tokens(_content_json(message))),
        )
        return Reply(message, stop, None if scripted.usage is None else counted, self._name, call), counted

    def _content(self, content: Any) -> tuple[Block, ...]:  # noqa: ANN401 - a script may return anything
        if isinstance(content, str):
            return (TextBlock(content),) if content else ()
        blocks = content if isinstance(content, Sequence) else (content,)
        for block in blocks:
            if not isinstance(block, TextBlock | ToolCall):
                raise ModelSetupError(
                    f"the script put {type(block).__name__} into a reply; "
                    "a reply consists of TextBlock and ToolCall",
                    "model",
                )
        return tuple(blocks)

    def _find(self, call: str) -> Reply | None:
        found: list[Reply] = []

        def compare(line: dict[str, Any]) -> None:
            if line.get("call") == call and not found:
                found.append(reply_from_json(line["reply"]))

        self._ledger.read_into(compare)
        return found[0] if found else None


def _take_call(billed: set[str], line: dict[str, Any]) -> None:
    if "call" in line:
        billed.add(line["call"])


def _content_json(message: Message) -> str:
    return canonical_json(message_to_json(message)["content"])


def _tokens(text: str) -> int:
    return -(-len(text) // BYTES_PER_TOKEN)


def _truncate(message: Message, cap: int) -> Message:
    """Truncate ``message`` to ``cap`` tokens; a tool call that does not fit is marked as cut off."""
    left = cap * BYTES_PER_TOKEN
    fitting: list[Block] = []
    for block in message.content:
        size = len(_content_json(Message("assistant", (block,))))
        if size > left:
            if isinstance(block, TextBlock):
                text = block.text[:left]
                while text and len(canonical_json(text)) > left:
                    text = text[: len(text) * 3 // 4]
                fitting.extend([TextBlock(text)] if text else [])
            elif isinstance(block, ToolCall):
                fitting.append(replace(block, arguments={}, fault="the reply was cut off inside this call"))
            break
        fitting.append(block)
        left -= size
    return Message("assistant", tuple(fitting))

"""Shorten, by fixed rules, a conversation that does not fit into the context window of its model.

First the oldest tool answers are cut to their head and tail; then whole turns, the oldest first, are replaced
by a list of their tool calls in the first message. The task and the latest turns stay as they are as long as
possible. No model is asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from codetaste.agent.tool import truncate
from codetaste.llm.messages import Message, TextBlock, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.llm.messages import Block, Request, Usage

CUT_CHARS = 600
"""What is left of a tool answer: its head and its tail."""
LATEST_TURNS = 2
"""The latest turns, which are shortened last."""
FULL_SHARE, TARGET_SHARE = 0.9, 0.6
"""The share of the window at which a conversation is shortened, and to which.

The difference keeps a provider's cache of the prompt in use for some turns.
"""
_BYTES_PER_TOKEN = 3.0
"""Until a provider has counted a prompt."""
_SUMMARY_CHARS = 6_000
_LINE_CHARS = 160
_SUMMARY_HEAD = "Earlier turns were left out, as the conversation became too long. What was called in them:"


@dataclass(slots=True)
class ContextWindow:
    """The context window of a model, and how many bytes of a request are one token of it.

    Attributes:
        tokens: prompt and reply together; None if it is not known.
        bytes_per_token: as the provider counted the latest prompt.
    """

    tokens: int | None
    bytes_per_token: float = _BYTES_PER_TOKEN

    def learn(self, request: Request, usage: Usage | None) -> None:
        """Take over the provider's count of a prompt."""
        if usage is not None and usage.prompt > 0:
            self.bytes_per_token = max(1.0, request_bytes(request) / usage.prompt)

    def fit(self, request: Request) -> Request:
        """Return the request with its cap lowered to a quarter of the window, to leave room for a prompt."""
        cap = request.max_output_tokens
        return replace(request, max_output_tokens=min(cap, (self.tokens or 4 * cap) // 4))

    def excess_bytes(self, request: Request) -> int:
        """Return how many bytes a request must lose before it is sent; 0 if it fits or nothing is known."""
        if self.tokens is None:
            return 0
        prompt = request_bytes(request) / self.bytes_per_token
        if prompt + request.max_output_tokens <= FULL_SHARE * self.tokens:
            return 0
        return self._excess_bytes(prompt, request.max_output_tokens, self.tokens)

    def learn_refusal(self, request: Request) -> int:
        """Return how many bytes a request must lose that the provider refused as too long."""
        prompt = request_bytes(request) / self.bytes_per_token
        refused = int(prompt + request.max_output_tokens)
        self.tokens = refused if self.tokens is None else min(refused, self.tokens)
        return self._excess_bytes(prompt, self.fit(request).max_output_tokens, self.tokens)

    def _excess_bytes(self, prompt: float, cap: int, tokens: int) -> int:
        target = max(0.0, TARGET_SHARE * tokens - cap)
        return max(1, int((prompt - target) * self.bytes_per_token))


@dataclass(frozen=True, slots=True)
class Edits:
    """What is left out of a conversation.

    Attributes:
        cuts: tool answers that are cut: the numbers of the message and of the block.
        dropped: how many messages after the first are left out.
        summary: what the first message says of them.
    """

    cuts: tuple[tuple[int, int], ...] = ()
    dropped: int = 0
    summary: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"cuts": [list(cut) for cut in self.cuts], "dropped": self.dropped, "summary": self.summary}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Edits:
        """Return the edits in what ``to_json`` returned."""
        cuts = tuple((message, block) for message, block in data["cuts"])
        return cls(cuts, data["dropped"], data["summary"])

    def describe(self) -> str:
        """Return in a few words what is left out."""
        return f"{len(self.cuts)} tool answers cut, {self.dropped} messages left out"

    def apply(self, messages: Sequence[Message]) -> list[Message]:
        """Return the shortened conversation; thinking after the first edit is left out, too."""
        shortened = [*messages]
        for number, block in self.cuts:
            content = [*shortened[number].content]
            content[block] = _cut(content[block])
            shortened[number] = replace(shortened[number], content=tuple(content), raw=None)
        if self.dropped:
            first = Message("user", (shortened[0].content[0], TextBlock(self.summary)))
            shortened[: self.dropped + 1] = [first]
        edited = 0 if self.dropped else min((number for number, _ in self.cuts), default=len(shortened))
        return [
            *shortened[: edited + 1],
            *(message.without_thinking() for message in shortened[edited + 1 :]),
        ]


def plan_edits(messages: Sequence[Message], excess_bytes: int) -> Edits:
    """Return the edits that leave out at least ``excess_bytes``, or all that can be left out.

    Args:
        messages: the conversation; the first is the task, and turns begin with a message of the model.
        excess_bytes: how much is too much.
    """
    turns = [number for number, message in enumerate(messages) if message.role == "assistant"]
    latest = turns[-LATEST_TURNS] if len(turns) > LATEST_TURNS else len(messages)
    cuts = _cuts(messages[:latest], excess_bytes)
    saved = sum(_saved(messages[number].content[block]) for number, block in cuts)
    dropped, summary = 0, ""
    for beginning in turns[1 : -LATEST_TURNS + 1] if saved < excess_bytes else ():
        cut = {number for number in cuts if number[0] < beginning}
        left_out = sum(_size(message) for message in messages[1:beginning])
        later_cuts = sum(_saved(messages[number].content[block]) for number, block in {*cuts} - cut)
        dropped, summary = beginning - 1, _summary(messages[0], messages[1:beginning])
        saved = left_out + later_cuts - len(summary.encode())
        if saved >= excess_bytes:
            break
    if saved < excess_bytes:
        late = [(number + latest, block) for number, block in _cuts(messages[latest:], excess_bytes - saved)]
        cuts = [*cuts, *late]
    edits = Edits(tuple(cut for cut in cuts if cut[0] > dropped), dropped, summary)
    return edits if _total(edits.apply(messages)) < _total(messages) else Edits()


def request_bytes(request: Request) -> int:
    """Return about how many bytes a request has."""
    tools = sum(len(tool.description) + len(json.dumps(tool.parameters)) for tool in request.tools)
    return len(request.system.encode()) + tools + _total(request.messages)


def _total(messages: Iterable[Message]) -> int:
    return sum(map(_size, messages))


def _size(message: Message) -> int:
    if message.raw is not None:
        return len(json.dumps(message.raw.blocks, ensure_ascii=False).encode("utf-8", "replace"))
    return sum(_block_size(block) for block in message.content)


def _block_size(block: Block) -> int:
    match block:
        case TextBlock():
            text = block.text
        case ToolCall():
            text = block.name + json.dumps(block.arguments, ensure_ascii=False)
        case ToolResult():
            text = block.content
    return len(text.encode("utf-8", "replace"))


def _cut(block: Block) -> Block:
    if isinstance(block, ToolResult):
        return replace(block, content=truncate(block.content, CUT_CHARS))
    return block


def _saved(block: Block) -> int:
    return max(0, _block_size(block) - _block_size(_cut(block)))


def _cuts(messages: Sequence[Message], excess_bytes: int) -> list[tuple[int, int]]:
    """Return the oldest tool answers that have to be cut."""
    cuts: list[tuple[int, int]] = []
    saved = 0
    for number, message in enumerate(messages):
        for place, block in enumerate(message.content):
            if saved >= excess_bytes:
                return cuts
            if isinstance(block, ToolResult) and _saved(block) > 0:
                cuts.append((number, place))
                saved += _saved(block)
    return cuts


def _summary(first: Message, left_out: Sequence[Message]) -> str:
    """Return a list of the calls in what is left out; the earliest lines go first if it is too long."""
    known = [block.text for block in first.content[1:] if isinstance(block, TextBlock)]
    lines = [line for text in known for line in text.splitlines()[1:]]
    answers = {
        block.call_id: block.content
        for message in left_out
        for block in message.content
        if isinstance(block, ToolResult)
    }
    for message in left_out:
        for call in message.tool_calls:
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
            answer = " ".join(answers.get(call.id, "").split())
            line = f"- {call.name} {arguments[:_LINE_CHARS]}"
            lines.append(f"{line} → {answer[:_LINE_CHARS]}".replace("\n", " "))
    while lines and sum(map(len, lines)) > _SUMMARY_CHARS:
        del lines[0]
    return "\n".join([_SUMMARY_HEAD, *lines])

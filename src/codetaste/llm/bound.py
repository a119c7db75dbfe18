"""The most that a call can cost, before it is made (docs: reserve, then settle).

No tokenizer makes more tokens than there are bytes, and a provider's own count of a conversation so far is
better still. So a prompt is at most: what the provider counted for the longest prefix that it has reported
on, plus the bytes of what is new, plus an allowance for what the provider wraps around it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from codetaste.llm.codec import canonical, message_to_json, pack, tool_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.llm.messages import Message, Reply, Request

_K = TypeVar("_K")
_V = TypeVar("_V")

LEAST_OUTPUT = 1024
"""Output tokens below which a cap is never lowered: a shorter reply is of no use."""
PER_CALL = 1024
"""Tokens allowed for what a provider adds to every prompt, the preamble of tool use among it."""
PER_MESSAGE = 32
PER_TOOL = 64
"""Tokens allowed for what a provider wraps around a message and a tool."""
BELIEVABLE = 2
"""A provider that reports more than this many times the most that a call can cost is not believed."""
_CONVERSATIONS = 20_000
_MESSAGES = 4_000
"""How many of each are remembered; a forgotten one is bounded by its bytes, or measured again."""

_APART = frozenset(
    {"mcp_servers", "container", "web_search_options", "plugins", "audio", "moderation"}
    | {"search_parameters", "search_options", "enable_search", "web_search"}
)
"""Billed by something else than tokens."""
_UNSEEN = frozenset({"previous_response_id", "conversation", "prompt", "thread", "data_sources"})
"""They put into the prompt what the provider keeps, so that nobody here knows how long it is."""
_UNBOUNDED = frozenset({"prediction", "background", "context_management", "compaction"})
"""Tokens beyond the cap of the reply, or a reply that goes on after we have left."""
_OTHERS = frozenset({"models", "fallbacks", "billing_policy"})
"""Another model may answer, or another account may pay."""
_REFUSED = _APART | _UNSEEN | _UNBOUNDED | _OTHERS
_FREE_TOOL_TYPES = frozenset({"custom", "function"})


def wire_size(message: Message) -> int:
    """Return at least the bytes of ``message`` as any client sends it, in UTF-8."""
    written = message_to_json(replace(message, raw=None))
    neutral = len(canonical(written))
    raw = 0 if message.raw is None else len(canonical(pack(message.raw.blocks)))
    return max(neutral, raw)


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A conversation up to some message: ``key`` names it, ``size`` bounds its tokens by bytes."""

    key: bytes
    size: int


@dataclass(frozen=True, slots=True)
class _Measured:
    """A message with its digest and the tokens that it cannot exceed."""

    message: Message
    digest: bytes
    size: int


class PromptBound:
    """Bounds prompts by what the provider has reported on; remembers conversations of one model."""

    def __init__(self) -> None:
        self._reported: OrderedDict[bytes, int] = OrderedDict()
        self._measured: OrderedDict[int, _Measured] = OrderedDict()

    def tokens(self, request: Request) -> int:
        """Return a number of tokens that the prompt of ``request`` cannot exceed."""
        bound = base = last = 0
        for prefix in self._prefixes(request):
            reported = self._reported.get(prefix.key)
            if reported is not None:
                bound, base = reported, prefix.size
            last = prefix.size
        return bound + last - base

    def learn(self, request: Request, reply: Reply) -> None:
        """Remember the provider's count for ``request`` and its reply, where it makes sense."""
        usage = reply.usage
        if usage is None or not all(map(_is_count, (usage.prompt, usage.output))):
            return
        # A count that would not settle a call is not to price the next one either.
        most = BELIEVABLE * self.tokens(request)
        if not 0 < usage.prompt <= most or usage.output > BELIEVABLE * request.max_output_tokens:
            return
        *_, whole = self._prefixes(request)
        key = sha256(whole.key + self._measure(reply.message).digest).digest()
        _remember(self._reported, key, usage.prompt + usage.output, _CONVERSATIONS)

    def _prefixes(self, request: Request) -> Iterator[_Prefix]:
        """Yield the conversation's prefixes, from none of its messages to all of them."""
        tools = [tool_to_json(tool) for tool in request.tools]
        head = canonical([pack(request.system), tools, pack(request.options)])
        key, size = sha256(head.encode()).digest(), PER_CALL + len(head) + PER_TOOL * len(tools)
        yield _Prefix(key, size)
        for message in request.messages:
            measured = self._measure(message)
            key = sha256(key + measured.digest).digest()
            size += measured.size
            yield _Prefix(key, size)

    def _measure(self, message: Message) -> _Measured:
        """Measure a message once, as the next turns will have the very same object again."""
        found = self._measured.get(id(message))
        if found is None or found.message is not message:
            written = canonical(message_to_json(message))
            found = _Measured(message, sha256(written.encode()).digest(), PER_MESSAGE + wire_size(message))
        _remember(self._measured, id(message), found, _MESSAGES)
        return found


def _remember(memory: OrderedDict[_K, _V], key: _K, value: _V, most: int) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > most:
        memory.popitem(last=False)


def _is_count(value: Any) -> bool:  # noqa: ANN401 - a provider said it
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def lower_output(request: Request, cap: int) -> Request:
    """Return ``request`` with its output capped at ``cap`` tokens, and a thinking budget lowered with it."""
    thinking = request.options.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(thinking, dict) or not isinstance(budget, int) or budget < cap:
        return replace(request, max_output_tokens=cap)
    # A thinking budget must leave room for an answer, and is refused below the least.
    room = max(cap // 2, min(LEAST_OUTPUT, cap - 1))
    lowered = {**thinking, "budget_tokens": room} if room >= LEAST_OUTPUT else {"type": "disabled"}
    return replace(request, max_output_tokens=cap, options={**request.options, "thinking": lowered})


def billed_apart(options: Mapping[str, Any]) -> list[str]:
    """Return the names of options with which a call may cost more than the tokens counted here."""
    found = sorted(_REFUSED & {name for name, value in options.items() if value})
    tools = options.get("tools")
    for tool in tools if isinstance(tools, list | tuple) else ():
        kind = tool.get("type", "custom") if hasattr(tool, "get") else "custom"
        if kind not in _FREE_TOOL_TYPES:
            found.append(f"tools ({kind})")
    found.extend(name for name in ("n", "best_of") if options.get(name, 1) != 1)
    modalities, reasoning = options.get("modalities"), options.get("reasoning")
    if modalities and modalities != ["text"]:
        found.append("modalities")
    if isinstance(reasoning, dict) and reasoning.get("mode", "standard") != "standard":
        found.append(
            "reasoning.mode"
        )  # how many samples it draws, and whether the cap holds for all, is not told
    return found

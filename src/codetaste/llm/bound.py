"""The most that a call can cost, before it is made (docs: reserve, then settle).

No tokenizer makes more tokens than there are bytes, and a provider's own count of a conversation so far is
better still. So a prompt is at most: what the provider counted for the longest prefix that it has reported
on, plus the bytes of what is new, plus an allowance for what the provider wraps around it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.llm.codec import canonical, message_to_json, pack, tool_to_json
from codetaste.llm.prefix import Prefix, Reported, believable, remember

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from codetaste.llm.messages import Message, Reply, Request

LEAST_OUTPUT = 1024
"""Output tokens below which a cap is never lowered: a shorter reply is of no use."""
PER_CALL = 1024
"""Tokens allowed for what a provider adds to every prompt, the preamble of tool use among it."""
PER_MESSAGE = 32
PER_TOOL = 64
"""Tokens allowed for what a provider wraps around a message and a tool."""
_MESSAGES = 4_000
"""How many are remembered; a forgotten one is measured again."""

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
_OWN_TOOLS = ("custom", "function")
_FREE_BUILT_IN = re.compile(
    r"local_shell|apply_patch|tool_search|tool_search_tool_\w+|(?:bash|text_editor|memory|computer)_\d{8}"
)
"""Tools that a provider describes in its own words, and whose calls cost nothing beside their tokens."""
_CLEARING = "clear_"
"""Context management that only takes from a prompt begins with it."""


def wire_size(message: Message) -> int:
    """Return at least the bytes of ``message`` as any client sends it, in UTF-8."""
    written = message_to_json(replace(message, raw=None))
    neutral = len(canonical(written))
    raw = 0 if message.raw is None else len(canonical(pack(message.raw.blocks)))
    return max(neutral, raw)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A message with its digest and the tokens that it cannot exceed."""

    message: Message
    digest: bytes
    size: int


class PromptBound:
    """Bounds prompts by what the provider has reported on; remembers conversations of one model."""

    def __init__(self) -> None:
        self._reported = Reported()
        self._measured: OrderedDict[int, _Measured] = OrderedDict()

    def tokens(self, request: Request) -> int:
        """Return a number of tokens that the prompt of ``request`` cannot exceed."""
        return self._reported.tokens(self._prefixes(request))

    def learn(self, request: Request, reply: Reply) -> None:
        """Remember the provider's count for ``request`` and its reply, where it makes sense."""
        usage = reply.usage
        # A count that would not settle a call is not to price the next one either.
        if usage is None or not believable(usage, self.tokens(request), request.max_output_tokens):
            return
        *_, whole = self._prefixes(request)
        key = sha256(whole.key + self._measure(reply.message).digest).digest()
        self._reported.learn(key, usage.prompt + usage.output)

    def _prefixes(self, request: Request) -> Iterator[Prefix]:
        """Yield the conversation's prefixes, from none of its messages to all of them."""
        tools = [tool_to_json(tool) for tool in request.tools]
        head = canonical([pack(request.system), tools, pack(request.options)])
        key, size = sha256(head.encode()).digest(), PER_CALL + len(head) + PER_TOOL * len(tools)
        yield Prefix(key, size)
        for message in request.messages:
            measured = self._measure(message)
            key = sha256(key + measured.digest).digest()
            size += measured.size
            yield Prefix(key, size)

    def _measure(self, message: Message) -> _Measured:
        """Measure a message once, as the next turns will have the very same object again."""
        found = self._measured.get(id(message))
        if found is None or found.message is not message:
            written = canonical(message_to_json(message))
            found = _Measured(message, sha256(written.encode()).digest(), PER_MESSAGE + wire_size(message))
        remember(self._measured, id(message), found, _MESSAGES)
        return found


def lower_output(request: Request, cap: int) -> Request:
    """Return ``request`` with its output capped at ``cap`` tokens, and a thinking budget lowered with it."""
    thinking = lowered_thinking(request.options.get("thinking"), cap)
    if thinking is None:
        return replace(request, max_output_tokens=cap)
    return replace(request, max_output_tokens=cap, options={**request.options, "thinking": thinking})


def lowered_thinking(thinking: object, cap: int) -> dict[str, Any] | None:
    """Return what ``thinking`` must be below a cap of so many tokens, None where it can stay as it is."""
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(thinking, dict) or not isinstance(budget, int) or budget < cap:
        return None
    # A thinking budget must leave room for an answer, and is refused below the least.
    room = max(cap // 2, min(LEAST_OUTPUT, cap - 1))
    return {**thinking, "budget_tokens": room} if room >= LEAST_OUTPUT else {"type": "disabled"}


def billed_apart(options: Mapping[str, Any]) -> list[str]:
    """Return the names of options with which a call may cost more than the tokens counted here."""
    found = sorted(_REFUSED & {name for name, value in options.items() if value})
    if "context_management" in found and _only_clears(options["context_management"]):
        found.remove("context_management")
    tools = options.get("tools")
    found.extend(f"tools ({_kind(tool)})" for tool in _dear(tools if isinstance(tools, list | tuple) else ()))
    found.extend(name for name in ("n", "best_of") if options.get(name) not in (None, 1))
    modalities, reasoning = options.get("modalities"), options.get("reasoning")
    if modalities and modalities != ["text"]:
        found.append("modalities")
    if isinstance(reasoning, dict) and reasoning.get("mode", "standard") != "standard":
        found.append(
            "reasoning.mode"
        )  # how many samples it draws, and whether the cap holds for all, is not told
    return found


def is_built_in(tool: object) -> bool:
    """Say whether a provider brings a tool, and describes it to the model in words of its own."""
    return _kind(tool) not in (*_OWN_TOOLS, "namespace")


def _dear(tools: Iterable[Any]) -> Iterator[Any]:
    """Yield the tools whose calls are billed beside their tokens."""
    for tool in tools:
        kind = _kind(tool)
        if kind == "namespace":
            yield from _dear(inner if isinstance(inner := tool.get("tools"), list | tuple) else ())
        elif kind not in _OWN_TOOLS and not _FREE_BUILT_IN.fullmatch(kind):
            yield tool


def _kind(tool: Any) -> str:  # noqa: ANN401 - JSON data
    kind = tool.get("type") if hasattr(tool, "get") else None
    return _OWN_TOOLS[0] if kind is None else str(kind)


def _only_clears(management: object) -> bool:
    edits = management.get("edits") if isinstance(management, dict) else None
    return isinstance(edits, list) and all(
        hasattr(edit, "get") and str(edit.get("type")).startswith(_CLEARING) for edit in edits
    )

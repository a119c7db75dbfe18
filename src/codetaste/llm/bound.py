"""Upper bound of the tokens of a prompt, computed before the call (docs: reserve, then settle).

No tokenizer makes more tokens than there are bytes, and a provider's own count of an earlier part of the
conversation is more exact. So the bound is: the provider's count for the longest prefix that it has reported,
plus the bytes of the rest, plus an allowance for what the provider adds around it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.llm.codec import canonical_json, message_to_json, tool_to_json, value_to_json
from codetaste.llm.prefix import PrefixCounts, PrefixKey, is_plausible_usage, remember_recent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from codetaste.llm.messages import Message, Reply, Request

MIN_OUTPUT_TOKENS = 1024
"""Output tokens below which a cap is never lowered, since a shorter reply is useless."""
TOKENS_PER_CALL = 1024
"""Tokens that a provider may add to every prompt, such as its instructions for tool use."""
TOKENS_PER_MESSAGE = 32
TOKENS_PER_TOOL = 64
"""Tokens that a provider may add around each message and each tool."""
_MESSAGES = 4_000
"""Measured messages kept in memory; an evicted one is measured again."""

_NOT_BY_TOKENS = frozenset(
    {"mcp_servers", "container", "web_search_options", "plugins", "audio", "moderation"}
    | {"search_parameters", "search_options", "enable_search", "web_search"}
)
"""Billed by something other than tokens."""
_STORED_CONTENT = frozenset({"previous_response_id", "conversation", "prompt", "thread", "data_sources"})
"""These add content stored at the provider to the prompt, so its length is unknown."""
_UNBOUNDED = frozenset({"prediction", "background", "context_management", "compaction"})
"""Tokens beyond the cap of the reply, or a reply that continues after the connection has closed."""
_OTHER_MODEL_OR_ACCOUNT = frozenset({"models", "fallbacks", "billing_policy"})
"""Another model may answer, or another account may pay."""
_UNSUPPORTED = _NOT_BY_TOKENS | _STORED_CONTENT | _UNBOUNDED | _OTHER_MODEL_OR_ACCOUNT
_OWN_TOOLS = ("custom", "function")
_FREE_BUILT_IN = re.compile(
    r"local_shell|apply_patch|tool_search|tool_search_tool_\w+|(?:bash|text_editor|memory|computer)_\d{8}"
)
"""Built-in tools of a provider whose calls cost nothing but their tokens."""
_CLEARING = "clear_"
"""Prefix of the context-management edits that only remove content from the prompt."""


def wire_size(message: Message) -> int:
    """Return an upper bound of the UTF-8 bytes of ``message`` in any wire format."""
    written = message_to_json(replace(message, raw=None))
    neutral = len(canonical_json(written))
    raw = 0 if message.raw is None else len(canonical_json(value_to_json(message.raw.blocks)))
    return max(neutral, raw)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A message with its digest and an upper bound of its tokens."""

    message: Message
    digest: bytes
    size: int


class PromptBound:
    """Bounds prompts by the counts that the provider has reported for earlier calls of one model."""

    def __init__(self) -> None:
        self._reported = PrefixCounts()
        self._measured: OrderedDict[int, _Measured] = OrderedDict()

    def tokens(self, request: Request) -> int:
        """Return an upper bound of the prompt tokens of ``request``."""
        return self._reported.tokens(self._prefixes(request))

    def learn(self, request: Request, reply: Reply) -> None:
        """Store the provider's count for ``request`` and its reply, if it is plausible."""
        usage = reply.usage
        # A count that is not plausible enough to settle a call must not bound the next one.
        if usage is None or not is_plausible_usage(usage, self.tokens(request), request.max_output_tokens):
            return
        *_, whole = self._prefixes(request)
        key = sha256(whole.key + self._measure(reply.message).digest).digest()
        self._reported.learn(key, usage.prompt + usage.output)

    def _prefixes(self, request: Request) -> Iterator[PrefixKey]:
        """Yield the prefixes of the conversation, from no message to all messages."""
        tools = [tool_to_json(tool) for tool in request.tools]
        head = canonical_json([value_to_json(request.system), tools, value_to_json(request.options)])
        key, size = sha256(head.encode()).digest(), TOKENS_PER_CALL + len(head) + TOKENS_PER_TOOL * len(tools)
        yield PrefixKey(key, size)
        for message in request.messages:
            measured = self._measure(message)
            key = sha256(key + measured.digest).digest()
            size += measured.size
            yield PrefixKey(key, size)

    def _measure(self, message: Message) -> _Measured:
        """Measure each message object once; the next turns of the conversation contain the same objects."""
        found = self._measured.get(id(message))
        if found is None or found.message is not message:
            written = canonical_json(message_to_json(message))
            found = _Measured(
                message, sha256(written.encode()).digest(), TOKENS_PER_MESSAGE + wire_size(message)
            )
        remember_recent(self._measured, id(message), found, _MESSAGES)
        return found


def lower_output(request: Request, cap: int) -> Request:
    """Return ``request`` with its output capped at ``cap`` tokens; a thinking budget is lowered too."""
    thinking = lowered_thinking(request.options.get("thinking"), cap)
    if thinking is None:
        return replace(request, max_output_tokens=cap)
    return replace(request, max_output_tokens=cap, options={**request.options, "thinking": thinking})


def lowered_thinking(thinking: object, cap: int) -> dict[str, Any] | None:
    """Return the ``thinking`` option to send with a cap of ``cap`` tokens, None if it can stay unchanged."""
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(thinking, dict) or not isinstance(budget, int) or budget < cap:
        return None
    # A thinking budget must leave room for an answer; providers refuse budgets below the minimum.
    room = max(cap // 2, min(MIN_OUTPUT_TOKENS, cap - 1))
    return {**thinking, "budget_tokens": room} if room >= MIN_OUTPUT_TOKENS else {"type": "disabled"}


def separately_billed_options(options: Mapping[str, Any]) -> list[str]:
    """Return the names of options that may make a call cost more than its counted tokens."""
    found = sorted(_UNSUPPORTED & {name for name, value in options.items() if value})
    if "context_management" in found and _only_clears(options["context_management"]):
        found.remove("context_management")
    tools = options.get("tools")
    tools = tools if isinstance(tools, list | tuple) else ()
    found.extend(f"tools ({_kind(tool)})" for tool in _billed_tools(tools))
    found.extend(name for name in ("n", "best_of") if options.get(name) not in (None, 1))
    modalities, reasoning = options.get("modalities"), options.get("reasoning")
    if modalities and modalities != ["text"]:
        found.append("modalities")
    if isinstance(reasoning, dict) and reasoning.get("mode", "standard") != "standard":
        # It is undocumented how many samples it draws, and whether the cap applies to all of them.
        found.append("reasoning.mode")
    return found


def _billed_tools(tools: Iterable[Any]) -> Iterator[Any]:
    """Yield the tools whose calls are billed in addition to their tokens."""
    for tool in tools:
        kind = _kind(tool)
        if kind == "namespace":
            yield from _billed_tools(inner if isinstance(inner := tool.get("tools"), list | tuple) else ())
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

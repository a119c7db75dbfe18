"""Upper bound of the tokens of a prompt, computed before the call (docs: reserve, then settle).

No tokenizer makes more tokens than the text has bytes, before or after it normalises it, and a provider's own
count of an earlier part of the conversation is more exact. So the bound is: the provider's count for the
longest prefix that it has reported, plus the bytes of the rest, plus an allowance for what the provider adds
around it. A count is used only for requests with the same system prompt, tools and options, and only if no
option removes parts of the prompt: what is not counted in one request is not counted in any longer one.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from unicodedata import normalize

from codetaste.core.hashing import canonical_json
from codetaste.llm.codec import message_to_json, tool_to_json, value_to_json
from codetaste.llm.config import PROMPT_OVERHEAD_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.llm.messages import Message, Reply, Request, Usage


TOKENS_PER_MESSAGE = 32

TOKENS_PER_TOOL = 64
"""Tokens that a provider may add around each message and each tool."""

_MESSAGES = 4_000
"""Measured messages kept in memory; an evicted one is measured again."""

_CONVERSATIONS = 20_000
"""Prefixes kept in memory; an evicted one is bounded by its bytes."""

_KEEPS_TURNS = "clear_thinking_"
"""Prefix of the edits of ``context_management`` that remove only the thinking of earlier turns."""

_LONG_CHARS = 1_000_000
"""A longer text is not normalised, which would take seconds."""

_MOST_GROWTH = 11
"""By how many times normalisation makes a text longer at most: U+FDFA is 33 bytes then, instead of 3."""

_ESCAPE = len(r"\u00e9")

_LONGER = {**dict.fromkeys("<>&'", _ESCAPE - 1), "/": 1, ",": 1, ":": 1}
"""How many bytes more a character may take in a server's JSON: ``\\u003c``, ``\\/``, a space after it."""

_K = TypeVar("_K")

_V = TypeVar("_V")


def wire_size(message: Message) -> int:
    """Return an upper bound of the tokens of ``message`` in any wire format."""
    neutral = _json_tokens(message_to_json(replace(message, raw=None)))
    return neutral if message.raw is None else max(neutral, _json_tokens(value_to_json(message.raw.blocks)))


def _json_tokens(value: object) -> int:
    return max_json_tokens(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def max_json_tokens(text: str) -> int:
    """Return an upper bound of the tokens of JSON without spaces, in whatever form a server writes it.

    Templates write the arguments and results of tools, their schemas, and some whole messages as JSON again,
    with spaces after marks and other escapes.
    """
    longer = sum(more * text.count(char) for char, more in _LONGER.items())
    if text.isascii():
        return len(text) + longer
    plain = len(text.encode("ascii", "ignore"))
    escaped = len(text.encode("utf-16-le", "surrogatepass")) // 2 - plain
    return max(plain + _ESCAPE * escaped + longer, max_tokens(text))


def max_tokens(text: str) -> int:
    """Return an upper bound of the tokens of ``text``: its bytes, also after normalisation by a tokenizer."""
    if text.isascii():
        return len(text)
    if len(text) > _LONG_CHARS:
        return _MOST_GROWTH * len(text.encode("utf-8", "surrogatepass"))
    forms = (text, normalize("NFC", text), normalize("NFKC", text))
    return max(len(form.encode("utf-8", "surrogatepass")) for form in forms)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A message with its digest and an upper bound of its tokens."""

    message: Message
    digest: bytes
    size: int


class _Prefix(NamedTuple):
    """A conversation up to some message: ``key`` identifies it, ``size`` bounds its tokens by its bytes."""

    key: bytes
    size: int


class PromptBound:
    """Bounds prompts by the counts that the provider has reported for earlier calls of one model."""

    def __init__(self, overhead_tokens: int = PROMPT_OVERHEAD_TOKENS) -> None:
        self.overhead_tokens = overhead_tokens
        self._reported: OrderedDict[bytes, int] = OrderedDict()
        self._measured: OrderedDict[int, _Measured] = OrderedDict()

    def tokens(self, request: Request) -> int:
        """Return an upper bound of the prompt tokens of ``request``, by the provider's earlier counts."""
        bound = base = size = 0
        for key, size in self._prefixes(request):
            if (reported := self._reported.get(key)) is not None:
                bound, base = reported, size
        return bound + size - base

    def tokens_by_size(self, request: Request) -> int:
        """Return an upper bound of the prompt tokens of ``request`` that rests on no earlier count."""
        *_, whole = self._prefixes(request)
        return whole.size

    def learn(self, request: Request, reply: Reply) -> None:
        """Store the provider's count for ``request`` and its reply, if it is within their bounds."""
        usage = reply.usage
        if usage is None or removes_turns(request.options):
            return
        if not is_bounded(usage, self.tokens(request), request.max_output_tokens):
            return
        *_, whole = self._prefixes(request)
        key = sha256(whole.key + self._measure(reply.message).digest).digest()
        remember_recent(self._reported, key, usage.prompt + usage.output, _CONVERSATIONS)

    def _prefixes(self, request: Request) -> Iterator[_Prefix]:
        """Yield the prefixes of the conversation, from no message to all messages."""
        tools = [tool_to_json(tool) for tool in request.tools]
        head_value = [value_to_json(request.system), tools, value_to_json(request.options)]
        head = canonical_json(head_value)
        key, size = sha256(head.encode()).digest(), _json_tokens(head_value) + TOKENS_PER_TOOL * len(tools)
        size += self.overhead_tokens
        yield _Prefix(key, size)
        for message in request.messages:
            measured = self._measure(message)
            key = sha256(key + measured.digest).digest()
            size += measured.size
            yield _Prefix(key, size)

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


def is_bounded(usage: Usage, prompt: int, output: int) -> bool:
    """Whether a reported usage is one of a call bounded by ``prompt`` and ``output`` tokens."""
    if not all(type(count) is int and count >= 0 for count in (usage.prompt, usage.output)):
        return False
    return 0 < usage.prompt <= prompt and usage.output <= output


def removes_turns(options: Mapping[str, Any]) -> bool:
    """Whether a request has options with which a provider does not count all of its messages."""
    if options.get("truncation") not in (None, "disabled") or options.get("compaction"):
        return True
    management = options.get("context_management")
    edits = management.get("edits") if isinstance(management, Mapping) else None
    return bool(management) and not (
        isinstance(edits, Sequence)
        and all(
            isinstance(edit, Mapping) and str(edit.get("type")).startswith(_KEEPS_TURNS) for edit in edits
        )
    )


def remember_recent(memory: OrderedDict[_K, _V], key: _K, value: _V, most: int) -> None:
    """Put ``value`` into an LRU cache of at most ``most`` entries."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > most:
        memory.popitem(last=False)

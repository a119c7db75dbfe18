"""What a provider bills for one request, whatever its protocol; it imports nothing of codetaste."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

INPUT_USD, OUTPUT_USD = Decimal(5), Decimal(25)
"""US dollars for a million tokens."""
SEARCHES = 10
"""Searches of a reply with a hosted search that sets no limit."""
SEARCH_USD = Decimal("0.01")
SEARCH_RESULT_TOKENS = 2_000
REMOTE_DOCUMENT_TOKENS, REMOTE_PICTURE_TOKENS, REMOTE_VIDEO_TOKENS = 100_000, 10_000, 100_000
"""Tokens of content that a request names by its address."""
LONGEST_REPLY = 64_000
"""Tokens of a reply without a cap that the server knows."""

_WANTED_REPLY = re.compile(r"\[answer (\d+)\]")


@dataclass
class Charge:
    """The tokens of one request, the factors of their prices, and fees.

    ``features`` counts what was billed by a rule beyond the plain length of a conversation.
    """

    prompt: int = 0
    cap: int = LONGEST_REPLY
    choices: int = 1
    cache_written: bool = False
    input_factor: Decimal = Decimal(1)
    write_factor: Decimal = Decimal("1.25")
    output_factor: Decimal = Decimal(1)
    searches: int = 0
    features: Counter[str] = field(default_factory=Counter)
    reply_tokens: int = 16
    reply_text: str = "well"

    @property
    def output(self) -> int:
        """Output tokens: as many as the request asks for, up to the cap of each choice."""
        return min(self.reply_tokens, self.cap) * self.choices

    @property
    def input(self) -> int:
        """Prompt tokens, with the results of hosted searches."""
        return self.prompt + self.searches * SEARCH_RESULT_TOKENS

    @property
    def usd(self) -> Decimal:
        """The bill, in US dollars."""
        factor = self.input_factor * (self.write_factor if self.cache_written else 1)
        tokens = self.input * INPUT_USD * factor + self.output * OUTPUT_USD * self.output_factor
        return tokens.scaleb(-6) + self.searches * SEARCH_USD

    @property
    def usage(self) -> dict[str, int]:
        """The reported counts, under Anthropic's names: all tokens, but no fee and no factor."""
        written = self.input if self.cache_written else 0
        return {
            "input_tokens": self.input - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": 0,
            "output_tokens": self.output,
        }

    def use(self, feature: str) -> None:
        """Record that a rule beyond plain length was applied."""
        self.features[feature] += 1

    def search(self, times: int, feature: str) -> None:
        """Bill hosted searches."""
        self.searches += times
        self.use(feature)


def tokens(value: object) -> int:
    """Return one token for each byte of the JSON of ``value``, the most that a tokenizer can make of it.

    Text is normalised first, as the tokenizers of several models do, which may make it longer.
    """
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(unicodedata.normalize("NFKC", written).encode("utf-8", "replace"))


def wanted_reply(body: object) -> int:
    """Return how many tokens the conversation asks for by ``[answer N]``."""
    found = _WANTED_REPLY.search(json.dumps(body))
    return int(found[1]) if found else 16


def walk(value: object) -> list[dict[str, Any]]:
    """Return all objects in ``value``, outermost first."""
    if isinstance(value, dict):
        return [value, *(inner for each in value.values() for inner in walk(each))]
    return [inner for each in value for inner in walk(each)] if isinstance(value, list) else []


def kind_of(block: object) -> str:
    """Return the type of a block in lower case, as lenient servers compare it; "" if it has none."""
    return str(block.get("type") or "").lower() if isinstance(block, dict) else ""

"""The faults of a provider in groups, and a seeded plan that mixes them.

``REFUSALS`` cost nothing and report that. ``ODD`` replies are whole, in an unusual form, and report their
cost. After ``HIDING`` faults a client may not know what it was billed. ``DISPUTED`` replies report more than
any call can cost.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from support.llm.provider.exchange import Exchange
from support.llm.provider.faults import (
    Fault,
    absurd_usage,
    bad_arguments,
    closes_when_idle,
    cut_in_stream,
    error_at_once,
    error_in_stream,
    garbage_in_stream,
    good,
    half_absurd_usage,
    hang_up_first,
    html,
    huge_usage,
    invalid_utf8,
    no_usage,
    odd_usage,
    refusing,
    repeated_ids,
    reset_first,
    reset_in_stream,
    retry_in_a_second,
    shattered,
    silent,
    slow,
    stall,
    trickled,
    unstreamed,
    zipped,
)

REFUSALS: dict[str, Fault] = {
    "429 in seconds": refusing(429, "rate_limit_error", lambda: {"retry-after": "0.01"}),
    "429 in ms": refusing(429, "rate_limit_error", lambda: {"retry-after-ms": "12"}),
    "429 without a time": refusing(429, "rate_limit_error"),
    "429 garbage": refusing(429, "rate_limit_error", lambda: {"retry-after": "soon"}),
    "529": refusing(529, "overloaded_error"),
}
FINAL: dict[str, Fault] = {
    "400": refusing(400, "invalid_request_error"),
    "401": refusing(401, "authentication_error"),
}
DATED: dict[str, Fault] = {"429 dated": refusing(429, "rate_limit_error", retry_in_a_second)}
"""An HTTP date has whole seconds, so this one is slow."""
ODD: dict[str, Fault] = {
    "trickled": trickled,
    "shattered": shattered,
    "zipped": zipped,
    "unstreamed": unstreamed,
    "repeated ids": repeated_ids,
    "bad arguments": bad_arguments,
    "slow": slow,
}
STALLS: dict[str, Fault] = {"stall": stall, "silent": silent}
"""These end only at the client's time limit."""
HIDING: dict[str, Fault] = {
    "500": refusing(500, "api_error"),
    "502": refusing(502, "api_error"),
    "503": refusing(503, "api_error"),
    "503 overloaded": refusing(503, "overloaded_error", billed=False),
    "html 200": html(200),
    "html 502": html(502),
    "reset first": reset_first,
    "hang up first": hang_up_first,
    "reset in stream": reset_in_stream,
    "cut in stream": cut_in_stream,
    "error in stream": error_in_stream,
    "error at once": error_at_once,
    "garbage in stream": garbage_in_stream,
    "invalid utf-8": invalid_utf8,
    "no usage": no_usage,
    "absurd usage": absurd_usage,
    "half absurd usage": half_absurd_usage,
    "odd usage": odd_usage,
    "closes when idle": closes_when_idle,
}
DISPUTED: dict[str, Fault] = {"huge usage": huge_usage}
"""After these a model is not called again."""


@dataclass
class Plan:
    """A handler that answers a share of the requests with a fault, and all others with a good reply.

    Whether a request gets a fault depends on the seed, its question and how often that question came before;
    the fault is one of those used least often.
    """

    seed: int
    share: float
    faults: Sequence[dict[str, Fault]]
    done: Counter[str] = field(default_factory=Counter)
    _repeats: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def __call__(self, exchange: Exchange) -> None:
        question = exchange.question
        with self._lock:
            self._repeats[question] += 1
            rng = Random(f"{self.seed}/{question}/{self._repeats[question]}")
            kinds = {name: fault for group in self.faults for name, fault in group.items()}
            name = "good"
            if rng.random() < self.share:
                fewest = min(self.done[kind] for kind in kinds)
                name = rng.choice([kind for kind in kinds if self.done[kind] == fewest])
            self.done[name] += 1
        exchange.handler = name
        await kinds.get(name, good)(exchange, rng)

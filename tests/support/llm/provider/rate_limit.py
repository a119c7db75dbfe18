"""How much a provider lets in: requests at once and a second, both of which may change at any time.

It refuses what is too much, says when to come back, and counts who comes back too early.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime


@dataclass
class Gate:
    """At most ``most`` requests at once, and ``per_s`` a second with ``burst`` at once; None is no limit.

    Args:
        wait_s: what a refused client is asked to wait.
        styles: how it is asked: "seconds", "ms", "date" (which has whole seconds) or "none".
        slack_s: what may still arrive after the refusal was sent, because it had left before.
    """

    most: int | None = None
    per_s: float | None = None
    burst: float = 1.0
    wait_s: float = 0.05
    styles: tuple[str, ...] = ("seconds", "ms")
    slack_s: float = 0.05
    in_flight: int = 0
    highest: int = 0
    """The most that were in flight at once, the refused among them."""
    let_in: int = 0
    refused: int = 0
    refused_at_s: list[float] = field(default_factory=list)
    arrived_s: list[float] = field(default_factory=list)
    early: int = 0
    """Arrivals in a pause that had been asked for, but for those already under way."""
    _closed_from_s: float = 0.0
    _closed_until_s: float = 0.0
    _tokens: float = 0.0
    _filled_s: float = field(default_factory=time.monotonic)
    _rng: random.Random = field(default_factory=lambda: random.Random(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._tokens = self.burst

    @contextmanager
    def arrival(self, now_s: float) -> Iterator[dict[str, str] | None]:
        """Count one request for as long as it is here; gives the headers of a refusal, or None."""
        with self._lock:
            self.arrived_s.append(now_s)
            self.early += self._closed_from_s + self.slack_s < now_s < self._closed_until_s
            self.in_flight += 1
            self.highest = max(self.highest, self.in_flight)
            full = self.most is not None and self.in_flight > self.most
            refusal = self._refusal(now_s) if full or not self._token(now_s) else None
            self.let_in += refusal is None
        try:
            yield refusal
        finally:
            with self._lock:
                self.in_flight -= 1

    def _token(self, now_s: float) -> bool:
        if self.per_s is None:
            return True
        self._tokens = min(self.burst, self._tokens + (now_s - self._filled_s) * self.per_s)
        self._filled_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _refusal(self, now_s: float) -> dict[str, str]:
        self.refused += 1
        self.refused_at_s.append(now_s)
        style, wait_s = self._rng.choice(self.styles), self.wait_s
        match style:
            case "none":
                return {}
            case "date":
                soon = datetime.now(UTC) + timedelta(seconds=wait_s)
                whole = soon.replace(microsecond=0)
                wait_s = (whole - datetime.now(UTC)).total_seconds()
                headers = {"retry-after": format_datetime(whole, usegmt=True)}
            case "ms":
                headers = {"retry-after-ms": f"{wait_s * 1000:g}"}
            case _:
                headers = {"retry-after": f"{wait_s:g}"}
        if now_s + wait_s > self._closed_until_s:
            # What has left before the client can know is not early.
            self._closed_from_s = (
                max(self._closed_from_s, now_s)
                if now_s > self._closed_until_s
                else min(self._closed_from_s, now_s)
            )
            self._closed_until_s = now_s + wait_s
        return headers

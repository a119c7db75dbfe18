"""A provider's rate limits: concurrent requests and requests per second, which may change at any time.

Requests over a limit are refused with a time to wait; those that come back too early are counted.
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
    """At most ``most`` requests at once, and ``per_s`` a second in bursts of ``burst``; None is no limit.

    Args:
        wait_s: the retry-after time of a refusal.
        styles: the forms of that time: "seconds", "ms", "date" (which has whole seconds) or "none".
        slack_s: for how long requests may still arrive that were sent before the refusal was received.
    """

    most: int | None = None
    per_s: float | None = None
    burst: float = 1.0
    wait_s: float = 0.05
    styles: tuple[str, ...] = ("seconds", "ms")
    slack_s: float = 0.05
    in_flight: int = 0
    highest: int = 0
    """The maximum of requests in flight at once, including refused ones."""
    let_in: int = 0
    refused: int = 0
    refused_at_s: list[float] = field(default_factory=list)
    arrived_s: list[float] = field(default_factory=list)
    early: int = 0
    """Arrivals in a requested pause, except for those already under way."""
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
        """Count one request while it is in flight; yields the headers of a refusal, or None."""
        with self._lock:
            self.arrived_s.append(now_s)
            self.early += self._closed_from_s + self.slack_s < now_s < self._closed_until_s
            self.in_flight += 1
            self.highest = max(self.highest, self.in_flight)
            full = self.most is not None and self.in_flight > self.most
            refusal = self._refusal(now_s) if full or not self._take_token(now_s) else None
            self.let_in += refusal is None
        try:
            yield refusal
        finally:
            with self._lock:
                self.in_flight -= 1

    def _take_token(self, now_s: float) -> bool:
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
            # A request sent before the client can have read the refusal is not early.
            self._closed_from_s = (
                max(self._closed_from_s, now_s)
                if now_s > self._closed_until_s
                else min(self._closed_from_s, now_s)
            )
            self._closed_until_s = now_s + wait_s
        return headers

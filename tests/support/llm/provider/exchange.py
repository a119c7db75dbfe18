"""What a loopback provider knows of itself, and one request to it with the means to answer."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from support.llm.provider.http import Call
from support.llm.provider.protocols import Protocol, error_of, sse
from support.llm.provider.rate_limit import Gate

Act = Callable[["Exchange"], Awaitable[None]]

_ASKED = re.compile(r"\[asked ([^\]]+)\]")


@dataclass(frozen=True)
class Rates:
    """US dollars for a million tokens."""

    input: Decimal = Decimal(3)
    output: Decimal = Decimal(15)
    cache_read: Decimal = Decimal("0.3")
    cache_write: Decimal = Decimal("3.75")


@dataclass(frozen=True)
class Billed:
    """What the provider puts on the invoice for one call.

    ``asked`` is what stood last as ``[asked …]`` in the conversation, ``request_id`` the name of the reply.
    """

    prompt: int
    output: int
    usd: Decimal = Decimal(0)
    model: str = ""
    asked: str = ""
    request_id: str = ""
    act: str = ""


@dataclass
class Server:
    url: str
    acts: deque[Act] = field(default_factory=deque)
    """What is done with the next requests, in order; then ``default``."""
    default: Act | None = None
    rates: dict[str, Rates] = field(default_factory=dict)
    """By the name of the model in a request; others cost as ``Rates()`` has it."""
    gates: dict[str, Gate] = field(default_factory=dict)
    """How much is let in at once, by the name of the model."""
    name: str = ""
    """Begins the names of its requests, where there are several servers."""
    strict: bool = False
    """Refuse conversations that a real provider would refuse, and keep why in ``complaints``."""
    complaints: list[str] = field(default_factory=list)
    idle_s: float = 60.0
    """How long a connection may be idle before it is closed without a word."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    raw_bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    """The client's port of each request: two requests on one connection have the same."""
    bill: list[Billed] = field(default_factory=list)
    acted: Counter[str] = field(default_factory=Counter)
    """How often each act was done, by its name."""
    faults: list[BaseException] = field(default_factory=list)
    """What went wrong in the server itself."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def billed_usd(self) -> Decimal:
        """The whole bill."""
        with self.lock:
            return sum((each.usd for each in self.bill), Decimal(0))


@dataclass
class Exchange:
    """One request, and the means to answer it."""

    server: Server
    call: Call
    protocol: Protocol
    body: dict[str, Any]
    number: int
    act: str = ""

    @property
    def name(self) -> str:
        """What the provider calls this request."""
        return f"req_{self.server.name}{self.number}"

    @property
    def ids(self) -> dict[str, str]:
        """The headers that name it."""
        return {"request-id": self.name, "x-request-id": self.name}

    @property
    def streamed(self) -> bool:
        """Whether the reply is asked for as a stream."""
        return bool(self.body.get("stream"))

    @property
    def asked(self) -> str:
        """What stands last as ``[asked …]`` in the conversation."""
        return (_ASKED.findall(self.call.data.decode("utf-8", "replace")) or [""])[-1]

    @property
    def cap(self) -> int:
        """The most tokens that the reply may have."""
        names = ("max_tokens", "max_output_tokens", "max_completion_tokens")
        return next((int(self.body[name]) for name in names if self.body.get(name)), 1 << 30)

    async def respond(self, status: int, body: bytes, content_type: str, headers: dict[str, str]) -> None:
        await self.call.respond(status, body, {"content-type": content_type, **headers})

    async def refuse(self, status: int, kind: str, headers: dict[str, str]) -> None:
        said = json.dumps(error_of(self.protocol, kind, "no")).encode()
        await self.respond(status, said, "application/json", self.ids | headers)

    async def stream(
        self,
        events: Iterable[Any],
        *,
        chunked: bool = False,
        end: bool = True,
        encode: Callable[[bytes], bytes] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Send server-sent events; unchunked, the end of the connection is the end of the reply."""
        framing = {"transfer-encoding": "chunked"} if chunked else {"connection": "close"}
        head = {"content-type": "text/event-stream; charset=utf-8", **self.ids}
        await self.call.head(200, {**head, **framing, **(headers or {})})
        written = (sse(self.protocol, event) for event in events)
        for data in written if encode is None else [encode(b"".join(written))]:
            await self.call.send(data)
        if end:
            await self.call.end()

    def charge(self, usage: dict[str, Any]) -> None:
        """Put a call of so many tokens on the bill, each kind at its own price."""
        fresh, read, written, output = (
            count if isinstance(count := usage.get(name), int) else 0
            for name in (
                "input_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
                "output_tokens",
            )
        )
        rates = self.server.rates.get(self.body["model"], Rates())
        usd = fresh * rates.input + read * rates.cache_read + written * rates.cache_write
        usd = (usd + output * rates.output).scaleb(-6)
        billed = Billed(
            fresh + read + written, output, usd, self.body["model"], self.asked, self.name, self.act
        )
        with self.server.lock:
            self.server.bill.append(billed)

"""The state of a loopback provider, and one request to it with the means to answer it."""

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

Handler = Callable[["Exchange"], Awaitable[None]]

_QUESTION = re.compile(r"\[asked ([^\]]+)\]")


@dataclass(frozen=True)
class Rates:
    """US dollars for a million tokens."""

    input: Decimal = Decimal(3)
    output: Decimal = Decimal(15)
    cache_read: Decimal = Decimal("0.3")
    cache_write: Decimal = Decimal("3.75")


@dataclass(frozen=True)
class Billed:
    """What the provider bills for one call.

    ``question`` is the last ``[asked …]`` of the conversation, ``request_id`` the name of the reply, and
    ``handler`` the name of the handler that answered.
    """

    prompt: int
    output: int
    usd: Decimal = Decimal(0)
    model: str = ""
    question: str = ""
    request_id: str = ""
    handler: str = ""


@dataclass
class Server:
    url: str
    handlers: deque[Handler] = field(default_factory=deque)
    """Each answers one of the next requests, in order; ``default`` answers all others."""
    default: Handler | None = None
    rates: dict[str, Rates] = field(default_factory=dict)
    """By the name of the model in a request; other models cost ``Rates()``."""
    gates: dict[str, Gate] = field(default_factory=dict)
    """The rate limits, by the name of the model."""
    name: str = ""
    """The beginning of the names of its requests, where there are several servers."""
    strict: bool = False
    """Refuse conversations that a real provider would refuse, and store the reason in ``complaints``."""
    complaints: list[str] = field(default_factory=list)
    idle_s: float = 60.0
    """How long a connection may be idle before it is closed silently."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    raw_bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """Of the requests, with their parameters."""
    ports: list[int] = field(default_factory=list)
    """The client's port of each request: two requests on one connection have the same."""
    bill: list[Billed] = field(default_factory=list)
    handled: Counter[str] = field(default_factory=Counter)
    """How many requests each handler has answered, by its name."""
    faults: list[BaseException] = field(default_factory=list)
    """Errors in the server itself."""
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
    handler: str = ""

    @property
    def name(self) -> str:
        """The provider's name of this request."""
        return f"req_{self.server.name}{self.number}"

    @property
    def ids(self) -> dict[str, str]:
        """The headers with the request's name."""
        return {"request-id": self.name, "x-request-id": self.name}

    @property
    def streamed(self) -> bool:
        """Whether a streamed reply is requested."""
        return bool(self.body.get("stream"))

    @property
    def question(self) -> str:
        """The last ``[asked …]`` of the conversation."""
        return (_QUESTION.findall(self.call.data.decode("utf-8", "replace")) or [""])[-1]

    @property
    def cap(self) -> int:
        """The maximum of the reply's tokens."""
        names = ("max_tokens", "max_output_tokens", "max_completion_tokens")
        return next((int(self.body[name]) for name in names if self.body.get(name)), 1 << 30)

    async def respond(self, status: int, body: bytes, content_type: str, headers: dict[str, str]) -> None:
        await self.call.respond(status, body, {"content-type": content_type, **headers})

    async def refuse(self, status: int, kind: str, headers: dict[str, str]) -> None:
        body = json.dumps(error_of(self.protocol, kind, "no")).encode()
        await self.respond(status, body, "application/json", self.ids | headers)

    async def stream(
        self,
        events: Iterable[Any],
        *,
        chunked: bool = False,
        end: bool = True,
        encode: Callable[[bytes], bytes] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Send server-sent events; without ``chunked``, closing the connection ends the reply."""
        framing = {"transfer-encoding": "chunked"} if chunked else {"connection": "close"}
        head = {"content-type": "text/event-stream; charset=utf-8", **self.ids}
        await self.call.head(200, {**head, **framing, **(headers or {})})
        written = (sse(self.protocol, event) for event in events)
        for data in written if encode is None else [encode(b"".join(written))]:
            await self.call.send(data)
        if end:
            await self.call.end()

    def charge(self, usage: dict[str, Any]) -> None:
        """Put a call with this usage on the bill, each kind of tokens at its own price."""
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
            fresh + read + written, output, usd, self.body["model"], self.question, self.name, self.handler
        )
        with self.server.lock:
            self.server.bill.append(billed)

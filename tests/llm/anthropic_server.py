"""A loopback server that speaks the Anthropic Messages protocol, keeps a bill, and fails when told to."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Act = Callable[["Exchange"], None]


@dataclass
class Billed:
    """What the provider would put on the invoice for one call."""

    prompt: int
    output: int


@dataclass
class Server:
    url: str
    acts: deque[Act] = field(default_factory=deque)
    """What is done with the next requests, in order; then ``default``."""
    default: Act | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    raw_bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bill: list[Billed] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)


@dataclass
class Exchange:
    """One request, and the means to answer it."""

    server: Server
    handler: BaseHTTPRequestHandler
    body: dict[str, Any]

    def respond(self, status: int, body: bytes, content_type: str, headers: dict[str, str]) -> None:
        self.handler.send_response(status)
        for name, value in {
            "content-type": content_type,
            "content-length": str(len(body)),
            **headers,
        }.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def stream(self, events: list[dict[str, Any]], *, chunked: bool = False, end: bool = True) -> None:
        self.handler.send_response(200)
        self.handler.send_header("content-type", "text/event-stream; charset=utf-8")
        self.handler.send_header("request-id", "req_1")
        self.handler.send_header(*("transfer-encoding", "chunked") if chunked else ("connection", "close"))
        self.handler.end_headers()
        self.handler.close_connection = True
        for event in events:
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
            self.handler.wfile.flush()
        if chunked and end:
            self.handler.wfile.write(b"0\r\n\r\n")

    def charge(self, usage: dict[str, Any]) -> None:
        prompt = sum(
            usage.get(name) or 0
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        with self.server.lock:
            self.server.bill.append(Billed(prompt, usage.get("output_tokens") or 0))


def counted(body: dict[str, Any], blocks: list[dict[str, Any]]) -> dict[str, int]:
    """A usage that no byte count is below: a token for every three bytes."""
    said = len(json.dumps(blocks))
    return {
        "input_tokens": len(json.dumps(body, ensure_ascii=False).encode()) // 3,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": min(body["max_tokens"], said // 3 + 1),
    }


def events_of(
    body: dict[str, Any], blocks: list[dict[str, Any]], stop: str, usage: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """What is sent for a reply, deltas in small pieces; ``partial`` in a tool block is its raw input text."""
    begun = {**usage, "output_tokens": 1} if usage is not None else None
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": begun}},
        {"type": "ping"},
    ]
    for index, block in enumerate(blocks):
        start, deltas = _taken_apart(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop, "stop_sequence": None}
    closing = {} if usage is None else {"usage": {"output_tokens": usage["output_tokens"]}}
    return [*events, {"type": "message_delta", "delta": delta, **closing}, {"type": "message_stop"}]


def _taken_apart(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [
                {"type": "text_delta", "text": piece} for piece in _pieces(block["text"])
            ]
        case "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            said = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            return start, [*said, {"type": "signature_delta", "signature": block["signature"]}]
        case "tool_use":
            text = block["partial"] if "partial" in block else json.dumps(block["input"])
            start = {name: block[name] for name in ("type", "id", "name")} | {"input": {}}
            return start, [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(text)]
        case _:
            return block, []


def _pieces(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def reply(
    *blocks: dict[str, Any],
    stop: str = "end_turn",
    usage: dict[str, Any] | None = None,
    tell: bool = True,
    chunked: bool = False,
) -> Act:
    """Answer with ``blocks``; ``tell=False`` bills without saying what."""

    def act(exchange: Exchange) -> None:
        counts = usage if usage is not None else counted(exchange.body, list(blocks))
        exchange.charge(counts)
        exchange.stream(
            events_of(exchange.body, list(blocks), stop, counts if tell else None), chunked=chunked
        )

    return act


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def status(code: int, body: object = None, *, content_type: str = "application/json", **headers: str) -> Act:
    """Refuse with an HTTP status; underscores in header names are dashes. Not billed."""
    said = {"type": "error", "error": {"type": "x", "message": "no"}} if body is None else body
    data = said.encode() if isinstance(said, str) else json.dumps(said).encode()

    def act(exchange: Exchange) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        exchange.respond(code, data, content_type, named)

    return act


def cut(*blocks: dict[str, Any], after: int = 4, chunked: bool = False) -> Act:
    """Begin a reply, bill it, and close the connection after some events."""

    def act(exchange: Exchange) -> None:
        usage = counted(exchange.body, list(blocks))
        exchange.charge(usage)
        exchange.stream(
            events_of(exchange.body, list(blocks), "end_turn", usage)[:after], chunked=chunked, end=False
        )
        exchange.handler.connection.close()

    return act


def stall(*blocks: dict[str, Any], seconds: float = 30.0) -> Act:
    """Begin a reply, bill it, and say no more."""

    def act(exchange: Exchange) -> None:
        usage = counted(exchange.body, list(blocks))
        exchange.charge(usage)
        exchange.stream(events_of(exchange.body, list(blocks), "end_turn", usage)[:3])
        exchange.server.closing.wait(seconds)

    return act


def hang_up(exchange: Exchange) -> None:
    """Take the request and close the connection without a word."""
    exchange.handler.close_connection = True
    exchange.handler.connection.close()


def slowly(act: Act, seconds: float) -> Act:
    def slow(exchange: Exchange) -> None:
        time.sleep(seconds)
        act(exchange)

    return slow


@contextmanager
def serving() -> Iterator[Server]:
    """Serve on a free port of the loopback."""
    server = Server("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            body = json.loads(data)
            with server.lock:
                server.raw_bodies.append(data)
                server.bodies.append(body)
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                act = server.acts.popleft() if server.acts else server.default
            if act is None:
                raise AssertionError("the test has nothing to answer with")
            try:
                act(Exchange(server, self, body))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = False
        block_on_close = True

        def handle_error(self, *_: object) -> None:
            pass

    http = Quiet(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        thread.join()
        http.server_close()

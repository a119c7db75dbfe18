"""A provider on the loopback with ``/embeddings`` and ``/rerank``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class EndpointServer:
    """What the server answers, and what it was sent; ``answers`` come first, in order."""

    url: str = ""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    bodies: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.bodies.append((path, body))
        if self.answers:
            return self.answers.pop(0)
        if path.endswith("/embeddings"):
            data = [{"index": i, "embedding": embedding_of(text)} for i, text in enumerate(body["input"])]
            tokens = sum(len(text.split()) for text in body["input"])
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            return 200, {"data": data[::-1], "model": body["model"], "usage": usage}
        words = set(body["query"].split())
        results = [
            {"index": i, "relevance_score": len(words & set(text.split())) / len(words)}
            for i, text in enumerate(body["documents"])
        ]
        results.sort(key=lambda each: -each["relevance_score"])
        return 200, {"results": results, "usage": {"total_tokens": 11}}


def embedding_of(text: str) -> list[float]:
    """Return how often each of eight letters occurs."""
    return [float(text.lower().count(letter)) + 0.1 for letter in "aeinorst"]


@contextmanager
def serving_endpoints() -> Iterator[EndpointServer]:
    server = EndpointServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, answer = server.answer(self.path, body)
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()

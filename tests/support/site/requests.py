"""Requests to the live server's application, as they come from connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio
import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import ASGIApp, Message


class Client:
    """Sends requests to port 80 of the loopback; the application's event loop goes on between them."""

    def __init__(self, app: ASGIApp, portal: BlockingPortal) -> None:
        self.portal = portal
        self._app = app

    def send(self, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        return self.portal.call(self._send, method, path, headers)

    def get(self, path: str) -> httpx.Response:
        return self.send("GET", path)

    def leave(self, path: str) -> int:
        """Ask for a page and go away; return the status of the answer that is not read."""
        return self.portal.call(self._leave, path)

    def get_at_once(self, paths: Sequence[str]) -> list[httpx.Response]:
        """Return the answers to requests none of which waits for another one's answer."""
        return self.portal.call(self.requests_at_once, paths)

    async def _leave(self, path: str) -> int:
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1")],
            "server": ("127.0.0.1", 80),
        }
        messages = iter([{"type": "http.request", "body": b""}, {"type": "http.disconnect"}])
        sent: list[Message] = []

        async def receive() -> Message:
            return next(messages)

        async def send(message: Message) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        return int(sent[0]["status"])

    async def _send(self, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:80") as client:
            return await client.request(method, path, headers=headers)

    async def requests_at_once(self, paths: Sequence[str]) -> list[httpx.Response]:
        """Do the same in the application's event loop."""
        answers: dict[int, httpx.Response] = {}

        async def get(number: int, path: str) -> None:
            answers[number] = await self._send("GET", path)

        async with anyio.create_task_group() as tasks:
            for number, path in enumerate(paths):
                tasks.start_soon(get, number, path)
        return [answers[number] for number in range(len(paths))]


@contextmanager
def connected(app: ASGIApp) -> Iterator[Client]:
    """Run the event loop of an application inside the block."""
    with start_blocking_portal() as portal:
        yield Client(app, portal)


def ask(app: ASGIApp, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """Return the answer to the only request of an event loop."""
    with connected(app) as client:
        return client.send(method, path, headers)


def get(app: ASGIApp, path: str) -> httpx.Response:
    return ask(app, "GET", path)

"""Requests to the live server's application, as they come from a connection."""

from __future__ import annotations

import httpx
from anyio.from_thread import start_blocking_portal
from starlette.types import ASGIApp


def ask(app: ASGIApp, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """Return the answer to a request at port 80 of the loopback."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:80") as client:
            return await client.request(method, path, headers=headers)

    with start_blocking_portal() as portal:
        return portal.call(send)


def get(app: ASGIApp, path: str) -> httpx.Response:
    return ask(app, "GET", path)

"""The gateway as programs see it: which paths there are, who may use them, and how answers are delivered.

A token comes as ``x-api-key``, as ``Authorization: Bearer …``, or in front of the path as ``/token/TOKEN``.
Whatever else is asked for is refused here; nothing is ever sent anywhere but to a model of the job.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from codetaste.errors import MalformedRequest
from codetaste.gateway.asked import read_asked
from codetaste.gateway.exchange import Exchange
from codetaste.gateway.outlet import Outlet
from codetaste.llm.wire.refusal import Refused, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from codetaste.gateway.access import Access
    from codetaste.gateway.asked import Asked
    from codetaste.llm.wire.request import Protocol

MOST_BYTES = 32 * 1024 * 1024
"""Of one request; providers take no more."""
_PIECE_S = 30.0
"""How long the next piece of a request is waited for."""
_ROUTES: dict[str, Protocol] = {
    "/v1/messages": "anthropic",
    "/v1/responses": "openai",
    "/v1/chat/completions": "openai-chat",
}
_COUNT = "/v1/messages/count_tokens"
_PREFIX = "/token/"
_BYTES_PER_TOKEN = 4


class _No(Exception):
    """A request is refused; ``status`` where it is not the kind's own."""

    def __init__(self, kind: Refused, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.kind, self.why, self.status = kind, why, status


class App:
    """The ASGI application; ``open`` and ``close`` say which tokens are good."""

    def __init__(self) -> None:
        self._accesses: dict[bytes, Access] = {}

    def open(self, access: Access) -> None:
        """Let the job in."""
        self._accesses[_digest(access.token)] = access

    def close(self, access: Access) -> None:
        """Let nobody in with this token any more."""
        self._accesses.pop(_digest(access.token), None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        token, path = _token_and_path(request)
        if path == "/" and request.method in {"HEAD", "GET"}:
            await Response()(scope, receive, send)
            return
        protocol = _ROUTES.get(path, "anthropic")
        try:
            await self._serve(request, send, token, path)
        except _No as no:
            said = refusal(protocol, no.kind, no.why, retry=no.kind is Refused.RATE_LIMIT)
            response = Response(said.body, no.status or said.status, {**said.headers})
            if no.kind in {Refused.TOO_LARGE, Refused.BAD_TOKEN}:
                response.headers["connection"] = "close"
            await response(scope, receive, send)
        except ClientDisconnect:
            return

    async def _serve(self, request: Request, send: Send, token: str, path: str) -> None:
        if path not in _ROUTES and path != _COUNT:
            raise _No(Refused.BAD_REQUEST, f"there is no {request.method} {path[:100]} here", 404)
        if request.method != "POST":
            raise _No(Refused.BAD_REQUEST, f"{path} takes POST", 405)
        access = self._accesses.get(_digest(token))
        if access is None or not hmac.compare_digest(access.token.encode(), token.encode()):
            raise _No(Refused.BAD_TOKEN, "this token is not good here, or its job is over")
        if path != _COUNT and _ROUTES[path] != access.protocol:
            raise _No(Refused.BAD_REQUEST, f"this job speaks {access.protocol}, and not at {path}", 404)
        _let_in(access)
        if access.crowded:
            raise _No(Refused.RATE_LIMIT, "too many requests of this job wait already")
        await access.take_place()
        await _in_place(request, send, access, path)


async def _in_place(request: Request, send: Send, access: Access, path: str) -> None:
    """Answer a request that has one of its job's places, and see that the place is given back."""
    held, outlet = 0, None
    try:
        body = bytearray()
        async for piece in _pieces(request):
            body += piece
            if len(body) > MOST_BYTES or not access.hold(len(piece)):
                raise _No(Refused.TOO_LARGE, f"a request has at most {MOST_BYTES} bytes")
            held += len(piece)
        # It may have waited long: what held when it came need not hold any more.
        _let_in(access)
        if path == _COUNT:
            await JSONResponse({"input_tokens": -(-len(body) // _BYTES_PER_TOKEN)})(
                request.scope, request.receive, send
            )
            return
        asked = _asked(request, access, bytes(body))
        outlet = Outlet()
        access.start(Exchange(access, asked, outlet), held)
    finally:
        if outlet is None:
            access.leave_place(held)
    await _deliver(outlet, request.receive, send)


def _asked(request: Request, access: Access, data: bytes) -> Asked:
    try:
        query = request.scope["query_string"].decode("latin-1")
        asked = read_asked(access, data, request.headers, query)
    except MalformedRequest as error:
        raise _No(Refused.BAD_REQUEST, str(error)) from error
    if asked is None:
        raise _No(Refused.NOT_ALLOWED_MODEL, "this job may not use that model")
    if apart := access.apart(asked.wire):
        raise _No(Refused.BAD_REQUEST, apart)
    return asked


def _let_in(access: Access) -> None:
    if (no := access.why_not()) is not None:
        raise _No(*no)


async def _pieces(request: Request) -> Any:  # noqa: ANN401 - an iterator of bytes
    """Yield a body in pieces; whoever sends too slowly is not waited for."""
    pieces = request.stream().__aiter__()
    while True:
        with anyio.move_on_after(_PIECE_S) as waiting:
            piece = await anext(pieces, None)
        if waiting.cancelled_caught:
            raise _No(Refused.TOO_LARGE, f"no more of the request came for {_PIECE_S:g} s", 408)
        if piece is None:
            return
        yield piece


async def _deliver(outlet: Outlet, receive: Receive, send: Send) -> None:
    """Send what comes out of ``outlet`` until it ends, or until nobody listens any more."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        outlet.leave()
        tasks.cancel_scope.cancel()

    try:
        await anyio.lowlevel.checkpoint()  # what answers goes first
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await outlet.begun.wait()
            head = [
                (name.encode(), text.encode("latin-1", "replace")) for name, text in outlet.headers.items()
            ]
            await send({"type": "http.response.start", "status": outlet.status or 503, "headers": head})
            async for piece in outlet.pieces:
                await send({"type": "http.response.body", "body": piece + outlet.rest(), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()
    finally:
        outlet.leave()


def _token_and_path(request: Request) -> tuple[str, str]:
    """Return the token of a request, "" if it has none, and its path without one."""
    path, token = request.scope["path"], _said_token(request.headers)
    if path.startswith(_PREFIX):
        prefix, _, rest = path.removeprefix(_PREFIX).partition("/")
        path, token = f"/{rest}", token or prefix
    return token, path.rstrip("/") or "/"


def _said_token(headers: Mapping[str, str]) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return headers.get("x-api-key", "") or (token.strip() if kind.lower() == "bearer" else "")


def _digest(token: str) -> bytes:
    """Return what a token is looked up by, so that how long that takes tells nothing of it."""
    return sha256(token.encode()).digest()

"""The gateway's ASGI application: routes, token check and delivery of responses.

A token is sent as ``x-api-key``, as ``Authorization: Bearer …``, or before the path as ``/token/TOKEN``.
Every other request is rejected; a request is only ever sent to a model of its job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from codetaste.core.text import REDACTED
from codetaste.errors import MalformedRequest
from codetaste.gateway.exchange import Exchange
from codetaste.gateway.request import parse_request
from codetaste.gateway.response import ResponseStream
from codetaste.gateway.session import SessionTokens
from codetaste.llm.wire.common.error_codes import ErrorKind
from codetaste.llm.wire.error_responses import error_response
from codetaste.llm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from codetaste.gateway.request import GatewayRequest
    from codetaste.gateway.session import GatewaySession

MAX_REQUEST_BYTES = 32 * 1024 * 1024
"""Limit on one request body; providers accept no more."""
_CHUNK_TIMEOUT_S = 30.0
"""Maximum wait for the next chunk of a request body."""
_ROUTES = {protocol.route: protocol.name for protocol in PROTOCOLS.values()}
_COUNT_PATH = "/v1/messages/count_tokens"
_URL_PREFIX = "/token/"
_BYTES_PER_TOKEN = 4


class _Reject(Exception):
    """A rejected request; ``status`` replaces the default status of its kind if not 0."""

    def __init__(self, kind: ErrorKind, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.kind, self.reason, self.status = kind, why, status


class GatewayApp:
    """The ASGI application; it serves the sessions whose tokens are in ``tokens``."""

    def __init__(self) -> None:
        self.tokens = SessionTokens()

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
        except _Reject as reject:
            answer = error_response(
                protocol, reject.kind, reject.reason, retry=reject.kind is ErrorKind.RATE_LIMIT
            )
            response = Response(answer.body, reject.status or answer.status, {**answer.headers})
            if reject.kind in {ErrorKind.TOO_LARGE, ErrorKind.BAD_TOKEN}:
                response.headers["connection"] = "close"
            await response(scope, receive, send)
        except ClientDisconnect:
            return

    async def _serve(self, request: Request, send: Send, token: str, path: str) -> None:
        if path not in _ROUTES and path != _COUNT_PATH:
            raise _Reject(ErrorKind.BAD_REQUEST, f"no such endpoint: {request.method} {path[:100]}", 404)
        if request.method != "POST":
            raise _Reject(ErrorKind.BAD_REQUEST, f"{path} accepts only POST", 405)
        session = self.tokens.check(token)
        if session is None:
            raise _Reject(ErrorKind.BAD_TOKEN, "invalid token, or its job has ended")
        if path != _COUNT_PATH and _ROUTES[path] != session.protocol:
            raise _Reject(
                ErrorKind.BAD_REQUEST,
                f"this job uses the protocol {session.protocol}, which has no endpoint {path}",
                404,
            )
        _check_open(session)
        if session.overloaded:
            raise _Reject(ErrorKind.RATE_LIMIT, "too many requests of this job are waiting")
        await session.acquire()
        await _answer_request(request, send, session, path)


async def _answer_request(request: Request, send: Send, session: GatewaySession, path: str) -> None:
    """Answer a request that has a permit of its session, and make sure that the permit is released."""
    body_bytes, output = 0, None
    try:
        body = bytearray()
        async for chunk in _body_chunks(request):
            body += chunk
            if len(body) > MAX_REQUEST_BYTES or not session.reserve_bytes(len(chunk)):
                raise _Reject(ErrorKind.TOO_LARGE, f"a request may have at most {MAX_REQUEST_BYTES} bytes")
            body_bytes += len(chunk)
        # The request may have waited long, so the session's state is checked again.
        _check_open(session)
        if path == _COUNT_PATH:
            await JSONResponse({"input_tokens": -(-len(body) // _BYTES_PER_TOKEN)})(
                request.scope, request.receive, send
            )
            return
        # The output of a command may have the token. Without it here, no reply, record or provider has it.
        data = body.replace(session.token.encode(), REDACTED.encode())
        parsed = _parsed_request(request, session, bytes(data))
        output = ResponseStream()
        session.start(Exchange(session, parsed, output).run, body_bytes)
    finally:
        if output is None:
            session.release(body_bytes)
    await _deliver(output, request.receive, send)


def _parsed_request(request: Request, session: GatewaySession, data: bytes) -> GatewayRequest:
    try:
        parsed = parse_request(
            data,
            session.protocol,
            session.model_for,
            headers={name: value for name, value in request.headers.items() if session.token not in value},
            query=request.scope["query_string"].decode("latin-1"),
        )
    except MalformedRequest as error:
        raise _Reject(ErrorKind.BAD_REQUEST, str(error)) from error
    if parsed is None:
        raise _Reject(ErrorKind.NOT_ALLOWED, "this job may not use that model")
    is_turn = parsed.wire.is_agent_turn or not session.side_calls
    if problem := session.unknown_cost_problem(parsed.findings, is_agent_turn=is_turn):
        raise _Reject(ErrorKind.NOT_ALLOWED, problem)
    return parsed


def _check_open(session: GatewaySession) -> None:
    if (rejection := session.rejection()) is not None:
        raise _Reject(*rejection)


async def _body_chunks(request: Request) -> Any:  # noqa: ANN401 - an iterator of bytes
    """Yield a body in chunks; a client that sends nothing for 30 s is rejected."""
    chunks = request.stream().__aiter__()
    while True:
        with anyio.move_on_after(_CHUNK_TIMEOUT_S) as waiting:
            chunk = await anext(chunks, None)
        if waiting.cancelled_caught:
            raise _Reject(ErrorKind.TOO_LARGE, f"the request body stalled for {_CHUNK_TIMEOUT_S:g} s", 408)
        if chunk is None:
            return
        yield chunk


async def _deliver(output: ResponseStream, receive: Receive, send: Send) -> None:
    """Send the response until it ends or the client disconnects."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        output.abandon()
        tasks.cancel_scope.cancel()

    try:
        await anyio.lowlevel.checkpoint()  # the exchange's task runs first
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await output.started.wait()
            head = [
                (name.encode(), text.encode("latin-1", "replace")) for name, text in output.headers.items()
            ]
            await send({"type": "http.response.start", "status": output.status or 503, "headers": head})
            async for piece in output.pieces:
                await send({"type": "http.response.body", "body": piece + output.drain(), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()
    finally:
        output.abandon()


def _token_and_path(request: Request) -> tuple[str, str]:
    """Return the token of a request ("" if there is none) and its path without the token."""
    headers, path = request.headers, request.scope["path"]
    kind, _, bearer = headers.get("authorization", "").partition(" ")
    token = headers.get("x-api-key", "") or (bearer.strip() if kind.lower() == "bearer" else "")
    if path.startswith(_URL_PREFIX):
        prefix, _, rest = path.removeprefix(_URL_PREFIX).partition("/")
        path, token = f"/{rest}", token or prefix
    return token, path.rstrip("/") or "/"

"""One request of a program as a model: it goes to the provider as it is, and what comes back to the program.

Only what decides the money is ours: the name of the model, the cap on the reply, and that a stream tells its
usage. What comes is passed on byte for byte as it comes, and read on the side.
"""

from __future__ import annotations

import re
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from codetaste.errors import MalformedReply, ModelError, ModelUnavailable
from codetaste.llm.wire.http import one_line, read_json, without
from codetaste.llm.wire.sse import MOST_BYTES
from codetaste.orchestration.retry import give_up

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from codetaste.gateway.line import Line
    from codetaste.gateway.outlet import Outlet
    from codetaste.gateway.upstream import Upstream
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.wire.tap import Tap

_CLOSING_S = 5.0
_REST_S = 0.25
"""How long the end of a body is waited for once the reply is whole."""
_SAID_BYTES = 4096
_REFUSAL_BYTES = 1024 * 1024
"""More than any provider has to say of a failure; what follows is not read."""
_OK, _REDIRECT = 200, 300
_EVENTS, _WHOLE = "text/event-stream", "application/json"
_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
"""The end of an event."""
REFUSED = "_codetaste_answer"
"""The attribute of an error with the provider's own refusal, to be passed on."""


class Passage:
    """The way of one request to ``upstream`` and back into ``outlet``; it may be gone again after a failure.

    Args:
        model_id: what the config calls the model.
        upstream: the provider.
        write: gives the body to be sent, for what may be asked for now.
        headers: of the program's request, names in lower case.
        query: of the program's request.
        streamed: whether it asks for a stream.
        outlet: where the answer goes.
    """

    remembers = False

    def __init__(
        self,
        model_id: str,
        upstream: Upstream,
        write: Callable[[Request], bytes],
        *,
        headers: Mapping[str, str],
        query: str,
        streamed: bool,
        outlet: Outlet,
    ) -> None:
        self.id = model_id
        self._upstream, self._write, self._outlet = upstream, write, outlet
        self._headers, self._query, self._streamed = headers, query, streamed
        self._line: Line | ModelUnavailable | None = None
        self._body: tuple[Request, bytes] | None = None
        self.told = False
        """Whether the program has the provider's own end of the stream, whatever that was."""

    async def get_ready(self, request: Request) -> None:
        """Do all for ``request`` that costs nothing, while money is written down: connect, write the body."""
        await self.aclose()
        try:
            self._line = await self._upstream.ready()
        except ModelUnavailable as error:
            self._line = error
        self._body = (request, self._write(request))

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - no protocol has a name for it
        """Send the program's request once, and pass on what comes.

        Raises:
            ModelError: there is no reply; one that had begun cannot be tried again.
        """
        timeout_s = self._upstream.timeout_s
        try:
            with anyio.move_on_after(timeout_s):
                return await self._ask(self._written(request))
            raise ModelUnavailable(f"no whole reply within {timeout_s:g} s")
        except ModelError as error:
            error.args = (without(self._upstream.secret, str(error)),)
            if self._outlet.begun.is_set() or self._outlet.gone:
                give_up(error)
            raise

    async def recall(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider keeps no record to ask
        """Return None: the provider does not answer twice."""
        return None

    async def aclose(self) -> None:
        """Close a connection that was made ready and has not been used."""
        line, self._line, self._body = self._line, None, None
        if line is not None and not isinstance(line, ModelUnavailable):
            with anyio.move_on_after(_CLOSING_S, shield=True):
                await line.aclose()

    async def _ask(self, content: bytes) -> Reply:
        upstream = self._upstream
        url, host = upstream.url(self._query)
        said = upstream.headers(self._headers).items()
        headers = [(b"host", host), *((name.encode(), text.encode()) for name, text in said)]
        line = await self._fresh()
        try:
            await line.post(url, headers, content, upstream.quiet_s(streamed=self._streamed))
            del content  # replies take minutes, and prompts are large
            return await self._read(line)
        finally:
            with anyio.move_on_after(_CLOSING_S, shield=True):
                await line.aclose()

    def _written(self, request: Request) -> bytes:
        """Return the body for ``request``, the one that was made ready or a new one; it is kept no longer."""
        body, self._body = self._body, None
        return body[1] if body is not None and body[0] == request else self._write(request)

    async def _fresh(self) -> Line:
        """Return a line that nothing was sent on: the one that was made ready, or a new one."""
        line, self._line = self._line, None
        if isinstance(line, ModelUnavailable):
            raise line
        if line is not None and not line.fresh:
            self._line = line
            await self.aclose()
            line = None
        return line or await self._upstream.ready()

    async def _read(self, line: Line) -> Reply:
        serving = self._upstream.serving
        name = line.headers.get(serving.request_id, "")
        kind = line.headers.get("content-type", "").partition(";")[0].strip().lower()
        streamed = kind == _EVENTS
        head = {"content-type": line.headers.get("content-type", "")}
        head |= {serving.request_id: name} if name else {}
        async with aclosing(line.chunks()) as chunks:
            if not _OK <= line.status < _REDIRECT:
                raise self._refusal(line, await _whole(chunks, _REFUSAL_BYTES))
            if not streamed and kind != _WHOLE:
                said = one_line((await _whole(chunks, _SAID_BYTES)).decode("utf-8", "replace"))
                raise MalformedReply(f"not a reply but {kind or 'nothing known'}: {said}")
            tap = serving.tap(streamed=streamed, request_id=name)
            if streamed:
                await self._stream(chunks, tap, head)
                tapped = tap.tapped()
            else:
                body = await _whole(chunks, MOST_BYTES)
                tap.feed(body)
                tapped = tap.tapped()
                if tapped.reply is not None:
                    await self._outlet.respond(line.status, head, body)
        if tapped.reply is None:
            raise tapped.error or MalformedReply("no reply")
        self._outlet.close()
        return tapped.reply

    async def _stream(self, chunks: AsyncGenerator[bytes, None], tap: Tap, head: Mapping[str, str]) -> None:
        """Pass a stream on; its beginning is held back until the first event shows that there is a reply."""
        held = bytearray()
        async for chunk in chunks:
            tap.feed(chunk)
            piece = chunk
            if not self._outlet.begun.is_set():
                held += chunk
                if tap.ended and (error := tap.tapped().error) is not None:
                    raise error
                if not _BLANK.search(held):
                    continue
                self._outlet.begin(200, head)
                piece = bytes(held)
                del self._write  # it holds the prompt, and what has begun is never sent again
            await self._outlet.write(piece)
            if tap.ended:
                self.told = True
                # The end goes out before it is looked into.
                await anyio.lowlevel.cancel_shielded_checkpoint()
                await self._rest(chunks)
                return

    async def _rest(self, chunks: AsyncGenerator[bytes, None]) -> None:
        """Pass on what follows a whole reply, an end of the body as a rule."""
        with suppress(ModelError), anyio.move_on_after(_REST_S, shield=True):
            async for chunk in chunks:
                await self._outlet.write(chunk)

    def _refusal(self, line: Line, body: bytes) -> ModelError:
        text = body.decode("utf-8", "replace")
        said: Any = text
        with suppress(MalformedReply):
            said = read_json(text)
        error = self._upstream.serving.error_from(line.status, said, line.headers)
        kind = line.headers.get("content-type", "application/json")
        setattr(error, REFUSED, (line.status, kind, without(self._upstream.secret, text).encode()))
        return error


async def _whole(chunks: AsyncGenerator[bytes, None], most_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > most_bytes:
            if most_bytes == MOST_BYTES:
                raise MalformedReply("the reply does not come to an end; it was not read further")
            break
    return bytes(body[:most_bytes])

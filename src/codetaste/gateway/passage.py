"""One request of a program as a model: it goes to the provider as it is, and what comes back to the program.

Only what decides the money is ours: the name of the model, the cap on the reply, and that a stream tells its
usage. What comes is passed on byte for byte as it comes, and read on the side.
"""

from __future__ import annotations

import json
import re
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.errors import MalformedReply, ModelError, ModelUnavailable
from codetaste.llm.connection import lost, named
from codetaste.llm.wire.http import one_line, read_json, without
from codetaste.llm.wire.sse import MOST_BYTES
from codetaste.orchestration.retry import give_up

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from httpx2 import Response

    from codetaste.gateway.outlet import Outlet
    from codetaste.gateway.upstream import Upstream
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.wire.tap import Tap

_CLOSING_S = 5.0
_REST_S = 0.25
"""How long the end of a body is waited for once the reply is whole."""
_SAID_BYTES = 4096
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
        write: Callable[[Request], Mapping[str, Any]],
        *,
        headers: Mapping[str, str],
        query: str,
        streamed: bool,
        outlet: Outlet,
    ) -> None:
        self.id = model_id
        self._upstream, self._write, self._outlet = upstream, write, outlet
        self._url, self._headers = upstream.url(query), upstream.headers(headers)
        self._streamed = streamed
        self.told = False
        """Whether the program has the provider's own end of the stream, whatever that was."""

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - no protocol has a name for it
        """Send the program's request once, and pass on what comes.

        Raises:
            ModelError: there is no reply; one that had begun cannot be tried again.
        """
        text = json.dumps(self._write(request), ensure_ascii=False, separators=(",", ":"))
        timeout_s = self._upstream.timeout_s
        try:
            with anyio.move_on_after(timeout_s):
                return await self._ask(text.encode("utf-8", "replace"))
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
        """Nothing of its own is open."""

    async def _ask(self, content: bytes) -> Reply:
        import httpx2  # noqa: PLC0415 - heavy

        client = self._upstream.client
        quiet = self._upstream.quiet(streamed=self._streamed)
        request = client.build_request(
            "POST", self._url, content=content, headers=self._headers, timeout=quiet
        )
        try:
            response = await client.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise lost(error) from error
        try:
            return await self._read(response)
        except httpx2.TimeoutException as error:
            raise ModelUnavailable("the provider fell silent in the middle of the reply") from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise ModelUnavailable(
                f"the connection was lost in the middle of the reply ({named(error)})"
            ) from error
        finally:
            with anyio.move_on_after(_CLOSING_S, shield=True):
                await response.aclose()

    async def _read(self, response: Response) -> Reply:
        serving = self._upstream.serving
        name = response.headers.get(serving.request_id, "")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not response.is_success:
            raise self._refusal(response.status_code, await response.aread(), response.headers)
        streamed = kind == _EVENTS
        head = {"content-type": response.headers.get("content-type", "")}
        head |= {serving.request_id: name} if name else {}
        async with aclosing(response.aiter_bytes()) as chunks:
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
                    await self._outlet.respond(response.status_code, head, body)
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
            await self._outlet.write(piece)
            if tap.ended:
                self.told = True
                await self._rest(chunks)
                return

    async def _rest(self, chunks: AsyncGenerator[bytes, None]) -> None:
        """Pass on what follows a whole reply, an end of the body as a rule."""
        import httpx2  # noqa: PLC0415 - heavy

        with suppress(httpx2.HTTPError, httpx2.StreamError), anyio.move_on_after(_REST_S, shield=True):
            async for chunk in chunks:
                await self._outlet.write(chunk)

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> ModelError:
        text = body.decode("utf-8", "replace")
        said: Any = text
        with suppress(MalformedReply):
            said = read_json(text)
        lower = {name.lower(): value for name, value in headers.items()}
        error = self._upstream.serving.error_from(status, said, lower)
        kind = lower.get("content-type", "application/json")
        setattr(error, REFUSED, (status, kind, without(self._upstream.secret, text).encode()))
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

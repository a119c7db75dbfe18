"""One call to a provider, whatever its protocol: bytes that we wrote go out, a reply comes in.

It stands on the provider's official client (``client.py`` says how one is made). What a protocol says is in
``wire/``.
"""

from __future__ import annotations

import json
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from codetaste.errors import MalformedReply, ModelError, ModelUnavailable
from codetaste.llm.wire.http import one_line, read_json, without
from codetaste.llm.wire.sse import MOST_BYTES, Events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from httpx2 import Response

    from codetaste.llm.messages import Reply

_CLOSING_S = 5.0
_REST_S = 0.25
"""How long the end of a body is waited for once the reply is whole, so that its connection can be kept."""
_SAID_BYTES = 4096


class Assembly(Protocol):
    """A streamed reply in the making."""

    @property
    def complete(self) -> bool:
        """Whether the reply has come to its end."""
        ...

    def feed(self, data: str) -> None:
        """Take the data of one event."""
        ...

    def reply(self) -> Reply:
        """Return the whole reply, or raise what is wrong with it."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """How the answer to one request is understood.

    Args:
        assembly: makes, from the provider's name for the request, what puts a stream together.
        whole: reads an answer that came in one piece, parsed, with the provider's name for the request.
        refusal: turns a status that is no success, its parsed body and its headers into an error.
        request_id: the header with the provider's name for the request.
    """

    assembly: Callable[[str], Assembly]
    whole: Callable[[Any, str], Reply]
    refusal: Callable[[int, Any, Mapping[str, str]], ModelError]
    request_id: str


class OfficialClient(Protocol):
    """What the official clients have in common."""

    @property
    def post(self) -> Callable[..., Awaitable[Any]]:
        """Send a request."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class Connection:
    """An official client, bounded in time.

    Args:
        client: takes nothing from the environment and retries nothing.
        stream_class: the client's own class for a stream.
        headers: of every request, beside the client's own.
        secret: the API key, which must not stand in a message.
        timeout_s: what one call may take in all.
    """

    def __init__(
        self,
        client: OfficialClient,
        stream_class: type[Any],
        *,
        headers: Mapping[str, Any] | None = None,
        secret: str,
        timeout_s: float,
    ) -> None:
        self._client, self._stream_class = client, stream_class
        self._headers = {"content-type": "application/json", **(headers or {})}
        self._secret, self._timeout_s = secret, timeout_s

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        answer: Answer,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Post ``body`` once and read the reply to its end.

        Raises:
            ModelError: see the tree; ``unbilled`` where the provider certainly did not begin a reply.
        """
        # Written here and not by the client: what is priced is what is sent, and raw blocks stay as they are.
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        with anyio.move_on_after(self._timeout_s) as scope:
            try:
                return await self._ask(path, text.encode("utf-8", "replace"), answer, headers or {})
            except ModelError as error:
                # Whatever is wrong with an answer, what is said of it may repeat what was sent.
                error.args = (without(self._secret, str(error)),)
                raise
        if scope.cancelled_caught:
            raise ModelUnavailable(f"no whole reply within {self._timeout_s:g} s")
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _ask(self, path: str, content: bytes, answer: Answer, headers: Mapping[str, str]) -> Reply:
        import httpx2  # noqa: PLC0415 - heavy

        try:
            stream = await self._client.post(
                path,
                cast_to=object,
                content=content,
                options={"headers": {**self._headers, **headers}},
                stream=True,
                stream_cls=self._stream_class,
            )
        except Exception as error:
            # The clients' errors have no common class, but they carry the same things.
            if isinstance(response := getattr(error, "response", None), httpx2.Response):
                raise self._refusal(response, answer) from None
            if hasattr(error, "request"):
                raise lost(error.__cause__ or error) from error
            raise
        try:
            return await self._read(stream.response, answer)
        finally:
            with anyio.move_on_after(_CLOSING_S, shield=True):
                await stream.close()

    async def _read(self, response: Response, answer: Answer) -> Reply:
        """Read a response that is a success, an event stream or one whole message."""
        import httpx2  # noqa: PLC0415 - heavy

        name = response.headers.get(answer.request_id, "")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            async with aclosing(_as_generator(response.aiter_bytes())) as chunks:
                if kind == "text/event-stream":
                    return await _read_stream(chunks, answer.assembly(name))
                wanted = kind == "application/json"
                body = await _read_whole(chunks, most_bytes=MOST_BYTES if wanted else _SAID_BYTES)
        except httpx2.TimeoutException as error:
            raise ModelUnavailable("the provider fell silent in the middle of the reply") from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise ModelUnavailable(
                f"the connection was lost in the middle of the reply ({named(error)})"
            ) from error
        if not wanted:
            said = one_line(body.decode("utf-8", "replace"))
            raise MalformedReply(f"not a reply but {kind or 'nothing known'}: {said}")
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            raise MalformedReply("the reply is not UTF-8") from error
        return answer.whole(read_json(text), name)

    def _refusal(self, response: Response, answer: Answer) -> ModelError:
        headers = {name.lower(): value for name, value in response.headers.items()}
        text = response.content.decode("utf-8", "replace")
        try:
            body = read_json(text)
        except MalformedReply:
            body = text
        return answer.refusal(response.status_code, body, headers)


async def _read_stream(chunks: AsyncGenerator[bytes, None], assembly: Assembly) -> Reply:
    events = Events()
    async for chunk in chunks:
        for data in events.feed(chunk):
            assembly.feed(data)
            if assembly.complete:
                reply = assembly.reply()
                await _read_rest(chunks)
                return reply
    return assembly.reply()


async def _read_rest(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read what follows a whole reply, an end of the body as a rule; whatever it is, the reply counts."""
    import httpx2  # noqa: PLC0415 - heavy

    with suppress(httpx2.HTTPError, httpx2.StreamError), anyio.move_on_after(_REST_S, shield=True):
        async for _ in chunks:
            pass


async def _read_whole(chunks: AsyncGenerator[bytes, None], *, most_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > most_bytes:
            if most_bytes == MOST_BYTES:
                raise MalformedReply("the reply does not come to an end; it was not read further")
            break
    return bytes(body[:most_bytes])


def _as_generator(chunks: Any) -> AsyncGenerator[bytes, None]:  # noqa: ANN401 - it is typed as an iterator
    generator: AsyncGenerator[bytes, None] = chunks
    return generator


def lost(cause: BaseException) -> ModelUnavailable:
    """Return the error for a request without a response; unbilled when it was certainly never sent."""
    import httpx2  # noqa: PLC0415 - heavy

    unsent = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
    what = "cannot be reached" if unsent else "was lost before it answered"
    return ModelUnavailable(f"the provider {what} ({named(cause)})", unbilled=unsent)


def named(error: BaseException) -> str:
    """Return the name of an error with its message, in one line."""
    said = one_line(str(error))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__

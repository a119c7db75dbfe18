"""A ``Model`` that forwards one client request to the provider and the provider's response to the client.

Only the fields that decide the cost are set: the model's name, the cap on the reply, and the request for
usage in a stream. The response is forwarded byte for byte as it arrives, and parsed on the side.
"""

from __future__ import annotations

import re
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from codetaste.core.text import one_line
from codetaste.errors import MalformedReply, ModelError, ModelUnavailable
from codetaste.gateway.prompt.parts import PartKind, to_json
from codetaste.llm.providers.remote import read_body
from codetaste.llm.providers.retirement import explain_refusal
from codetaste.llm.providers.sdk_client import MAX_ERROR_BYTES
from codetaste.llm.wire.codecs import CLIENTS
from codetaste.llm.wire.common.http import read_json, redact
from codetaste.llm.wire.common.sse import MAX_REPLY_BYTES
from codetaste.llm.wire.protocols import PROTOCOLS
from codetaste.llm.wire.usage_tap import UsageTap
from codetaste.orchestration.retry import mark_given_up

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from codetaste.gateway.connection import ProviderResponse
    from codetaste.gateway.prompt.parts import PromptPart
    from codetaste.gateway.request import GatewayRequest
    from codetaste.gateway.response import ResponseStream
    from codetaste.gateway.upstream import Upstream
    from codetaste.llm.messages import Reply, Request

_CLOSE_TIMEOUT_S = 5.0
_TRAILING_TIMEOUT_S = 0.25
"""Maximum wait for the end of a body after a complete reply."""
_MAX_SHOWN_BYTES = 4096
_OK, _REDIRECT = 200, 300
_EVENT_STREAM, _JSON_BODY = "text/event-stream", "application/json"
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
"""The end of an event."""
PROVIDER_ERROR = "_codetaste_provider_error"
"""Attribute of an error with the provider's own error response, to be forwarded."""


class ForwardedCall:
    """One request forwarded to ``upstream``, and its response to ``output``; a failed one may be sent again.

    Args:
        client_request: the client's request.
        upstream: the provider.
        encode: returns the body to be sent for a request.
        output: the response to the client.
    """

    has_ledger = False

    def __init__(
        self,
        client_request: GatewayRequest,
        upstream: Upstream,
        encode: Callable[[Request], bytes],
        output: ResponseStream,
    ) -> None:
        self.id, self._streamed = client_request.model.id, client_request.wire.stream
        self._headers, self._query = client_request.headers, client_request.query
        self._upstream, self._encode, self._output = upstream, encode, output
        self.end_delivered = False
        """Whether the client has received the provider's own end of the stream."""

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - no protocol has a field for it
        """Send the client's request once, and forward the response.

        Raises:
            ModelError: there is no reply; a reply that had begun cannot be retried.
        """
        timeout_s = self._upstream.timeout_s
        try:
            with anyio.move_on_after(timeout_s):
                response = await self._upstream.post(
                    self._encode(request), headers=self._headers, query=self._query, streamed=self._streamed
                )
                try:
                    return await self._read(response)
                finally:
                    with anyio.move_on_after(_CLOSE_TIMEOUT_S, shield=True):
                        await response.aclose()
            raise ModelUnavailable(f"no complete reply within {timeout_s:g} s")
        except ModelError as error:
            error.args = (redact(self._upstream.api_key, str(error)),)
            if self._output.started.is_set() or self._output.abandoned:
                mark_given_up(error)
            raise

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider has no ledger
        """Return None: the provider has no ledger."""
        return None

    async def aclose(self) -> None:
        """Do nothing: the connections belong to the upstream."""

    async def _read(self, response: ProviderResponse) -> Reply:
        protocol = self._upstream.protocol
        name = response.headers.get(protocol.request_id_header, "")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        streamed = kind == _EVENT_STREAM
        head = {"content-type": response.headers.get("content-type", "")}
        head |= {protocol.request_id_header: name} if name else {}
        async with aclosing(response.chunks()) as chunks:
            if not _OK <= response.status < _REDIRECT:
                raise self._provider_error(response, await read_body(chunks, MAX_ERROR_BYTES))
            if not streamed and kind != _JSON_BODY:
                shown = one_line((await read_body(chunks, _MAX_SHOWN_BYTES)).decode("utf-8", "replace"))
                raise MalformedReply(f"expected a reply, got content of type {kind or 'unknown'}: {shown}")
            tap = UsageTap(protocol.name, streamed=streamed, request_id=name)
            try:
                reply = await self._tapped_reply(response, chunks, tap, head)
            except ModelError as error:
                error.usage = tap.result().usage
                raise
        self._output.close()
        return reply

    async def _tapped_reply(
        self,
        response: ProviderResponse,
        chunks: AsyncGenerator[bytes, None],
        tap: UsageTap,
        head: Mapping[str, str],
    ) -> Reply:
        """Forward the response; return its reply.

        Raises:
            ModelError: there is none.
        """
        if tap.streamed:
            await self._stream(chunks, tap, head)
            tapped = tap.result()
        else:
            body = await read_body(chunks, MAX_REPLY_BYTES)
            tap.feed(body)
            tapped = tap.result()
            if tapped.reply is not None:
                await self._output.respond(response.status, head, body)
        if tapped.reply is None:
            raise tapped.error or MalformedReply("no reply")
        return tapped.reply

    async def _stream(
        self, chunks: AsyncGenerator[bytes, None], tap: UsageTap, head: Mapping[str, str]
    ) -> None:
        """Forward a stream; its beginning is buffered until the first event shows that there is a reply."""
        buffer = bytearray()
        async for chunk in chunks:
            tap.feed(chunk)
            piece = chunk
            if not self._output.started.is_set():
                buffer += chunk
                if tap.complete and (error := tap.result().error) is not None:
                    raise error
                if not _EVENT_END.search(buffer):
                    continue
                self._output.start(200, head)
                piece = bytes(buffer)
                del self._encode  # frees the encoded prompt; a reply that has begun is never requested again
            await self._output.write(piece)
            if tap.complete:
                self.end_delivered = True
                # The end is sent to the client before it is parsed.
                await anyio.lowlevel.cancel_shielded_checkpoint()
                with suppress(ModelError), anyio.move_on_after(_TRAILING_TIMEOUT_S, shield=True):
                    async for trailing in chunks:
                        await self._output.write(trailing)
                return

    def _provider_error(self, response: ProviderResponse, body: bytes) -> ModelError:
        text = body.decode("utf-8", "replace")
        content: Any = text
        with suppress(MalformedReply):
            content = read_json(text)
        error = CLIENTS[self._upstream.protocol.name].error_from(response.status, content, response.headers)
        kind = response.headers.get("content-type", "application/json")
        error = explain_refusal(error, self._upstream.model)
        setattr(error, PROVIDER_ERROR, (response.status, kind, redact(self._upstream.api_key, text).encode()))
        return error


def encode_body(
    protocol: str, received: Mapping[str, Any], parts: Sequence[PromptPart], sent: Mapping[str, Any]
) -> bytes:
    """Encode the body to be sent, from the JSON of the parts where they are unchanged.

    Args:
        protocol: of both bodies.
        received: the body from which ``parts`` were made.
        parts: all of its parts, in order.
        sent: the same body with the changed options.
    """
    kinds = {
        PROTOCOLS[protocol].system_key: PartKind.SYSTEM,
        PROTOCOLS[protocol].messages_key: PartKind.MESSAGE,
        "tools": PartKind.TOOL,
    }
    pieces = [b"{"]
    for name, value in sent.items():
        kind = kinds.get(name)
        pieces.append(f"{to_json(name)}:".encode("utf-8", "replace"))
        if kind is None or value is None or value is not received.get(name):
            pieces.append(to_json(value).encode("utf-8", "replace"))
        else:
            listed = [piece for part in parts if part.kind is kind for piece in (part.data, b",")][:-1]
            pieces.extend([b"[", *listed, b"]"] if isinstance(value, list) else listed)
        pieces.append(b",")
    pieces[-1] = b"}"
    return b"".join(pieces)

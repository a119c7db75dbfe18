"""A ``Model`` that forwards one client request to the provider and the provider's response to the client.

Only the fields that decide the cost are set: the model's name, the cap on the reply, and the request for
usage in a stream. The response is forwarded byte for byte as it arrives, and parsed on the side.
"""

from __future__ import annotations

import math
import re
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from codetaste.errors import MalformedReply, ModelError, ModelUnavailable
from codetaste.gateway.prompt.parts import PartKind, to_json
from codetaste.llm.providers.remote import read_body
from codetaste.llm.providers.retirement import explain_refusal
from codetaste.llm.providers.sdk_client import MAX_ERROR_BYTES
from codetaste.llm.wire.codecs import CLIENTS
from codetaste.llm.wire.common.http import read_json, redact
from codetaste.llm.wire.common.sse import EVENT_STREAM, JSON_BODY, format_event
from codetaste.llm.wire.protocols import ANTHROPIC, OPENAI_CHAT, PROTOCOLS
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
_OK, _REDIRECT = 200, 300
_LAST_EVENTS = {
    ANTHROPIC.name: format_event({"type": "message_stop"}, name="message_stop"),
    OPENAI_CHAT.name: b"data: [DONE]\n\n",
}
"""Sent to the client where the provider left them out."""
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
        self.id = client_request.model.id
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
                    self._encode(request), headers=self._headers, query=self._query
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
        name, kind = (response.headers.get(each, "") for each in (protocol.request_id_header, "content-type"))
        head = {protocol.request_id_header: name} if name else {}
        tap = UsageTap(protocol.name, content_type=kind, request_id=name)
        async with aclosing(response.chunks()) as chunks:
            if not _OK <= response.status < _REDIRECT:
                raise self._provider_error(response, await read_body(chunks, MAX_ERROR_BYTES))
            try:
                await self._forward(chunks, tap, head | {"content-type": EVENT_STREAM})
            except ModelError as error:
                # Whatever follows a whole reply, the reply is valid.
                if tap.patience_s == math.inf:
                    error.usage = tap.result().usage
                    raise
        tapped = tap.result()
        if tapped.reply is None:
            missing = tapped.error or MalformedReply("no reply")
            missing.usage = tapped.usage
            raise missing
        if tap.form == "json":
            head |= {"content-type": JSON_BODY}
            await self._output.respond(response.status, head, bytes(tap.body))
        elif not self.end_delivered:
            await self._output.write(_LAST_EVENTS.get(protocol.name, b""))
        self._output.close()
        return tapped.reply

    async def _forward(
        self, chunks: AsyncGenerator[bytes, None], tap: UsageTap, head: Mapping[str, str]
    ) -> None:
        """Forward a stream; its beginning is buffered until the first event shows that there is a reply."""
        buffer, deadline = bytearray(), math.inf
        while True:
            chunk = None
            with anyio.CancelScope(deadline=deadline, shield=tap.complete):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            tap.feed(chunk)
            if tap.form in {None, "stream"}:
                buffer += chunk
            if not self._output.started.is_set() and tap.form == "stream" and _EVENT_END.search(buffer):
                if tap.complete and tap.result().error is not None:
                    return
                self._output.start(200, head)
                del self._encode  # frees the encoded prompt; a reply that has begun is never requested again
            if self._output.started.is_set():
                await self._output.write(bytes(buffer))
                buffer.clear()
            if tap.complete and not self.end_delivered:
                self.end_delivered = True
                # The end is sent to the client before it is parsed.
                await anyio.lowlevel.cancel_shielded_checkpoint()
            deadline = min(deadline, anyio.current_time() + tap.patience_s)

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

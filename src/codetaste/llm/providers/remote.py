"""``RemoteModel``: a model behind its provider's official SDK client, the same for all protocols.

``providers/sdk_client.py`` configures the client; ``wire/`` encodes requests and decodes replies.
"""

from __future__ import annotations

import json
import math
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import httpx2

from codetaste.core.text import one_line
from codetaste.errors import MalformedReply, ModelError, ModelUnavailable
from codetaste.llm.providers.retirement import explain_refusal
from codetaste.llm.providers.sdk_client import anthropic_client, api_key_for, openai_client
from codetaste.llm.wire.codecs import CLIENTS
from codetaste.llm.wire.common.http import read_json, redact
from codetaste.llm.wire.common.tool_calls import call_ids
from codetaste.llm.wire.usage_tap import UsageTap

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Mapping

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.wire.protocols import WireProtocol

_CLOSING_S = 5.0
_LOST = (httpx2.HTTPError, httpx2.StreamError)
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class RemoteModel:
    """A model behind HTTP, with the codec of its protocol; its API key is held in memory only.

    Args:
        protocol: of the provider.
        config: the model's entry of ``[[models]]``.

    Raises:
        ConfigError: the key is not set.
    """

    has_ledger = False

    def __init__(self, protocol: WireProtocol, config: ModelConfig) -> None:
        self.id, self._model, self._timeout_s = config.id, config.model, config.timeout
        self._protocol, self._codec = protocol, CLIENTS[protocol.name]
        self._options, self._caps = protocol.options_at(config.address), protocol.caps_at(config.address)
        self._where = f"{config.model} at {_host(config.address)}"
        self._api_key = api_key_for(config)
        make_client = anthropic_client if protocol.name == "anthropic" else openai_client
        self._sdk = make_client(self._api_key, config.address, config.timeout, config.read_timeout)

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - no protocol has a field for it
        """Send the request once and read the complete reply.

        Raises:
            ModelError: see ``errors``; ``unbilled`` if the provider certainly did not begin a reply.
        """
        body = {**self._options, **self._codec.request_body(request, self._model, self._caps)}
        # Encoded here and not by the SDK: exactly what was priced is sent, with raw blocks unchanged.
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        headers = self._codec.request_headers(request)
        taps: list[UsageTap] = []
        try:
            with anyio.move_on_after(self._timeout_s):
                return await self._send(text.encode("utf-8", "replace"), headers, call_ids(request), taps)
            raise ModelUnavailable(f"no complete reply within {self._timeout_s:g} s")
        except ModelError as error:
            # The error message may quote parts of the request.
            error.args = (f"{self._where}: {redact(self._api_key, str(error))}",)
            error.usage = taps[0].result().usage if taps else None
            raise

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider has no record
        """Return None: the provider has no record of earlier calls."""
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._sdk.client.close()

    async def _send(
        self, content: bytes, headers: Mapping[str, str], taken: Collection[str], taps: list[UsageTap]
    ) -> Reply:
        try:
            stream = await self._sdk.client.post(
                self._protocol.path,
                cast_to=object,
                content=content,
                options={"headers": {"content-type": "application/json", **self._sdk.headers, **headers}},
                stream=True,
                stream_cls=self._sdk.stream_class,
            )
        except Exception as error:
            # The errors of the SDKs have no common class, but the same attributes.
            if isinstance(response := getattr(error, "response", None), httpx2.Response):
                raise self._refusal(response) from None
            if hasattr(error, "request"):
                cause = error.__cause__ or error
                raise connection_error(cause, unsent=isinstance(cause, _UNSENT)) from error
            raise
        try:
            return await self._read(stream.response, taken, taps)
        finally:
            with anyio.move_on_after(_CLOSING_S, shield=True):
                await stream.close()

    async def _read(self, response: httpx2.Response, taken: Collection[str], taps: list[UsageTap]) -> Reply:
        """Read a successful response: an event stream or one JSON message."""
        name, kind = (
            response.headers.get(each, "") for each in (self._protocol.request_id_header, "content-type")
        )
        tap = UsageTap(self._protocol.name, content_type=kind, request_id=name, taken=taken)
        taps.append(tap)
        try:
            with anyio.CancelScope() as scope:
                async with aclosing(response.aiter_bytes()) as chunks:
                    async for chunk in chunks:
                        tap.feed(chunk)
                        scope.deadline = min(scope.deadline, anyio.current_time() + tap.patience_s)
                        scope.shield = tap.complete
        except _LOST as error:
            # Whatever follows a whole reply, the reply is valid.
            if tap.patience_s == math.inf:
                what = f"the connection was lost in the middle of the reply ({describe_exception(error)})"
                if isinstance(error, httpx2.TimeoutException):
                    what = "the provider stopped sending in the middle of the reply"
                raise ModelUnavailable(what) from error
        result = tap.result()
        if result.reply is None:
            raise result.error or MalformedReply("no reply")
        return result.reply

    def _refusal(self, response: httpx2.Response) -> ModelError:
        headers = {name.lower(): value for name, value in response.headers.items()}
        text = response.content.decode("utf-8", "replace")
        try:
            body = read_json(text)
        except MalformedReply:
            body = text
        return explain_refusal(self._codec.error_from(response.status_code, body, headers), self._model)


def _host(address: str) -> str:
    """Return host and port of an address, without what it may have of a user's name and password."""
    return urlsplit(address).netloc.rpartition("@")[2]


async def read_body(chunks: AsyncGenerator[bytes, None], max_bytes: int) -> bytes:
    """Return a body, cut after ``max_bytes``."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            break
    return bytes(body[:max_bytes])


def connection_error(cause: BaseException, *, unsent: bool) -> ModelUnavailable:
    """Return the error for a request without a response; unbilled if it was certainly never sent."""
    what = "cannot be reached" if unsent else "was lost before it answered"
    return ModelUnavailable(f"the provider {what} ({describe_exception(cause)})", unbilled=unsent)


def describe_exception(error: BaseException) -> str:
    """Return the class name of an exception and its message, in one line."""
    message = one_line(str(error))
    return f"{type(error).__name__}: {message}" if message else type(error).__name__

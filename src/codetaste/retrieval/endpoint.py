"""A provider's ``/embeddings`` and ``/rerank`` as a ``Model``, so that its calls are paid like any other.

A request has one message whose text blocks are the input: the texts, or the query and then the documents. A
reply is a JSON list: a vector for each text, or a score for each document. Scripted models reply the same.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import anyio
import httpx2
import numpy as np

from codetaste.errors import MalformedReply, ModelError, ModelUnavailable
from codetaste.llm.messages import Message, Reply, StopReason, TextBlock, Usage
from codetaste.llm.providers.remote import connection_error, describe_exception, read_body
from codetaste.llm.providers.sdk_client import CONNECT_TIMEOUT_S, api_key_for, http_client
from codetaste.llm.wire.codecs import CLIENTS
from codetaste.llm.wire.common.http import read_json, redact
from codetaste.llm.wire.common.sse import MAX_REPLY_BYTES
from codetaste.orchestration.retry import mark_given_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Request
    from codetaste.llm.wire.protocols import WireProtocol

EndpointKind = Literal["embeddings", "rerank"]
_VECTORS = 2
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class EndpointModel:
    """An endpoint at the address of a ``[[models]]`` entry; makes one attempt for each call.

    Raises:
        ConfigError: the key is not set.
    """

    has_ledger = False

    def __init__(self, protocol: WireProtocol, config: ModelConfig, kind: EndpointKind) -> None:
        self.id, self._config, self._kind = config.id, config, kind
        self._codec, self._key = CLIENTS[protocol.name], api_key_for(config)
        read_s, connect_s = min(config.timeout, config.read_timeout), min(config.timeout, CONNECT_TIMEOUT_S)
        self._client = http_client(config.address, httpx2.Timeout(read_s, connect=connect_s))

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - no field for it
        """Send the request once and read the reply.

        Raises:
            ModelError: see ``errors``; ``unbilled`` if the provider certainly did not answer.
        """
        texts = [block.text for message in request.messages for block in _texts(message)]
        body = {**request.options, **_request_body(self._kind, self._config.model, texts)}
        try:
            with anyio.move_on_after(self._config.timeout):
                return await self._send(json.dumps(body).encode(), len(texts))
            raise ModelUnavailable(f"no complete reply within {self._config.timeout:g} s")
        except ModelError as error:
            where = f"{self._config.model}, /{self._kind}"
            error.args = (f"{where}: {redact(self._key, str(error))}",)
            raise

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider has no record
        """Return None: the provider has no record of earlier calls."""
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _send(self, content: bytes, count: int) -> Reply:
        headers = {"content-type": "application/json", **self._codec.key_headers(self._key)}
        address = f"{self._config.address.rstrip('/')}/{self._kind}"
        try:
            async with (
                self._client.stream("POST", address, content=content, headers=headers) as response,
                aclosing(response.aiter_bytes()) as chunks,
            ):
                text = (await read_body(chunks, MAX_REPLY_BYTES)).decode("utf-8", "replace")
        except _UNSENT as error:
            raise connection_error(error, unsent=True) from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise ModelUnavailable(f"the connection was lost ({describe_exception(error)})") from error
        if not response.is_success:
            sent = {name.lower(): value for name, value in response.headers.items()}
            raise self._codec.error_from(response.status_code, _json_or_text(text), sent)
        output = _read_reply(self._kind, read_json(text), count)
        message = Message("assistant", (TextBlock(json.dumps(output.values)),))
        name = response.headers.get("x-request-id", "")
        return Reply(message, StopReason.END, output.usage, output.model or self._config.model, name)


@dataclass(frozen=True, slots=True)
class _Output:
    values: list[Any]
    usage: Usage | None
    model: str


def _texts(message: Message) -> list[TextBlock]:
    return [block for block in message.content if isinstance(block, TextBlock)]


def _request_body(kind: EndpointKind, model: str, texts: Sequence[str]) -> dict[str, Any]:
    if kind == "embeddings":
        return {"model": model, "input": texts, "encoding_format": "float"}
    query, *documents = texts
    return {"model": model, "query": query, "documents": documents, "top_n": len(documents)}


def _read_reply(kind: EndpointKind, body: Any, count: int) -> _Output:  # noqa: ANN401 - JSON data
    try:
        if kind == "embeddings":
            values = _in_order(body["data"], "embedding", count)
            read_vectors(values, count)
        else:
            values = _in_order(body["results"], "relevance_score", count - 1)
            read_scores(values, count - 1)
        usage, name = _usage(body), body.get("model")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise MalformedReply(f"not the reply of /{kind}: {error!r}") from None
    return _Output(values, usage, name if isinstance(name, str) else "")


def read_vectors(values: str | Sequence[Any], count: int) -> NDArray[np.float32]:
    """Return ``count`` vectors, scaled to length 1, from lists of numbers or their JSON text.

    Raises:
        MalformedReply: it is something else.
    """
    vectors = _array(values)
    if vectors.ndim != _VECTORS or len(vectors) != count or not vectors.size:
        raise MalformedReply(f"vectors of the shape {vectors.shape} for {count} texts")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def read_scores(values: str | Sequence[Any], count: int) -> list[float]:
    """Return ``count`` scores from a list of numbers or its JSON text.

    Raises:
        MalformedReply: it is something else.
    """
    scores = _array(values)
    if scores.shape != (count,):
        raise MalformedReply(f"scores of the shape {scores.shape} for {count} documents")
    return [float(score) for score in scores]


def _array(values: str | Sequence[Any]) -> NDArray[np.float32]:
    try:
        array = np.asarray(json.loads(values) if isinstance(values, str) else values, np.float32)
    except (ValueError, TypeError, RecursionError) as error:
        raise MalformedReply(f"not a list of numbers: {error}") from None
    if not np.isfinite(array).all():
        raise MalformedReply("a number is not finite")
    return array


def _in_order(entries: Sequence[Mapping[str, Any]], key: str, count: int) -> list[Any]:
    """Return a value of each entry in the order of the entries' indices, which must be 0 to count - 1."""
    found = {entry["index"]: entry[key] for entry in entries}
    if len(entries) != count or found.keys() != set(range(count)):
        raise ValueError(f"{len(entries)} results for {count} texts")
    return [found[index] for index in range(count)]


def _usage(body: Mapping[str, Any]) -> Usage | None:
    """Return the reported tokens; none of a provider that bills searches; None if nothing is reported."""
    reported = body.get("usage") or {}
    tokens = reported.get("prompt_tokens") or reported.get("total_tokens")
    if tokens is not None:
        return Usage(input=tokens)
    units = ((body.get("meta") or {}).get("billed_units") or {}).get("search_units")
    if units is None:
        return None
    if units > 1:
        reason = f"it billed {units} search units for one request, and price.per_request is that of one"
        raise mark_given_up(MalformedReply(f"{reason}; use shorter examples, or fewer candidates"))
    return Usage()


def _json_or_text(text: str) -> object:
    try:
        return read_json(text)
    except MalformedReply:
        return text

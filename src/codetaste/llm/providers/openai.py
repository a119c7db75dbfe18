"""Provider "openai": the Responses API through the official SDK, always streamed, nothing stored there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codetaste.llm.providers.connection import Connection
from codetaste.llm.providers.remote import ClientCodec, RemoteModel
from codetaste.llm.providers.sdk_client import READ_TIMEOUT_S, http_client, read_timeout, without_env
from codetaste.llm.wire.common.openai import error_from
from codetaste.llm.wire.openai_chat.client import CAP_NAMES
from codetaste.llm.wire.openai_chat.client import request_body as chat_request_body
from codetaste.llm.wire.openai_chat.client import whole_reply as chat_whole_reply
from codetaste.llm.wire.openai_chat.stream import ChatStreamDecoder
from codetaste.llm.wire.openai_responses.client import request_body, whole_reply
from codetaste.llm.wire.openai_responses.stream import ResponsesStreamDecoder

if TYPE_CHECKING:
    from codetaste.llm.messages import Request


REQUEST_ID_HEADER = "x-request-id"

_HOST = "api.openai.com"


def openai_model(
    model_id: str,
    model: str,
    *,
    api_key: str,
    base_url: str,
    timeout_s: float = 1800.0,
    read_timeout_s: float = READ_TIMEOUT_S,
) -> RemoteModel:
    """Return a model behind the Responses API.

    Args:
        model_id: the model's id in the config.
        model: the provider's name for it.
        api_key: held in memory only; "" for a server that needs none.
        base_url: of the provider or a compatible server, usually ending in ``/v1``.
        timeout_s: time limit of one call.
        read_timeout_s: the longest time without any data from the provider.
    """
    standard = standard_options(base_url)

    def body(request: Request, name: str) -> dict[str, Any]:
        return {**standard, **request_body(request, name)}

    codec = ClientCodec(
        path="/responses",
        request_body=body,
        stream_decoder=ResponsesStreamDecoder,
        whole_reply=whole_reply,
        error_from=error_from,
        request_id_header=REQUEST_ID_HEADER,
    )
    return RemoteModel(
        model_id, model, codec, openai_connection(api_key, base_url, timeout_s, read_timeout_s)
    )


def standard_options(base_url: str) -> dict[str, str]:
    """Return the option that requests OpenAI's standard prices, unless the config's options override it.

    Without it, a setting of the OpenAI project could make all calls more expensive than the price table.
    """
    return {"service_tier": "default"} if urlsplit(base_url).hostname == _HOST else {}


def openai_connection(api_key: str, base_url: str, timeout_s: float, read_timeout_s: float) -> Connection:
    """Return a connection through the official SDK; without a key, no authorization header is sent.

    Args:
        api_key: the key, or "" for a server that needs none.
        base_url: the prefix of the protocol's paths.
        timeout_s: time limit of one call.
        read_timeout_s: the longest time without any data from the provider.
    """
    timeout = read_timeout(timeout_s, read_timeout_s)
    with without_env("OPENAI_"):
        from openai import AsyncOpenAI, AsyncStream, Omit  # noqa: PLC0415 - heavy

        client = AsyncOpenAI(
            api_key=api_key or "none",
            base_url=base_url,
            timeout=timeout,
            max_retries=0,
            http_client=http_client(base_url, timeout),
        )
    return Connection(
        client,
        AsyncStream[object],
        headers={} if api_key else {"Authorization": Omit()},
        secret=api_key,
        timeout_s=timeout_s,
    )


_NEW_CAP_ONLY = (".openai.com", ".azure.com")
"""Hosts that accept only the newer name of the cap, and refuse a request with both names."""


def openai_chat_model(
    model_id: str,
    model: str,
    *,
    api_key: str,
    base_url: str,
    timeout_s: float = 1800.0,
    read_timeout_s: float = READ_TIMEOUT_S,
) -> RemoteModel:
    """Return a model behind Chat Completions.

    Args:
        model_id: the model's id in the config.
        model: the provider's name for it.
        api_key: held in memory only; "" for a server that needs none.
        base_url: of a compatible server, usually ending in ``/v1``.
        timeout_s: time limit of one call.
        read_timeout_s: the longest time without any data from the provider.
    """
    caps = CAP_NAMES[1:] if (urlsplit(base_url).hostname or "").endswith(_NEW_CAP_ONLY) else CAP_NAMES
    standard = standard_options(base_url)

    def body(request: Request, name: str) -> dict[str, Any]:
        return {**standard, **chat_request_body(request, name, caps=caps)}

    codec = ClientCodec(
        path="/chat/completions",
        request_body=body,
        stream_decoder=ChatStreamDecoder,
        whole_reply=chat_whole_reply,
        error_from=error_from,
        request_id_header=REQUEST_ID_HEADER,
    )
    return RemoteModel(
        model_id, model, codec, openai_connection(api_key, base_url, timeout_s, read_timeout_s)
    )

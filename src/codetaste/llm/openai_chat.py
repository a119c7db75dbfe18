"""Provider "openai-chat": Chat Completions through the official SDK, for every compatible server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codetaste.llm.client import READ_TIMEOUT_S
from codetaste.llm.openai import REQUEST_ID_HEADER, openai_connection, standard_options
from codetaste.llm.remote import ClientCodec, RemoteModel
from codetaste.llm.wire.openai_chat import CAP_NAMES
from codetaste.llm.wire.openai_chat import request_body as chat_request_body
from codetaste.llm.wire.openai_chat import whole_reply as chat_whole_reply
from codetaste.llm.wire.openai_chat_stream import ChatStreamDecoder
from codetaste.llm.wire.openai_errors import error_from

if TYPE_CHECKING:
    from codetaste.llm.messages import Request

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

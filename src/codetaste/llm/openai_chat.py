"""Provider "openai-chat": Chat Completions through the official client, for all who speak them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codetaste.llm.client import SILENCE_S
from codetaste.llm.openai import REQUEST_ID, openai_connection, standard_options
from codetaste.llm.remote import Dialect, RemoteModel
from codetaste.llm.wire.openai_chat import CAPS, request_body, whole_reply
from codetaste.llm.wire.openai_chat_stream import Assembly
from codetaste.llm.wire.openai_errors import error_from

if TYPE_CHECKING:
    from codetaste.llm.messages import Request

_NEW_CAP_ONLY = (".openai.com", ".azure.com")
"""Hosts that take the newer name for the cap on a reply, and refuse both together."""


def openai_chat_model(
    model_id: str,
    model: str,
    *,
    api_key: str,
    base_url: str,
    timeout_s: float = 1800.0,
    silence_s: float = SILENCE_S,
) -> RemoteModel:
    """Return a model behind Chat Completions.

    Args:
        model_id: what the config calls this model.
        model: the provider's name for it.
        api_key: held in memory only; "" for a server that wants none.
        base_url: of anything that speaks the protocol, as a rule with ``/v1`` at its end.
        timeout_s: what one call may take in all.
        silence_s: how long the provider may say nothing at all.
    """
    caps = CAPS[1:] if (urlsplit(base_url).hostname or "").endswith(_NEW_CAP_ONLY) else CAPS
    standard = standard_options(base_url)

    def body(request: Request, name: str) -> dict[str, Any]:
        return {**standard, **request_body(request, name, caps=caps)}

    dialect = Dialect(
        path="/chat/completions",
        body=body,
        assembly=Assembly,
        whole=whole_reply,
        refusal=error_from,
        request_id=REQUEST_ID,
    )
    return RemoteModel(model_id, model, dialect, openai_connection(api_key, base_url, timeout_s, silence_s))

"""Provider "openai": the Responses API through the official client, always streamed, nothing kept there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codetaste.llm.client import SILENCE_S, hidden_environment, http_client, silence
from codetaste.llm.connection import Connection
from codetaste.llm.remote import Dialect, RemoteModel
from codetaste.llm.wire.openai_errors import error_from
from codetaste.llm.wire.openai_responses import request_body, whole_reply
from codetaste.llm.wire.openai_responses_stream import Assembly

if TYPE_CHECKING:
    from codetaste.llm.messages import Request

REQUEST_ID = "x-request-id"
_HOST = "api.openai.com"


def openai_model(
    model_id: str,
    model: str,
    *,
    api_key: str,
    base_url: str,
    timeout_s: float = 1800.0,
    silence_s: float = SILENCE_S,
) -> RemoteModel:
    """Return a model behind the Responses API.

    Args:
        model_id: what the config calls this model.
        model: the provider's name for it.
        api_key: held in memory only; "" for a server that wants none.
        base_url: of the provider, or of anything that speaks its protocol, as a rule with ``/v1`` at its end.
        timeout_s: what one call may take in all.
        silence_s: how long the provider may say nothing at all.
    """
    standard = standard_options(base_url)

    def body(request: Request, name: str) -> dict[str, Any]:
        return {**standard, **request_body(request, name)}

    dialect = Dialect(
        path="/responses",
        body=body,
        assembly=Assembly,
        whole=whole_reply,
        refusal=error_from,
        request_id=REQUEST_ID,
    )
    return RemoteModel(model_id, model, dialect, openai_connection(api_key, base_url, timeout_s, silence_s))


def standard_options(base_url: str) -> dict[str, str]:
    """Return what is asked of OpenAI itself unless the options say otherwise: its standard prices.

    Without it, the settings of a project may make all its calls dearer, and nobody here would know.
    """
    return {"service_tier": "default"} if urlsplit(base_url).hostname == _HOST else {}


def openai_connection(api_key: str, base_url: str, timeout_s: float, silence_s: float) -> Connection:
    """Connect through the official client; without a key, none is sent.

    Args:
        api_key: the key, or "" for a server that wants none.
        base_url: where the protocol's paths begin.
        timeout_s: what one call may take in all.
        silence_s: how long the provider may say nothing at all.
    """
    quiet = silence(timeout_s, silence_s)
    with hidden_environment("OPENAI_"):
        from openai import AsyncOpenAI, AsyncStream, Omit  # noqa: PLC0415 - heavy

        client = AsyncOpenAI(
            api_key=api_key or "none",
            base_url=base_url,
            timeout=quiet,
            max_retries=0,
            http_client=http_client(base_url, quiet),
        )
    return Connection(
        client,
        AsyncStream[object],
        headers={} if api_key else {"Authorization": Omit()},
        secret=api_key,
        timeout_s=timeout_s,
    )

"""Provider "anthropic": the Messages API through the official SDK, always streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.llm.providers.connection import Connection
from codetaste.llm.providers.remote import ClientCodec, RemoteModel
from codetaste.llm.providers.sdk_client import READ_TIMEOUT_S, http_client, read_timeout, without_env
from codetaste.llm.wire.anthropic.client import error_from, request_body, whole_reply
from codetaste.llm.wire.anthropic.stream import AnthropicStreamDecoder

if TYPE_CHECKING:
    from codetaste.llm.messages import Request


def anthropic_model(
    model_id: str,
    model: str,
    *,
    api_key: str,
    base_url: str,
    timeout_s: float = 1800.0,
    read_timeout_s: float = READ_TIMEOUT_S,
) -> RemoteModel:
    """Return a model behind the Messages API.

    Args:
        model_id: the model's id in the config.
        model: the provider's name for it.
        api_key: held in memory only.
        base_url: of the provider or a compatible server.
        timeout_s: time limit of one call.
        read_timeout_s: the longest time without any data from the provider.
    """
    timeout = read_timeout(timeout_s, read_timeout_s)
    with without_env("ANTHROPIC_"):
        from anthropic import AsyncAnthropic, AsyncStream  # noqa: PLC0415 - heavy

        client = AsyncAnthropic(
            api_key=api_key,
            base_url=base_url,
            webhook_key="",
            timeout=timeout,
            max_retries=0,
            open_telemetry=False,
            http_client=http_client(base_url, timeout),
        )
    codec = ClientCodec(
        path="/v1/messages",
        request_body=request_body,
        stream_decoder=AnthropicStreamDecoder,
        whole_reply=whole_reply,
        error_from=error_from,
        request_id_header="request-id",
        headers=_headers,
    )
    connection = Connection(client, AsyncStream[object], secret=api_key, timeout_s=timeout_s)
    return RemoteModel(model_id, model, codec, connection)


def _headers(request: Request) -> dict[str, str]:
    betas = request.options.get("betas")
    return {"anthropic-beta": ",".join(betas)} if betas else {}

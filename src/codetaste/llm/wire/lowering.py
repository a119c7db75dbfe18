"""The body of a forwarded request: the client's own, with the cap that the budget allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.llm.bound import lowered_thinking
from codetaste.llm.wire.openai_chat import CAP_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.llm.wire.request import WireRequest


def capped_body(
    wire: WireRequest, cap: int, *, model: str | None = None, caps: Sequence[str] = CAP_NAMES
) -> dict[str, Any]:
    """Return the body to forward: only the cap, the model and the flag for usage in a stream differ.

    Args:
        wire: the client's request.
        cap: the most tokens that the reply may have.
        model: the provider's name for the model; None leaves the client's.
        caps: the names of the cap for a Chat Completions server; both unless the right one is known, since
            a server ignores a name that it does not know.
    """
    body = {**wire.body, **({} if model is None else {"model": model})}
    match wire.protocol:
        case "anthropic":
            thinking = lowered_thinking(body.get("thinking"), cap)
            return body | {"max_tokens": cap} | ({} if thinking is None else {"thinking": thinking})
        case "openai":
            return {**body, "max_output_tokens": cap}
        case "openai-chat":
            body = {name: value for name, value in body.items() if name not in CAP_NAMES}
            if wire.stream:
                body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
            return {**body, **dict.fromkeys(caps, cap)}

"""A request as it is sent on to a provider: the program's own body, with what its money allows set in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.llm.bound import lowered_thinking
from codetaste.llm.wire.openai_chat import CAPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.llm.wire.request import WireRequest


def lowered(
    wire: WireRequest, cap: int, *, model: str | None = None, caps: Sequence[str] = CAPS
) -> dict[str, Any]:
    """Return the body to send, equal in all but its cap, its model, and that a stream tells its usage.

    Args:
        wire: what the program asked.
        cap: the most tokens that the reply may have.
        model: the provider's name for the model; None leaves the program's.
        caps: the names that a server of Chat Completions knows a cap by; unless it is known which one it is,
            both, as a name that it does not know is no cap at all.
    """
    body = {**wire.body, **({} if model is None else {"model": model})}
    match wire.protocol:
        case "anthropic":
            thinking = lowered_thinking(body.get("thinking"), cap)
            return body | {"max_tokens": cap} | ({} if thinking is None else {"thinking": thinking})
        case "openai":
            return {**body, "max_output_tokens": cap}
        case "openai-chat":
            body = {name: value for name, value in body.items() if name not in CAPS}
            if wire.stream:
                body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
            return {**body, **dict.fromkeys(caps, cap)}

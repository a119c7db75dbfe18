"""The most tokens that the prompt of a program's request can have, nearer with each answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.llm.prefix import Reported, believable

if TYPE_CHECKING:
    from codetaste.llm.messages import Usage
    from codetaste.llm.wire.request import WireRequest


class WireBound:
    """Bounds the prompts of one model by what its provider has counted for their beginnings.

    A prompt that was counted is the beginning of the next turn's; what came since then, the model's reply
    among it, is bounded by its bytes, since programs do not send a reply back as it was.
    """

    def __init__(self) -> None:
        self._reported = Reported()

    def tokens(self, wire: WireRequest) -> int:
        """Return a number of tokens that the prompt of ``wire`` cannot exceed."""
        return self._reported.tokens(wire.prefixes)

    def learn(self, wire: WireRequest, usage: Usage, cap: int) -> None:
        """Remember what the provider counted for ``wire``, whose reply was capped at ``cap`` tokens."""
        if believable(usage, self.tokens(wire), cap):
            self._reported.learn(wire.prefixes[-1].key, usage.prompt)

"""The allow list of each protocol in ``protocols.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.llm.wire.anthropic.allowed import ALLOWED as ALLOWED_MESSAGES
from codetaste.llm.wire.openai_chat.allowed import ALLOWED as ALLOWED_CHAT
from codetaste.llm.wire.openai_responses.allowed import ALLOWED as ALLOWED_RESPONSES
from codetaste.llm.wire.protocols import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES

if TYPE_CHECKING:
    from codetaste.llm.wire.common.allow_list import AllowList

ALLOW_LISTS: dict[str, AllowList] = {
    ANTHROPIC.name: ALLOWED_MESSAGES,
    OPENAI_RESPONSES.name: ALLOWED_RESPONSES,
    OPENAI_CHAT.name: ALLOWED_CHAT,
}
"""By the protocol's name."""

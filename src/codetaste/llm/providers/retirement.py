"""Models that their providers retire: requests to them fail from that day on.

The dates were announced by November 2026. Tests compare them with those that the installed SDKs of Anthropic
and OpenAI carry, and ``CURRENT`` with the price table and with every model that our examples and pages name.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from codetaste.errors import ModelSetupError

if TYPE_CHECKING:
    from codetaste.errors import ModelError

CURRENT = {
    "claude": "claude-sonnet-5-5, claude-opus-5-5, claude-haiku-5-5",
    "gemini": "gemini-3.8-flash, gemini-3.5-flash-lite",
    "gpt": "gpt-6.1-sol, gpt-6.1-terra, gpt-6-luna",
}
"""Models that serve today, by family: the only ones of these that examples and pages name."""

_RETIREMENTS = """\
2026-01-05 claude-3-opus
2026-02-12 codex-mini-latest
2026-02-17 chatgpt-4o-latest
2026-02-19 claude-3-7-sonnet claude-3-7-sonnet-latest claude-3-5-haiku claude-3-5-haiku-latest
2026-03-09 gemini-3-pro-preview
2026-03-26 gpt-4-0125-preview gpt-4-turbo-preview gpt-4-0314
2026-05-07 gpt-4o-audio-preview gpt-4o-mini-audio-preview
2026-06-01 gemini-2.0-flash gemini-2.0-flash-001 gemini-2.0-flash-lite gemini-2.0-flash-lite-001
2026-06-15 claude-opus-4 claude-opus-4-0 claude-sonnet-4 claude-sonnet-4-0
2026-06-30 claude-mythos-preview
2026-07-23 gpt-5.1-codex gpt-5.1-chat-latest gpt-5-chat-latest
2026-07-23 gpt-4o-search-preview gpt-4o-mini-search-preview
2026-08-05 claude-opus-4-1
2026-08-10 gpt-5.3-chat-latest gpt-5.2-chat-latest
2026-09-28 gpt-3.5-turbo-1106
2026-10-23 gpt-4.1-nano o4-mini o3-mini o1 o1-pro gpt-4o-2024-05-13 gpt-4-turbo gpt-4-1106-preview gpt-4
2026-10-23 gpt-4-0613 gpt-3.5-turbo gpt-3.5-turbo-0125
2026-11-30 claude-sonnet-4-5
2026-12-01 gemini-2.5-pro gemini-2.5-flash
2026-12-11 gpt-5 gpt-5-mini gpt-5-nano gpt-5-pro o3 o3-pro
2027-01-14 gpt-4.1 gpt-4.1-mini gpt-4o gpt-4o-mini
2027-01-20 gpt-audio-mini
2027-04-01 gpt-5.4-nano gpt-5.1
"""
"""Since 2026, by the packages anthropic and openai and the providers' pages on deprecations. A name stands
for its dated snapshots too."""

_DATES = {
    model.replace(".", "-"): date.fromisoformat(day)
    for day, *models in map(str.split, _RETIREMENTS.splitlines())
    for model in models
}
_SNAPSHOT = re.compile(r"[-@](?:\d{8}|\d{4}-\d\d-\d\d)$")
_NOTICE_DAYS = 60


def retirement_note(model: str, today: date | None = None) -> str:
    """Return that ``model`` is retired, or will be within 60 days, and what serves instead; "" if neither.

    A name may be that of a router, such as "anthropic/claude-sonnet-4.5".
    """
    today = today or datetime.now(UTC).date()
    name = model.lower().rpartition("/")[2].replace(".", "-")
    day = _DATES.get(name) or _DATES.get(_SNAPSHOT.sub("", name)) or date.max
    if (day - today).days > _NOTICE_DAYS:
        return ""
    current = CURRENT.get(name.partition("-")[0], CURRENT["gpt"])
    return f"{model} {'retired' if day <= today else 'will retire'} on {day}; current: {current}"


def explain_refusal(error: ModelError, model: str) -> ModelError:
    """Return the ``error`` for a response, with a note if the model is missing because it retired."""
    missing = isinstance(error, ModelSetupError) and error.setting == "model"
    if missing and (note := retirement_note(model)):
        error.args = (f"{error}; {note}",)
    return error

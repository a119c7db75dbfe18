"""HTTP facts shared by all protocols: errors by status code, Retry-After, strict JSON."""

from __future__ import annotations

import json
import math
import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.errors import (
    ConversationTooLong,
    MalformedReply,
    ModelRefused,
    ModelSetupError,
    ModelUnavailable,
    RateLimited,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from codetaste.errors import ModelError

_SHOWN_OF_KEY = 4
"""Characters of an API key that may be shown; they only tell its kind."""
_LONGEST_WAIT_S = 3600.0
_DEEPEST = 200
"""Nesting of a reply beyond which it could be parsed, but not recorded."""
_NESTED = (dict, list)
_LONG = 8192
_OVERLOADED = frozenset({503, 529})
_BEFORE_REPLY = frozenset({408, 409, 425, 500, 503, 529})
"""Statuses with which a provider itself ends a request; 502, 504 and others are a proxy's."""

_TOO_LARGE = 413
_TOO_LONG_STATUSES = frozenset({400, 422})
_TOO_LONG = re.compile(
    r"prompt is too long|input is too long|too large for model"
    r"|exceeds? (the )?(model's |available )?(context|maximum number of tokens|maximum context)"
    r"|maximum (context|prompt|model) length|context (limit|size|window) (of|:|is|exceeded)"
    r"|longer than the (maximum )?(model|context)|reduce the length of the (messages|input|prompt)",
    re.IGNORECASE,
)
"""What Anthropic, OpenAI, vLLM, llama.cpp, Mistral, Gemini, Bedrock and OpenRouter say in the message."""

_WINDOW = re.compile(
    r"(?i)(?:context|model) (?:length|limit|window)(?: is| of|:)?(?: only)? (?:\d+ \+ \d+ > )?(\d+)"
)
_PROMPT = re.compile(
    r"(?i)(\d+)(?: \+ \d+ >| input tokens| in the (?:messages|prompt)| of text input| tokens (?:from|in) the)"
)
_MOST_OUTPUT = re.compile(
    r"(?i)max(?:_\w*|imum )tokens.{0,80}?(?:at most|limit of|less than or equal to|\[\d+,| >) ?[`']?(\d+)"
)
"""Sizes in what servers say of an output cap that does not fit: the window, the prompt, the largest cap."""

_SETTINGS = {
    400: ("options", "the request does not suit the model; see its options"),
    401: ("api_key_env", "the API key is not accepted; see api_key_env"),
    402: ("api_key_env", "the account has no credit left"),
    403: ("api_key_env", "the API key may not use this model"),
    404: ("model", "there is no such model or address; see model and base_url"),
}
"""The setting to mend, and a hint, by status; any other status is like 400."""
_REDIRECT = ("base_url", "the address redirects; set base_url to where it leads")

_UNCLEAR = frozenset({400, 403, 422, 451})
_MEANT = {
    402: r"credit balance|insufficient[ _](balance|credit|fund)|(out of|no|used all) (available )?credits"
    r"|account is in good standing",
    401: r"(incorrect|invalid|missing) (x-)?api[ _-]?key|api[ _-]?key (is )?(not valid|invalid|expired)",
    404: r"not a valid model|(invalid|unknown) model\b|\bmodel\b.{0,80}\b(not exist|not found)",
}
"""What servers say with an unclear status, by the status that fits."""

_POLICY = re.compile(
    r"content[ _-]?(filter|policy|management|moderation)|(?<!access)(?<=[a-z])_policy(_violation)?:"
    r"|invalid_prompt|usage polic|safety (system|reasons|policy)|prohibited_content"
    r"|(input|prompt|content) was flagged|moderation_blocked|data_inspection"
    r"|inappropriate content|content exists risk",
    re.IGNORECASE,
)
"""What providers say of a prompt that their policy refuses."""


def redact(secret: str, text: str) -> str:
    """Return ``text`` without ``secret``, and without the part of it that ``one_line`` left at a cut."""
    clean = text.replace(secret, "…") if secret else text
    for length in range(len(secret) - 1, _SHOWN_OF_KEY, -1):
        clean = clean.replace(f"{secret[:length]}…", "…")
    return clean


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the wait in seconds that a response requests, as a number or as an HTTP date."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            wait_s = float(value) * unit_s
        except ValueError:
            continue
        if math.isfinite(wait_s) and wait_s >= 0:
            return min(wait_s, _LONGEST_WAIT_S)
    try:
        wait_s = (parsedate_to_datetime(headers.get("retry-after", "")) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S)


def error_for_status(
    status: int, message: str, *, own: bool = False, wait_s: float | None = None
) -> ModelError:
    """Return the error for an error status; ``message`` is the provider's message in one line.

    A refusal (4xx) is not billed. Nor is a failure that the provider itself reports before a reply: ``own``
    says that the body has the protocol's form of an error. A proxy's answer may stand for a reply that was
    made and billed.
    """
    text = f"HTTP {status}: {message}" if message else f"HTTP {status}"
    if status == 429:  # noqa: PLR2004 - too many requests
        if not re.search(_MEANT[402], message, re.IGNORECASE):
            return RateLimited(text, retry_after_s=wait_s)
        status = 402
    if status in {408, 409, 425, 499} or status >= 500:  # noqa: PLR2004 - server errors
        unbilled, overloaded = own and status in _BEFORE_REPLY, status in _OVERLOADED
        return ModelUnavailable(text, unbilled=unbilled, overloaded=overloaded, retry_after_s=wait_s)
    does_not_fit = status in _TOO_LONG_STATUSES and (
        _TOO_LONG.search(message) or _MOST_OUTPUT.search(message)
    )
    if status == _TOO_LARGE or does_not_fit:
        return too_long(status, message)
    if status in _UNCLEAR:
        if _POLICY.search(message):
            return ModelRefused(text)
        meant_by_words = (
            meant for meant, words in _MEANT.items() if re.search(words, message, re.IGNORECASE)
        )
        status = next(meant_by_words, status)
    setting, hint = _REDIRECT if status < 400 else _SETTINGS.get(status, _SETTINGS[400])  # noqa: PLR2004
    return ModelSetupError(f"{text} ({hint})", setting)


def too_long(status: int, message: str) -> ModelRefused:
    """Return the error for a request that does not fit into the model's context window.

    The conversation is too long for it, or the output cap too large beside a prompt that takes at most half.
    """
    sizes = [int(found[1]) for each in (_WINDOW, _PROMPT) if (found := each.search(message))]
    most = None if _TOO_LONG.search(message) else _MOST_OUTPUT.search(message)
    if most:
        cap = int(most[1])
    else:
        cap = sizes[0] - sizes[1] if len(sizes) == 2 and sizes[1] <= sizes[0] // 2 else 0  # noqa: PLR2004
    if cap:
        hint = f"the output cap does not fit: lower max_output_tokens to {cap} or less"
        return ModelSetupError(f"HTTP {status}: {hint} ({message})", "max_output_tokens")
    return ConversationTooLong(f"HTTP {status}: {message} (the conversation is too long for the model)")


def read_json(text: str) -> Any:  # noqa: ANN401 - JSON data
    """Parse JSON strictly: no NaN, no infinities, no number that Python cannot represent.

    Raises:
        MalformedReply: it is not valid JSON, or is nested too deeply.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise MalformedReply(f"not JSON ({error}): {one_line(text)}") from error
    # Counting brackets is quicker for a short text, walking the value for a long one.
    nested = len(text) > _LONG or text.count("[") + text.count("{") > _DEEPEST
    if nested and deeper_than(value, _DEEPEST):
        raise MalformedReply(f"nested deeper than {_DEEPEST} levels: {one_line(text)}")
    return value


def deeper_than(value: Any, depth: int) -> bool:  # noqa: ANN401 - JSON data
    """Whether lists and objects are nested in ``value`` more than ``depth`` times."""
    level = [value] if isinstance(value, _NESTED) else []
    for _ in range(depth):
        if not level:
            return False
        level = [
            item
            for outer in level
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, _NESTED)
        ]
    return bool(level)


def member(value: object, name: str) -> Any:  # noqa: ANN401 - JSON data
    """Return a member of a JSON object, None if there is none or ``value`` is something else."""
    return value.get(name) if isinstance(value, dict) else None


def text_of_error(body: object) -> str:
    """Return an error body without a known form as text."""
    text = body if isinstance(body, str) else "" if body is None else str(body)
    return "an HTML page" if re.search("<(html|!doctype html)", text, re.IGNORECASE) else text


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:20]} is too large a number")
    return value

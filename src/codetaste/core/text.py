"""Text for users: one line, shortened, printable, plural; the name that was probably meant."""

from __future__ import annotations

import difflib
import textwrap
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_CHARS = 300
_MAX_NAME_CHARS = 120
_MAX_LISTED = 20
"""Maximum number of listed names: there may be thousands of jobs."""
REDACTED = "[redacted]"
"""What stands for a key or a token that was removed from a text."""


def one_line(text: object, limit: int = _MAX_CHARS) -> str:
    """Return ``text`` in one line of at most ``limit`` characters."""
    return shorten(" ".join(str(text).split()), limit)


def shorten(text: str, limit: int = _MAX_CHARS) -> str:
    """Return at most ``limit`` characters of ``text``; an ellipsis ends what is cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def replace_surrogates(value: Any) -> Any:  # noqa: ANN401 - of data that is not checked yet
    """Return a text with U+FFFD in place of lone surrogates, which JSON can have and UTF-8 cannot.

    Other values are returned as they are.
    """
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def printable(text: str, limit: int = _MAX_CHARS) -> str:
    r"""Return untrusted text as one line for a terminal, shortened; control characters escaped (``\x1b``)."""
    start = text[: limit + 1]
    return shorten(start if start.isprintable() else "".join(map(_printable_character, start)), limit)


def _printable_character(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char.isspace() else char.encode("unicode_escape", "surrogatepass").decode("ascii")


def printable_name(name: bytes) -> str:
    """Return the name of a file quoted and shortened for a one-line message."""
    text = repr(name.decode("utf-8", "backslashreplace"))
    return text if len(text) <= _MAX_NAME_CHARS else f"{text[:_MAX_NAME_CHARS]}…' ({len(name)} bytes)"


def wrap(text: str, width: int | None, indent: str = "") -> str:
    """Return ``text`` with each line wrapped between words at ``width`` columns, further lines indented.

    None leaves the lines as they are; a word that is longer than a line, such as a path, stays whole.
    """
    if width is None:
        return text
    return "\n".join(
        line
        if len(line) <= width
        else textwrap.fill(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        )
        for line in text.split("\n")
    )


def quoted(text: str) -> str:
    """Return ``text``, as a Python literal if it has characters that are not printable, such as newlines."""
    return text if text.isprintable() else repr(text)


def format_value(value: object) -> str:
    """Format a value of a config as a literal; an exact number looks as it was written."""
    return str(value) if isinstance(value, Decimal) else repr(value)


def plural(count: int, one: str, many: str = "") -> str:
    """Format a count with its noun: "1 repository", "1,600 trials"."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return " (did you mean 'x'?)" for the closest of ``known``, else a list of the known names, or ""."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f" (did you mean {near[0]!r}?)"
    some, more = sorted(known)[:_MAX_LISTED], len(known) - _MAX_LISTED
    return f" (known: {', '.join(some)}{f', … and {more} more' if more > 0 else ''})" if known else ""

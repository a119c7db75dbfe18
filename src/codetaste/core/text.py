"""Text for people: one line, shortened, printable, plural."""

from __future__ import annotations

_MAX_CHARS = 300
_MAX_NAME_CHARS = 120


def one_line(text: object, limit: int = _MAX_CHARS) -> str:
    """Return ``text`` in one line of at most ``limit`` characters."""
    return shorten(" ".join(str(text).split()), limit)


def shorten(text: str, limit: int = _MAX_CHARS) -> str:
    """Return at most ``limit`` characters of ``text``; an ellipsis ends what is cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def printable(text: str, limit: int = _MAX_CHARS) -> str:
    r"""Return untrusted text as one line for a terminal, shortened; control characters escaped (``\x1b``)."""
    return shorten("".join(map(_printable_character, text[: limit + 1])), limit)


def _printable_character(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char.isspace() else char.encode("unicode_escape", "surrogatepass").decode("ascii")


def printable_name(name: bytes) -> str:
    """Return the name of a file quoted and shortened for a one-line message."""
    text = repr(name.decode("utf-8", "backslashreplace"))
    return text if len(text) <= _MAX_NAME_CHARS else f"{text[:_MAX_NAME_CHARS]}…' ({len(name)} bytes)"


def quoted(text: str) -> str:
    """Return ``text``, as a Python literal if it has characters that are not printable, such as newlines."""
    return text if text.isprintable() else repr(text)


def plural(count: int, one: str, many: str = "") -> str:
    """Format a count with its noun: "1 repository", "1,600 trials"."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"

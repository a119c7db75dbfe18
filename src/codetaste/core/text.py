"""Text for people: one line, truncated, printable, plural."""

from __future__ import annotations

_SHOWN_CHARACTERS = 120


def printable_name(name: bytes) -> str:
    """Return a member's name quoted and shortened for a one-line message."""
    text = repr(name.decode("utf-8", "backslashreplace"))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…' ({len(name)} bytes)"

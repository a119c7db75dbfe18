"""Untrusted text for people, cut to what a page can hold."""

from __future__ import annotations

from codetaste.site.html.visible import visible


def visible_text(text: str, limit: int) -> str:
    """Return ``visible`` of the first ``limit`` characters of a text; one that is cut says how long it is."""
    return visible(text) if len(text) <= limit else f"{visible(text[:limit])}… ({len(text):,} characters)"


def visible_line(text: str, limit: int) -> str:
    """Return ``visible_text`` of a text as one line: white space is one space."""
    return visible_text(" ".join(text[: 4 * limit].split()), limit)


def decoded_path(path: str) -> str:
    """Return a path with U+FFFD where its bytes are not UTF-8."""
    return path if path.isascii() else path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

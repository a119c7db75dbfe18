"""Untrusted text in pages: characters that do something instead of showing something become their numbers."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""Sequences that set colours or move the cursor of a terminal (ECMA-48 §5.4, OSC of xterm)."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Control characters, bidirectional and invisible ones, and halves of characters; not tab and newline."""


def visible(text: str) -> str:
    """Return ``text`` with control, bidirectional and invisible characters as ``⟨U+202E⟩``.

    Tabs and newlines stay, carriage returns before a newline go, escape sequences of terminals become
    ``⟨ESC…⟩`` as a whole.
    """
    if text.isascii() and text.isprintable():
        return text
    plain = _ESCAPES.sub(_escape, text.replace("\r\n", "\n"))
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", plain)


def _escape(found: re.Match[str]) -> str:
    return f"⟨ESC{found[0][1:]}⟩"

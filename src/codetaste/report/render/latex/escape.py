"""Text for LaTeX: escaped, so that it is typeset literally by any engine.

Characters without a glyph in pdfTeX are written as their code points.
"""

from __future__ import annotations

import re
import unicodedata

from codetaste.core.text import printable

_MAX_TEXT = 500
_DASHES = re.compile(r"-(?=-)")
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "`": "{`}",
    '"': r"{\char34}",
    "–": r"\textendash{}",
    "…": r"\ldots{}",
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "⁺": r"$^{+}$",
    "⁻": r"$^{-}$",
    "₁": r"$_{1}$",
    "∘": r"$\circ$",
}
"""Characters that LaTeX reads as commands, that form ligatures, or that would be arguments of a ``\\``."""
_LATIN = frozenset(map(chr, range(0xC0, 0x100))) - set("ÐðÞþ×÷")
"""Letters that all TeX encodings have."""


def escape(text: str) -> str:
    """Escape a text for LaTeX, so that it is typeset literally."""
    return _DASHES.sub("-{}", "".join(_ESCAPES.get(char, char) for char in plain(text)))


def plain(text: str) -> str:
    """Return the characters that ``escape`` typesets, those without a glyph as code points."""
    flat = unicodedata.normalize("NFC", printable(text, _MAX_TEXT))
    return "".join(char if _has_glyph(char) else f"[U+{ord(char):04X}]" for char in flat)


def _has_glyph(char: str) -> bool:
    return char in _ESCAPES or char.isascii() or char in _LATIN

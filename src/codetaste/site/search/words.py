"""The words of texts and of recorded conversations, by which they are found."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from codetaste.site.output.redact import redact_text

if TYPE_CHECKING:
    from pathlib import Path

MIN_CHARS, MAX_CHARS = 3, 32
MAX_BYTES = 8 * 1024**2
"""What lies behind this in a file of a conversation is not in the index."""
_WORD = re.compile(rb"[a-z_][a-z0-9_]{2,31}\Z")
_ESCAPE = re.compile(rb"\\(?:u[0-9a-f]{4}|.)")
_COMMON_ESCAPES = (rb"\\", rb"\n", rb"\t", rb"\"")
"""Those of most escapes; two backslashes come first, since neither escapes what is behind them."""
_CHARACTERS = bytes(
    ord(char.lower()) if char.isascii() and (char.isalnum() or char == "_") else ord(" ")
    for char in map(chr, range(256))
)
"""Lower case for characters of words, and a space for all others."""
_RANDOM = re.compile(rb"(?:.*\d){4}")
"""Hashes, numbers of lines and keys, which are not looked for by words."""


def words_in(text: str) -> set[str]:
    """Return the different words of a text, in lower case."""
    return _words(text.encode("utf-8", "replace"))


def words_of_file(path: Path, *, redacted: bool = False) -> set[str]:
    """Return the words of a file of JSON lines, without reading it as JSON. Blocking.

    Args:
        path: the file.
        redacted: whether words of what looks like a key are left out.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(MAX_BYTES)
    if redacted:
        content = redact_text(content.decode("utf-8", "replace"), Counter()).encode()
    content = content.lower()
    for escape in _COMMON_ESCAPES:
        content = content.replace(escape, b"  ")  # of the same length: in place
    return _words(_ESCAPE.sub(b" ", content) if b"\\" in content else content)


def _words(content: bytes) -> set[str]:
    """Return the words; of one that is too long or begins with a digit, the end that is a word."""
    words = (_WORD.search(each) for each in set(content.translate(_CHARACTERS).split()))
    return {word[0].decode("ascii") for word in words if word and not _RANDOM.match(word[0])}

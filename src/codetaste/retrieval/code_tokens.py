"""Tokens of code and prose for BM25.

A token is an identifier or a number in lower case. An identifier of several parts gives its parts, too:
``getUserName`` gives ``getusername``, ``get``, ``user`` and ``name``. So a whole name, which is rare and has
much weight, still finds its other uses, and code that names the same thing differently shares the parts, as a
description in plain words does. Keywords are not removed: BM25 gives little weight to what occurs everywhere.
"""

from __future__ import annotations

import re

TOKENISER = "code-1"
"""Names this way of making tokens; part of the key of an index."""
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")


def code_tokens(text: str) -> list[str]:
    """Return the tokens of ``text`` in order, repeated ones included."""
    found: list[str] = []
    for word in _WORD.findall(text):
        parts = _PART.findall(word)
        whole = word.strip("_")
        if whole:
            found.append(whole.lower())
        if len(parts) > 1:
            found.extend(part.lower() for part in parts)
    return found

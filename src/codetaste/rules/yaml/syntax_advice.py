"""Advice on YAML that cannot be read, for each of the parser's messages that models cause."""

from __future__ import annotations

import re

_BLOCK = "put it into a block: `|` behind the key, and the text on the next lines, indented"
_CURES = (
    (r"mapping values are not allowed", f"text with a colon and a space is a mapping; {_BLOCK}"),
    (r"'\\t' that cannot start any token", "indent with spaces, not with tabs"),
    (r"cannot start any token|undefined alias", f"such a beginning has a meaning; {_BLOCK}"),
    (r"(keys|entries) are not allowed here", f"such a beginning has a meaning; {_BLOCK}"),
    (r"unknown escape character", "use single quotes or none: a backslash in double quotes begins an escape"),
    (r"while scanning a block scalar", "begin the text on the line below the `|`, indented"),
    (r"while scanning a quoted scalar", f"close the quote, or {_BLOCK}"),
    (r"could not find expected ':'", "indent all lines of a block deeper than its key"),
    (r"<block end>.*<scalar>", f"text goes on behind a quote or bracket; {_BLOCK}"),
    (r"<block end>", "a line is not indented as those above it"),
    (r"while parsing a (flow|block) ", f"a bracket or brace begins a list or mapping; {_BLOCK}"),
    (r"^the tag ", f"text that begins with ! is a tag; {_BLOCK}"),
)
"""Patterns in the parser's messages, the first that fits counts, and what to do."""


def with_advice(message: str) -> str:
    """Return the parser's ``message`` with what to do about it, if that is known."""
    cure = next((cure for pattern, cure in _CURES if re.search(pattern, message)), "")
    return f"{message}; {cure}" if cure else message

"""String literals and comments of a source file, by one expression for all languages.

It is no parser: a quote inside a regular expression may begin a string that lasts to the end of the line.
Rules on code do not match inside string literals and comments.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_HASH_SUFFIXES = frozenset({
    "", "py", "pyi", "rb", "sh", "bash", "pl", "yml", "yaml", "toml", "cfg", "r", "jl", "ex", "tf",
})  # fmt: skip
"""Endings of files whose comments begin with a hash; all others are read like JavaScript."""
# Each ends at the end of the line or file if it is not closed: further tries from inside it would take time
# that grows with the square of the text.
_QUOTED = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?' + rb"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?"
_THREE_QUOTES = rb'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:""")?'
_HASH = re.compile(
    b"(?P<string>%s|%s|%s)" % (_THREE_QUOTES, _THREE_QUOTES.replace(b'"', b"'"), _QUOTED)
    + rb"|(?P<comment>\#[^\n]*+(?:\n[ \t]*+\#[^\n]*+)*+)",
    re.DOTALL,
)
_SLASH = re.compile(
    b"(?P<string>%s|%s|%s)" % (_THREE_QUOTES, rb"`[^`\\]*+(?:\\.[^`\\]*+)*+`?", _QUOTED)
    + rb"|(?P<comment>/\*(?:.*?\*/|.*)|//[^\n]*+(?:\n[ \t]*+//[^\n]*+)*+)",
    re.DOTALL,
)
_HERE_DOCUMENT = (
    rb"|(?P<here><<[~-]?[\"'`]?(?P<mark>[A-Z_][A-Z0-9_]*+)\b(?:.*?\n[ \t]*+(?P=mark)(?![^\r\n])|.*))"
)
_POD = rb"|(?P<comment>(?m:^)(?:=begin\b(?:.*?\n=end\b[^\n]*+|.*)|__END__\r?\n.*)|"
_RUBY = re.compile(
    _HASH.pattern.replace(rb"|(?P<comment>", _HERE_DOCUMENT + _POD),
    re.DOTALL,
)
_RAW_STRING = rb"(?P<raw>\bb?r(?P<hashes>\#*+)\"(?:.*?\"(?P=hashes)|.*))|"
_RUST = re.compile(_RAW_STRING + _SLASH.pattern, re.DOTALL)
_BY_SUFFIX = {
    **dict.fromkeys(_HASH_SUFFIXES, _HASH),
    **dict.fromkeys(("rb", "sh", "bash", "pl"), _RUBY),
    "rs": _RUST,
}


class Region(NamedTuple):
    """A literal or comment with the positions of its first byte and after its last."""

    start: int
    end: int
    is_comment: bool


@lru_cache(16_384)
def suffix_of(path: str) -> str:
    """Return the ending of the file's name, without the dot and in lower case, "" if it has none."""
    return PurePosixPath(path).suffix[1:].lower()


def quoted_regions(content: bytes, path: str) -> Iterator[Region]:
    """Yield the literals and comments of a file; line comments that follow each other are one."""
    for match in _BY_SUFFIX.get(suffix_of(path), _SLASH).finditer(content):
        yield Region(match.start(), match.end(), match["comment"] is not None)


def without_regions(content: bytes, path: str, *, strings: bool) -> bytes:
    """Return ``content`` with spaces in the place of comments, and of literals if ``strings``; lines stay."""
    parts, at = [], 0
    for region in quoted_regions(content, path):
        if region.is_comment or strings:
            blank = re.sub(rb"[^\n]", b" ", content[region.start : region.end])
            parts += [content[at : region.start], blank]
            at = region.end
    return b"".join([*parts, content[at:]])

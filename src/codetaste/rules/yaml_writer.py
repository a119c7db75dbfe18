"""Write rules as YAML in the published layout.

Text is written so that YAML 1.1 and 1.2 parsers read the same: the engine follows 1.1 in places.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from codetaste.rules.rule import Rule

_FIRST = ("id", "message", "severity", "languages", "mode")
_LAST = ("metadata", "paths", "options")
_PLAIN = re.compile(r"[A-Za-z$_/^(\\](?:[!-9;-~]|:(?=[!-~])| (?=[!-\"$-~]))*")
_RESERVED_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def dump_rules(rules: Iterable[Rule]) -> str:
    """Return ``rules`` as a rule file; ``parse_rules`` gives back equal rules."""
    lines = [line for rule in rules for line in _item(_ordered(rule.body))]
    return "\n".join(["rules:", *lines]) + "\n" if lines else "rules: []\n"


def _ordered(body: Mapping[str, Any]) -> dict[str, Any]:
    middle = (key for key in body if key not in _FIRST and key not in _LAST)
    keys = (*_FIRST, *middle, *_LAST)
    return {key: body[key] for key in keys if key in body}


def _item(value: object) -> Iterator[str]:
    """Yield the lines of one list item: its block, indented by two, after a dash."""
    for number, line in enumerate(_block(value)):
        yield ("- " if number == 0 else "  " if line else "") + line


def _block(value: object) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from _entry(_inline(key), child)
    elif isinstance(value, list) and value:
        for child in value:
            yield from _item(child)
    elif isinstance(value, str) and _fits_literal(value):
        yield from _literal(value)
    else:
        yield _inline(value)


def _entry(key: str, value: object) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield f"{key}:"
        yield from (f"  {line}" if line else "" for line in _block(value))
    elif isinstance(value, list) and value:
        yield f"{key}:"
        yield from _block(value)  # a list is not indented below its key in the published files
    else:
        first, *rest = _block(value)
        yield f"{key}: {first}"
        yield from rest


def _fits_literal(text: str) -> bool:
    """True when every parser reads ``text`` back exactly from a literal block."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    return (
        len(lines) > 1
        and bool(lines[0])
        and bool(lines[-1])
        and not lines[0].startswith(" ")
        and all(line.isprintable() and (not line or bool(line.strip())) for line in lines)
    )


def _literal(text: str) -> Iterator[str]:
    yield "|" if text.endswith("\n") else "|-"
    yield from (f"  {line}" if line else "" for line in text.removesuffix("\n").split("\n"))


def _inline(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        shown = repr(value)
        return shown if "." in shown else shown.replace("e", ".0e")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    return "{}" if isinstance(value, dict) else "[]"


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED_WORDS:
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004

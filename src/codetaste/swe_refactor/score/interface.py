"""Whether an edit can be seen from other files: if not, these need not be compiled again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import METHODS, normal_code, parse_java, walk_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.swe_refactor.answers.java.syntax import SourceUnit


def keeps_interface(before: bytes, after: bytes) -> bool:
    """Return whether only bodies of methods differ, and private methods. Blocking: milliseconds.

    Java compiles other files by what else a file has: signatures, fields with their constants, types. A text
    with errors of syntax, or with other imports, counts as changed.
    """
    sides = [parse_java(each) for each in (before, after)]
    if any(unit is None or unit.error_at is not None for unit in sides):
        return False
    first, second = (_interface(unit) for unit in sides if unit is not None)
    return first == second


def _interface(unit: SourceUnit) -> bytes:
    """Return the code without bodies of methods and without private methods."""
    pieces, at = list[bytes](), 0
    for start, end in _hidden(unit):
        pieces.append(unit.data[at:start])
        at = end
    return normal_code(b" ".join([*pieces, unit.data[at:]]))


def _hidden(unit: SourceUnit) -> Iterator[tuple[int, int]]:
    """Yield where what other files do not see begins and ends, in order."""
    for node in walk_nodes(unit.root, lambda node: node.type not in METHODS):
        if node.type not in METHODS:
            continue
        modifiers = next((each for each in node.children if each.type == "modifiers"), None)
        body = node.child_by_field_name("body")
        if modifiers is not None and any(each.type == "private" for each in modifiers.children):
            yield node.start_byte, node.end_byte
        elif body is not None:
            yield body.start_byte, body.end_byte

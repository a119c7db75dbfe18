"""Descriptors of methods of the JVM, compared with the types that the source has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PRIMITIVES = {
    "B": "byte", "C": "char", "D": "double", "F": "float",
    "I": "int", "J": "long", "S": "short", "Z": "boolean",
}  # fmt: skip
_PARAMETER = re.compile(r"(\[*)(?:L([^;]+);|([BCDFIJSZ]))")
_ANNOTATION = re.compile(r"@[\w.]+(?:\([^)]*\))?\s*")
_MAX_CHARS = 2000
"""Of a type in a source: nested type arguments are taken away level by level."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]?")
"""Names that type variables usually have."""


def descriptor_types(descriptor: str) -> tuple[str, ...]:
    """Return the parameters' types as names with dots and "[]": ``("java.lang.String", "int[]")``."""
    inside = descriptor.partition("(")[2].partition(")")[0]
    return tuple(
        (found[2].replace("/", ".").replace("$", ".") if found[2] else _PRIMITIVES[found[3]])
        + "[]" * len(found[1])
        for found in _PARAMETER.finditer(inside)
    )


def matches_source_types(descriptor: str, parameters: Sequence[str]) -> bool:
    """Whether a method with this descriptor can have parameters of these types in the source.

    Types are compared without type arguments and, where the source has no package, without it. A type
    variable can be any class.
    """
    types = descriptor_types(descriptor)
    return len(types) == len(parameters) and all(map(_fits, types, parameters))


def _fits(compiled: str, source: str) -> bool:
    plain, dimensions = _plain(source)
    name = compiled.rstrip("[]")
    if (len(compiled) - len(name)) // 2 != dimensions:
        return False
    if name in _PRIMITIVES.values() or plain in _PRIMITIVES.values():
        return name == plain
    return name == plain or name.endswith(f".{plain}") or _VARIABLE.fullmatch(plain) is not None


def _plain(source: str) -> tuple[str, int]:
    """Return the name without annotations and type arguments, and the number of dimensions."""
    text = _ANNOTATION.sub("", source[:_MAX_CHARS]).removeprefix("final ").replace("...", "[]")
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    text = re.sub(r"\s+", "", text)
    return text.replace("[]", ""), text.count("[]")

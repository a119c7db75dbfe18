"""Reader of untrusted YAML 1.2: limits of size, depth and aliases, no duplicate keys, errors with lines.

``rules.yaml.composer`` composes the nodes. This module checks the limits and converts the nodes to plain data
by the core schema of YAML 1.2 (``on``, ``yes`` and ``1:20`` are text).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from codetaste.errors import RuleError
from codetaste.rules.yaml.syntax_advice import with_advice

if TYPE_CHECKING:
    from collections.abc import Iterator

Node = Any
"""A node of ruamel.yaml or PyYAML; its classes declare no attribute types."""

PlainData = Any
"""dict, list, str, int, float, bool or None, nested."""

MAX_BYTES = 2 * 1024**2
"""Ten times the largest published rule file; parsing it takes seconds, not minutes."""
MAX_DEPTH = 64
MAX_NODES = 250_000
MAX_KEY_CHARS = 128

_CORE = "tag:yaml.org,2002:"
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]{1,64}|0o[0-7]{1,64}|0x[0-9a-fA-F]{1,64}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")
_TYPED = {_CORE + name for name in ("null", "bool", "int", "float")}
_TEXT = {_CORE + name for name in ("str", "timestamp", "value", "merge")}


def decode(text: str | bytes, *, max_bytes: int = MAX_BYTES) -> str:
    """Return ``text`` as a string without a byte order mark.

    Raises:
        RuleError: it is too large or not UTF-8.
    """
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        raise RuleError(f"the text has {size:,} bytes; at most {max_bytes:,} are read")
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise RuleError(f"byte {error.start} is not UTF-8; save the file as UTF-8", line=line) from None
    return decoded.removeprefix("\ufeff")


def compose(text: str) -> Node:
    """Return the root node of the single document in ``text``, None if it is empty.

    Raises:
        RuleError: it is not YAML.
    """
    from codetaste.rules.yaml import composer  # noqa: PLC0415  (heavy)

    try:
        return composer.compose(text)
    except RecursionError:
        raise RuleError(f"nested too deeply; at most {MAX_DEPTH} levels are read") from None


def compose_fast(text: str) -> Node | None:
    """Return the mapping that ``compose`` returns but for lines of empty scalars, or None if not certain."""
    from codetaste.rules.yaml import composer  # noqa: PLC0415  (heavy)

    return composer.compose_fast(text)


def is_mapping(node: Node) -> bool:
    """True for a mapping node."""
    return getattr(node, "id", "") == "mapping"


def is_sequence(node: Node) -> bool:
    """True for a sequence node."""
    return getattr(node, "id", "") == "sequence"


def line_of(node: Node) -> int:
    """Return the line, from 1, where a node starts."""
    return int(node.start_mark.line) + 1


def pairs(node: Node) -> Iterator[tuple[str, Node]]:
    """Yield the keys and value nodes of a mapping node; keys must be distinct text.

    Raises:
        RuleError: a key is not text, too long, a merge key, or a duplicate.
    """
    _check_tag(node, "map")
    seen: set[str] = set()
    for key, value in node.value:
        line = line_of(key)
        name = _scalar(key) if key.id == "scalar" else None
        if not isinstance(name, str):
            raise RuleError("a key must be text", line=line)
        if len(name) > MAX_KEY_CHARS:
            raise RuleError(f"the key {name[:40]!r}… is longer than {MAX_KEY_CHARS} characters", line=line)
        if key.tag == _CORE + "merge":
            raise RuleError("merge keys (<<) are not supported; write the keys out", line=line)
        if name in seen:
            raise RuleError(f"the key {name!r} appears twice", line=line)
        seen.add(name)
        yield name, value


class NodeReader:
    """Converts nodes to plain data; one reader counts all nodes of a text, with aliases expanded."""

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self._left = max_nodes

    def to_plain(self, node: Node, depth: int = 0) -> PlainData:
        """Return ``node`` as dict, list, str, int, float, bool or None.

        Raises:
            RuleError: the node is too deep, too large, or has a tag that is not plain data.
        """
        self._left -= 1
        if self._left < 0:
            raise RuleError("aliases make this text too large to expand", line=line_of(node))
        if depth > MAX_DEPTH:
            raise RuleError(f"nested deeper than {MAX_DEPTH} levels", line=line_of(node))
        if is_mapping(node):
            return {name: self.to_plain(value, depth + 1) for name, value in pairs(node)}
        if is_sequence(node):
            _check_tag(node, "seq")
            return [self.to_plain(child, depth + 1) for child in node.value]
        return _scalar(node)


def _check_tag(node: Node, expected: str) -> None:
    if node.tag != _CORE + expected:
        raise RuleError(with_advice(f"the tag {node.tag} is not plain data"), line=line_of(node))


def _scalar(node: Node) -> str | int | float | bool | None:
    text: str = node.value
    quoted = bool(node.style)
    if node.tag in _TEXT or (node.tag in _TYPED and not quoted):
        return text if quoted or node.tag in _TEXT else _resolve(text)
    raise RuleError(with_advice(f"the tag {node.tag} is not plain data"), line=line_of(node))


def _resolve(text: str) -> str | int | float | bool | None:
    """Resolve a plain scalar by the core schema of YAML 1.2; anything else is text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text

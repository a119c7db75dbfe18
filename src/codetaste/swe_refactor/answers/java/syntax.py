"""Java text as types, members and imports with byte ranges. The text may have syntax errors.

Offsets are those of the UTF-8 bytes. Statements inside of methods are not looked at.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import tree_sitter_java
from tree_sitter import Language, Parser

from codetaste.core.concurrency import per_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tree_sitter import Node

PARSE_LIMIT_S = 5.0
"""Processor time of one parse."""
MAX_OPEN_BRACKETS = 200
"""Angle brackets that one statement leaves open: the parser's time and memory grow with their square."""
_MAX_NESTING = 40
_CHUNK = 64 * 1024
METHODS = {"method_declaration", "constructor_declaration", "compact_constructor_declaration"}
_TYPES = {
    "class_declaration",
    "interface_declaration",
    "enum_declaration",
    "record_declaration",
    "annotation_type_declaration",
}
_COMMENTS = {"block_comment", "line_comment"}
_TOKEN = re.compile(
    rb'//[^\r\n]*|/\*.*?\*/|"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\r\n])*"'
    rb"|'(?:\\.|[^'\\\r\n])*'|\s+|[\w\x80-\xff]+|.",
    re.DOTALL,
)
_CODE = re.compile(
    rb'//[^\r\n]*|/\*.*?\*/|\s+|("""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\r\n])*"'
    rb"|'(?:\\.|[^'\\\r\n])*'|[\w\x80-\xff]+|.)",
    re.DOTALL,
)
"""Like ``_TOKEN``; the group has what is neither comment nor space."""
_END_OF_LINE = re.compile(rb"\r\n|\r|\n")
_QUALIFIER = re.compile(r"\b[a-z_]\w*\.")
_DROPPED = re.compile(r"<.*>|\s|@[\w.]+(\([^)]*\))?", re.DOTALL)
"""What a parameter's type has beside its name: type arguments, white space, annotations."""


@dataclass(frozen=True, slots=True)
class SourceMember:
    """A member of a type, other than a type.

    Attributes:
        kind: the node type of tree-sitter, such as "method_declaration".
        name: its name; of several fields their names joined by commas; "" of initializers.
        parameters: the erased types of a method's parameters by their simple names; () of other members.
        start: where its Javadoc begins, if it has one, else as ``code_start``.
        code_start: its first modifier.
        end: behind its last byte.
    """

    kind: str
    name: str
    parameters: tuple[str, ...]
    start: int
    code_start: int
    end: int

    @property
    def is_method(self) -> bool:
        """Whether it is a method or constructor."""
        return self.kind in METHODS

    @property
    def signature(self) -> str:
        """The name with the types of the parameters."""
        return f"{self.name}({', '.join(self.parameters)})" if self.is_method else self.name


@dataclass(frozen=True, slots=True)
class SourceType:
    """A class, interface, enum, record or annotation; of an anonymous class the name is "".

    ``body_start`` is behind its brace, ``body_end`` before the closing one. ``open_constants`` says that it
    is an enum without the semicolon that comes before members.
    """

    name: str
    start: int
    code_start: int
    end: int
    body_start: int
    body_end: int
    members: tuple[SourceMember, ...]
    types: tuple[SourceType, ...]
    open_constants: bool


@dataclass(frozen=True, slots=True)
class SourceImport:
    """An import; ``name`` is without "static" and ends with ``.*`` for all of a package or type."""

    name: str
    static: bool
    start: int
    end: int

    @property
    def line(self) -> str:
        """The declaration."""
        return f"import {'static ' if self.static else ''}{self.name};"


@dataclass(frozen=True, slots=True)
class SourceUnit:
    """A text by its syntax.

    Attributes:
        data: the text as UTF-8.
        package: the name of its package.
        package_end: behind its declaration; 0 without one.
        imports: its imports.
        types: its types, without those inside of them.
        other: the kinds of further top-level nodes, such as "method_declaration" of a bare method.
        error_at: where the first syntax error is; None without one.
        root: tree-sitter's node of it all.
        line_ends: where each line but the last one ends, behind its end-of-line characters.
    """

    data: bytes
    package: str
    package_end: int
    imports: tuple[SourceImport, ...]
    types: tuple[SourceType, ...]
    other: frozenset[str]
    error_at: int | None
    root: Node
    line_ends: tuple[int, ...]

    def text(self, start: int, end: int) -> str:
        """Return a part of the text."""
        return self.data[start:end].decode("utf-8", "replace")

    def line_of(self, at: int) -> int:
        """Return the number of the line, from 1."""
        return bisect_right(self.line_ends, at) + 1


def parse_java(data: bytes) -> SourceUnit | None:
    """Return the syntax of a text in UTF-8; None if it takes the parser too long."""
    return _parse_cached()(data)


@per_thread
def _parse_cached() -> Callable[[bytes], SourceUnit | None]:
    """Return the parser of this thread, with its latest units: most files are read several times in a row."""
    return lru_cache(maxsize=4)(_parse)


def _parse(data: bytes) -> SourceUnit | None:
    if _open_brackets(data) > MAX_OPEN_BRACKETS:
        return None
    parser, deadline = _parser(), time.thread_time() + PARSE_LIMIT_S
    try:
        tree = parser.parse(_reader(data), progress_callback=lambda *_: time.thread_time() > deadline)
    except ValueError:  # the callback ended it
        parser.reset()
        return None
    root = tree.root_node
    package, package_end, imports, other = "", 0, list[SourceImport](), set[str]()
    for node in root.named_children:
        if node.type == "package_declaration":
            package, package_end = _dotted(data, node), node.end_byte
        elif node.type == "import_declaration":
            imports.append(_import(data, node))
        elif node.type not in _TYPES | _COMMENTS:
            other.add(node.type)
    return SourceUnit(
        data=data,
        package=package,
        package_end=package_end,
        imports=tuple(imports),
        types=tuple(_types(data, root, 0)),
        other=frozenset(other),
        error_at=_first_error(root),
        root=root,
        line_ends=tuple([each.end() for each in _END_OF_LINE.finditer(data)]),
    )


def type_around(unit: SourceUnit, method: Node) -> SourceType | None:
    """Return the type, also an anonymous one, whose body a method's node is in."""
    body = method.parent
    if body is not None and body.type == "enum_body_declarations":
        body = body.parent
    if body is None or body.parent is None or not body.type.endswith("_body"):
        return None
    known = (each for each in all_types(unit.types) if each.body_start == body.start_byte + 1)
    return next(known, None) or _type(unit.data, body.parent, body, _MAX_NESTING - 1)


def member_of(unit: SourceUnit, node: Node) -> SourceMember:
    """Return the member of a node."""
    return _member(unit.data, node)


def normal_code(data: bytes) -> bytes:
    """Return code without comments, its tokens apart by a space: equal for equal code."""
    return b" ".join(filter(None, _CODE.findall(data)))


def all_types(types: tuple[SourceType, ...]) -> Iterator[SourceType]:
    """Yield types and those inside of them, outer ones first."""
    for each in types:
        yield each
        yield from all_types(each.types)


def _open_brackets(data: bytes) -> int:
    """Return how many angle brackets are open at most in one statement."""
    if data.count(b"<") <= MAX_OPEN_BRACKETS:
        return 0
    most = depth = 0
    for token in _TOKEN.findall(data):
        if token == b"<":
            depth += 1
            most = max(most, depth)
        elif token == b">":
            depth = max(depth - 1, 0)
        elif token in {b";", b"{", b"}"}:
            depth = 0
    return most


@per_thread
def _parser() -> Parser:
    return Parser(Language(tree_sitter_java.language()))


def _reader(data: bytes) -> Callable[[int, object], bytes]:
    return lambda offset, _: data[offset : offset + _CHUNK]


def _types(data: bytes, parent: Node, depth: int) -> Iterator[SourceType]:
    for node in parent.named_children:
        if node.type in _TYPES and depth < _MAX_NESTING:
            body = node.child_by_field_name("body")
            if body is not None:
                yield _type(data, node, body, depth)


def _type(data: bytes, node: Node, body: Node, depth: int) -> SourceType:
    name = node.child_by_field_name("name")
    inside = body
    if body.type == "enum_body":
        inside = next((each for each in body.named_children if each.type == "enum_body_declarations"), body)
    closed = data[body.end_byte - 1 : body.end_byte] == b"}"
    members = [
        _member(data, each)
        for each in (*body.named_children, *(inside.named_children if inside != body else ()))
        if each.type not in _TYPES | _COMMENTS | {"enum_body_declarations"}
    ]
    return SourceType(
        name=_text(data, name) if name is not None else "",
        start=_javadoc_start(data, node),
        code_start=node.start_byte,
        end=node.end_byte,
        body_start=body.start_byte + 1,
        body_end=body.end_byte - 1 if closed else body.end_byte,
        members=tuple(members),
        types=tuple(_types(data, inside, depth + 1)),
        open_constants=body.type == "enum_body" and inside == body,
    )


def _member(data: bytes, node: Node) -> SourceMember:
    name = node.child_by_field_name("name")
    names = [name] if name is not None else _declared(node)
    return SourceMember(
        kind=node.type,
        name=",".join(_text(data, each) for each in names),
        parameters=tuple(_parameters(data, node)) if node.type in METHODS else (),
        start=_javadoc_start(data, node),
        code_start=node.start_byte,
        end=node.end_byte,
    )


def _declared(node: Node) -> list[Node]:
    found = (each.child_by_field_name("name") for each in node.children_by_field_name("declarator"))
    return [each for each in found if each is not None]


def _parameters(data: bytes, method: Node) -> Iterator[str]:
    formal = method.child_by_field_name("parameters")
    for each in formal.named_children if formal is not None else ():
        if each.type not in {"formal_parameter", "spread_parameter"}:
            continue
        kind = each.child_by_field_name("type") or next(
            part for part in each.named_children if part.type != "modifiers"
        )
        name = _QUALIFIER.sub("", _DROPPED.sub("", _text(data, kind)))
        rank = _DROPPED.sub("", _text(data, each)).count("[")  # also of the old form: int a[]
        yield name.replace("[]", "") + "[]" * (rank + (each.type == "spread_parameter"))


def _javadoc_start(data: bytes, node: Node) -> int:
    before = node.prev_named_sibling
    while before is not None and before.type in _COMMENTS:
        if data.startswith(b"/**", before.start_byte):
            return before.start_byte
        before = before.prev_named_sibling
    return node.start_byte


def _import(data: bytes, node: Node) -> SourceImport:
    static = any(each.type == "static" for each in node.children)
    return SourceImport(_dotted(data, node), static, node.start_byte, node.end_byte)


def _dotted(data: bytes, node: Node) -> str:
    """Return the name in the declaration of a package or import."""
    parts = [each for each in node.named_children if each.type in {"scoped_identifier", "identifier"}]
    name = "".join(
        normal_code(_bytes(data, each)).replace(b" ", b"").decode("utf-8", "replace") for each in parts
    )
    return name + ".*" * any(each.type == "asterisk" for each in node.named_children)


def _bytes(data: bytes, node: Node) -> bytes:
    return data[node.start_byte : node.end_byte]


def _text(data: bytes, node: Node) -> str:
    return _bytes(data, node).decode("utf-8", "replace")


def _first_error(root: Node) -> int | None:
    if not root.has_error:
        return None
    faults = (
        each for each in walk_nodes(root, lambda node: node.has_error) if each.is_error or each.is_missing
    )
    return next(faults, root).start_byte


def walk_nodes(root: Node, enter: Callable[[Node], bool] = lambda _: True) -> Iterator[Node]:
    """Yield nodes in the order of the text, outer ones first; what is inside only of those to ``enter``.

    Without recursion, since code can be nested deeply.
    """
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        if enter(node):
            todo.extend(reversed(node.children))

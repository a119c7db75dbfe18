"""The syntax tree of a text, by tree-sitter, as plain nodes that can be nested to any depth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import tree_sitter_java
from tree_sitter import Language, Parser

from codetaste.codebleu.java import LITERALS
from codetaste.core.concurrency import per_thread

if TYPE_CHECKING:
    from tree_sitter import Node as ParsedNode


@dataclass(slots=True, eq=False)
class Node:
    """A node with its children.

    Attributes:
        kind: the grammar's name of the node; of a token without a name of its own its text.
        role: the name of its field in its parent, None without one.
        named: whether the grammar names it.
        missing: whether the parser has added it, to repair the text.
        start: its first byte; ``end`` is the byte behind its last.
        first: the number of tokens before it.
        last: the number of tokens before its end.
        unexpected: how tree-sitter prints a character in which it found nothing, else empty.
        children: its children, named or not.
    """

    kind: str
    role: str | None
    named: bool
    missing: bool
    start: int
    end: int
    first: int
    last: int = 0
    unexpected: str = ""
    children: list[Node] = field(default_factory=list)

    def child(self, role: str) -> Node | None:
        """Return the first child with a role, None without one."""
        return next((each for each in self.children if each.role == role), None)


@dataclass(frozen=True, slots=True)
class SyntaxTree:
    """The tree of a text, and its tokens in their order: its leaves, and literals as a whole."""

    root: Node
    tokens: list[Node]


def parse(code: bytes) -> SyntaxTree:
    """Parse Java. A text with faults of syntax has a tree too, with nodes of kind ``ERROR``."""
    cursor = _parser().parse(code).walk()
    tokens: list[Node] = []
    path: list[Node] = []
    while True:
        node = _node(cursor.node, cursor.field_name, len(tokens))
        if path:
            path[-1].children.append(node)
        path.append(node)
        if cursor.goto_first_child():
            continue
        while True:  # leave nodes up to the next sibling
            _close(node := path.pop(), tokens)
            if cursor.goto_next_sibling():
                break
            if not cursor.goto_parent():
                return SyntaxTree(node, tokens)


def _node(parsed: ParsedNode | None, role: str | None, first: int) -> Node:
    assert parsed is not None  # noqa: S101 - a cursor always has a node
    kind, (start, end) = parsed.type, parsed.byte_range
    node = Node(kind, role, parsed.is_named, parsed.is_missing, start, end, first)
    if kind == "ERROR" and not parsed.child_count:
        node.unexpected = str(parsed)
    return node


def _close(node: Node, tokens: list[Node]) -> None:
    if not node.children:
        tokens.append(node)
    elif node.kind in LITERALS:
        tokens[node.first :] = [node]
    node.last = len(tokens)


@per_thread
def _parser() -> Parser:
    return Parser(Language(tree_sitter_java.language()))

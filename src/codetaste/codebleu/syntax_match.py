"""The syntax match: how many sub-trees of the reference are in the candidate (CodeBLEU §3.2).

Two sub-trees match if their named nodes have the same kinds, roles and order; names and values of the code do
not count. A sub-tree is a node with children and all that is below it, the root included. As published the
sub-trees of the reference are counted, and one of the candidate may match several of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from codetaste.codebleu.syntax_tree import Node

    Shapes = dict[Hashable, int]
    """A number for each different shape."""
    Roles = tuple[tuple[str | None, int], ...]
    """Role and shape of the named children of a node."""


def syntax_match(candidate: Node, references: Sequence[Node]) -> float:
    """Return the share of the references' sub-trees that the candidate has, 0 to 1."""
    shapes: Shapes = {}
    there = set(_subtrees(candidate, shapes))
    wanted = [shape for each in references for shape in _subtrees(each, shapes)]
    return sum(shape in there for shape in wanted) / len(wanted)


def _subtrees(root: Node, shapes: Shapes) -> list[int]:
    """Return the shape of each sub-tree: a number, as the texts of sub-trees are quadratic in the depth."""
    found: list[int] = []
    below: dict[Node, Roles] = {}
    stack = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if not is_done:
            stack.append((node, True))
            stack += [(child, False) for child in node.children]
            continue
        children = tuple(
            pair for child in node.children for pair in _as_children(child, below.pop(child), shapes)
        )
        below[node] = children
        if node.children or node is root:
            found.append(_shape((node.kind, node.named, children), shapes))
    return found


def _as_children(node: Node, children: Roles, shapes: Shapes) -> Roles:
    """Return what a node adds to the named children of its parent; one without a name only its own."""
    if not (node.named or node.missing):
        return tuple((role or node.role, shape) for role, shape in children)
    what = (
        (node.kind, node.named, children, node.unexpected, True) if node.missing or node.unexpected else None
    )
    return ((node.role, _shape(what or (node.kind, node.named, children), shapes)),)


def _shape(what: Hashable, shapes: Shapes) -> int:
    return shapes.setdefault(what, len(shapes))

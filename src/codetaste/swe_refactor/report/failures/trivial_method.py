"""Methods that do nothing, which pass the tests of code that no test looks at closely (§5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import METHODS, parse_java, walk_nodes

if TYPE_CHECKING:
    from tree_sitter import Node

_COMMENTS = {"block_comment", "line_comment"}
_NOT_IMPLEMENTED = b"UnsupportedOperationException"


def has_trivial_method(code: str) -> bool:
    """Whether one of the methods in a text has no statement, or only one that stands for nothing.

    Such statements are ``return;``, ``return`` of a literal or of ``this``, and a thrown
    ``UnsupportedOperationException``. A method that returns a field is a normal one. The text may be a class,
    or methods without one.
    """
    data = code.encode("utf-8", "replace")
    units = [parse_java(data), parse_java(b"class X {\n%s\n}\n" % data)]
    readable = [unit for unit in units if unit is not None and unit.error_at is None]
    if not readable:
        return False
    return any(node.type in METHODS and _does_nothing(node) for node in walk_nodes(readable[0].root))


def _does_nothing(method: Node) -> bool:
    body = method.child_by_field_name("body")
    if body is None:
        return False
    statements = [each for each in body.named_children if each.type not in _COMMENTS]
    if not statements:
        return True
    only = statements[0]
    if len(statements) > 1:
        return False
    if only.type == "throw_statement":
        return _NOT_IMPLEMENTED in (only.text or b"")
    values = [each for each in only.named_children if each.type not in _COMMENTS]
    return only.type == "return_statement" and all(
        each.type.endswith("_literal") or each.type in {"true", "false", "this"} for each in values
    )

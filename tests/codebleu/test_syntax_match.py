"""The syntax match, against a comparison of the sub-trees as tree-sitter prints them."""

from __future__ import annotations

import pytest
import tree_sitter_java
from hypothesis import given
from hypothesis import strategies as st
from tree_sitter import Language, Node, Parser

from codetaste.codebleu.syntax_match import syntax_match
from codetaste.codebleu.syntax_tree import parse

pieces = st.sampled_from(
    [
        *"(){};=+.,<>@",
        "int ",
        "a ",
        "b ",
        "f",
        "return ",
        "if ",
        "else ",
        "for ",
        "1",
        '"s"',
        "class ",
        "new ",
        "#",
    ]
)
codes = st.lists(pieces, max_size=25).map("".join)


def printed_subtrees(code: str) -> list[str]:
    stack: list[Node] = [Parser(Language(tree_sitter_java.language())).parse(code.encode()).root_node]
    found = []
    while stack:
        node = stack.pop()
        found.append(str(node))
        stack += [child for child in node.children if child.children]
    return found


def match(candidate: str, *references: str) -> float:
    return syntax_match(parse(candidate.encode()).root, [parse(each.encode()).root for each in references])


@given(codes, codes)
def test_sub_trees_match_if_they_are_printed_alike(candidate: str, reference: str) -> None:
    there, wanted = printed_subtrees(candidate), printed_subtrees(reference)
    assert match(candidate, reference) == sum(each in there for each in wanted) / len(wanted)


@given(codes)
def test_equal_texts_match_entirely(code: str) -> None:
    assert match(code, code) == 1


def test_names_and_values_do_not_count_but_kinds_and_roles_do() -> None:
    assert match("int a = 1;", "int b = 2;") == 1
    assert match("int a = 1;", "int a = x;") < 1


def test_sub_trees_of_all_references_count() -> None:
    one, other = "int a = 1;", "class A { void f() { g(); } }"
    wanted = [len(printed_subtrees(each)) for each in (one, other)]
    assert match(one, one, other) == pytest.approx(wanted[0] / sum(wanted))

"""The data flow of small Java texts, and how it is compared."""

from __future__ import annotations

from codetaste.codebleu.data_flow import Flow, data_flow
from codetaste.codebleu.data_flow_match import data_flow_match
from codetaste.codebleu.syntax_tree import parse

COMES, COMPUTED = "comesFrom", "computedFrom"


def flows(code: str) -> list[Flow]:
    tree = parse(code.encode())
    return data_flow(tree, [code.encode()[each.start : each.end].decode() for each in tree.tokens])


def test_a_declaration_comes_from_its_value_and_a_use_from_the_declaration() -> None:
    assert flows("int a = b; f(a);") == [
        Flow("a", COMES, ("b",)),
        Flow("b", COMES, ()),
        Flow("a", COMES, ("a",)),
    ]


def test_an_assignment_is_computed_from_each_variable_of_its_value() -> None:
    assert flows("x = a + b * 2;")[0] == Flow("x", COMPUTED, ("a", "b", "2"))


def test_an_update_is_computed_from_itself() -> None:
    assert flows("i++;") == [Flow("i", COMPUTED, ("i",))]


def test_a_variable_without_source_and_use_is_no_flow() -> None:
    assert flows("int a; return true;") == []


def test_words_of_the_grammar_are_no_variables() -> None:
    assert flows("boolean a = true; int b = this; return null;") == []


def test_after_a_branch_a_variable_may_have_any_value() -> None:
    code = "int a = x; if (c) { a = y; } else { a = z; } use(a);"
    merged = flows(code)
    assert [each.sources for each in merged if each.variable == "a"] == [("x",), ("y",), ("z",), ("a",)]


def test_in_a_loop_the_value_of_one_turn_reaches_the_next() -> None:
    once = flows("int a = 0; { b = a; a = c; c = d; }")
    for loop in ("while (t) {", "for (int i = 0; t; ) {"):
        twice = flows(f"int a = 0; {loop} b = a; a = c; c = d; }}")
        uses = [each for each in twice if each.variable == "c" and each.relation == COMES]
        assert Flow("c", COMES, ("c",)) in uses
        assert Flow("c", COMES, ("c",)) not in once


def test_the_variable_of_a_loop_over_values_comes_from_them() -> None:
    assert Flow("each", COMPUTED, ("all",)) in flows("for (String each : all) { use(each); }")


def test_a_literal_is_one_variable() -> None:
    assert Flow("s", COMES, ('"a b \\n c"',)) in flows('String s = "a b \\n c";')


def test_what_is_made_up_for_the_parser_does_not_fail() -> None:
    for code in ("int a = ", "for (int x : ) {", "a = ;", "if (", "for (x : y", "int = 3;"):
        flows(code)


def test_names_do_not_count_but_who_is_used_does() -> None:
    code = "int a = x; int b = a + x; f(b, a);"
    renamed = "int p = q; int r = p + q; g(r, p);"
    assert data_flow_match(flows(renamed), [flows(code)]) == 1
    other = "int a = x; int b = a + x; f(a, a);"
    assert len(flows(code)) == 7
    assert data_flow_match(flows(other), [flows(code)]) == 6 / 7


def test_each_flow_of_the_candidate_matches_once() -> None:
    twice, once = "i++; j++;", "i++;"
    same = "i++; i++;"
    assert data_flow_match(flows(once), [flows(same)]) == 1 / 2
    assert data_flow_match(flows(twice), [flows(once)]) == 1


def test_a_reference_without_data_flow_gives_no_figure() -> None:
    assert data_flow_match(flows("i++;"), [flows("return true;")]) is None
    assert data_flow_match(flows(""), [flows("i++;")]) == 0
    assert data_flow_match(flows("i++;"), [flows("i++;"), flows("return true;")]) == 1

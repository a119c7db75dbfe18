"""What is around the calls of a statement, and whether it is what was there before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.answers.java.syntax import normal_code
from codetaste.swe_refactor.score.changes.call_statement import around_calls, calls, is_plain, occurs

NAMES = {b"sum", b"add"}


def around(statement: str) -> tuple[str, ...]:
    return tuple(each.decode() for each in around_calls(normal_code(statement.encode()), NAMES))


@pytest.mark.parametrize(
    ("statement", "pieces"),
    [
        ("total * 2", ("total * 2",)),
        ("int sum = total", ("int sum = total",)),
        ("sum()", ("", "")),
        ("int all = sum(a, b(c)) + 5", ("int all =", "+ 5")),
        ("return this.sum(a) - Sums.add(b)", ("return", "-", "")),
        ("return of(a).sum(b)", ("return", "")),
        ("return new Sums(a).sum(b)", ("return", "")),
        ("return a + all[0].of(b).sum(b)", ("return a +", "")),
        ("sum(a).add(b)", ("", "", "")),
        ("sum(add(b))", ("", "")),
        ("names.forEach(this::add)", ("names . forEach (", ")")),
        ("names.forEach(shop.Cart::add)", ("names . forEach (", ")")),
        ("if (!sum(a))", ("if (", ")")),
        ("if (a && !sum(a)) return b", ("if ( a & &", ") return b")),
        ("if (a) sum(b)", ("if ( a )", "")),
        ("long b = (long) sum(a)", ("long b =", "")),
        ("use(a ? sum(a) : add(b))", ("use ( a ?", ":", ")")),
        ("for (int each : sum(a))", ("for ( int each :", ")")),
        ("run(sum(() ->", ("run (", "")),
        ("a = sum", ("a = sum",)),
    ],
)
def test_calls_are_cut_out_with_receiver_and_arguments(statement: str, pieces: tuple[str, ...]) -> None:
    assert around(statement) == pieces
    assert calls(normal_code(statement.encode()), NAMES) is (len(pieces) > 1)


@pytest.mark.parametrize(
    ("statement", "plain"),
    [
        ("sum(a)", True),
        ("final List<String> all = sum(a)", True),
        ("this.all = sum(a)", True),
        ("return (int) sum(a)", True),
        ("throw sum(a)", True),
        ("if (sum(a)) return null", True),
        ("else if (!sum(a))", True),
        ("for (final String each : sum(a))", True),
        ("try (Reader reader = sum(a))", True),
        ("all += sum(a)", False),
        ("return sum(a) + 1", False),
        ("return -sum(a)", False),
        ("if (sum(a) > 1)", False),
        ("if (b && sum(a))", False),
        ("return sum(a) - add(b)", False),
        ("a", False),
    ],
)
def test_a_plain_statement_evaluates_its_call_alone(statement: str, *, plain: bool) -> None:
    assert is_plain(around_calls(normal_code(statement.encode()), NAMES)) is plain


BEFORE = (
    b"int all(int a) { int b = a * 2 + 5; if (a == LIMIT && b > 3) { use(b, a - 1); } return a < b ? a : b; }"
)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("int b = sum(a) + 5", True),
        ("int b = sum(a) - 5", False),
        ("if (a == LIMIT && sum(b))", True),
        ("if (a != LIMIT && sum(b))", False),
        ("use(sum(b), add(a))", True),
        ("use(sum(b) + 1, a)", False),
        ("return sum(a, b) ? a : b", True),
        ("return sum(a, b) ? b : a", False),
        ("b = sum(a) + 5", False),
    ],
)
def test_texts_around_calls_are_looked_for_in_their_order(statement: str, *, found: bool) -> None:
    pieces = around_calls(normal_code(statement.encode()), NAMES)
    assert occurs(pieces, normal_code(BEFORE)) is found


EXPRESSION = st.recursive(
    st.sampled_from(["a", "b", "1"]),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
    max_leaves=6,
)


@given(EXPRESSION, EXPRESSION, st.sampled_from(["int c = {}", "use({}, a)", "return {} * 2", "c[{}] = b"]))
def test_an_expression_that_becomes_a_call_leaves_what_was_around(one: str, other: str, form: str) -> None:
    code = normal_code(f"void m() {{ {form.format(one)}; }}".encode())
    call = normal_code(form.format(f"sum({other})").encode())
    assert occurs(around_calls(call, NAMES), code)
    changed = normal_code(form.format(f"sum({other}) / 3").encode())
    assert not occurs(around_calls(changed, NAMES), code)

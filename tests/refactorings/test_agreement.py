"""Agreement of refactorings: equal in type and element; each belongs to one pair at most."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from codetaste.refactorings.agreement import Author, compare_refactorings
from codetaste.refactorings.model import CodeRange, Purity, Refactoring


def place(line: int, element: str | None, path: str = "A.java") -> CodeRange:
    return CodeRange(path, line, line + 3, 1, 2, "METHOD_DECLARATION", "a method", element)


def refactoring(kind: str, line: int, result: str, *, pure: bool | None = None) -> Refactoring:
    verdict = None if pure is None else Purity(pure, "", None, 1)
    left = (place(line, f"m{line}()"),)
    return Refactoring(kind, f"{kind} m{line} to {result}", left, (place(1, result),), verdict)


def test_type_and_element_decide_and_results_are_compared() -> None:
    human = [refactoring("Extract Method", 1, "a()", pure=True), refactoring("Rename Method", 5, "b()")]
    agent = [
        refactoring("Extract Method", 1, "x()", pure=False),
        refactoring("Extract Method", 1, "a()"),
        refactoring("Rename Method", 9, "b()"),
    ]
    rows = compare_refactorings(human, agent)
    assert [(row.by, row.type, row.element, row.same_result) for row in rows] == [
        (Author.BOTH, "Extract Method", "m1()", True),
        (Author.HUMAN, "Rename Method", "m5()", False),
        (Author.AGENT, "Extract Method", "m1()", False),
        (Author.AGENT, "Rename Method", "m9()", False),
    ]
    assert (rows[0].human_pure, rows[0].agent_pure, rows[2].agent_pure) == (True, None, False)


def test_one_without_code_before_is_compared_after_the_change() -> None:
    added = Refactoring("Add Method Annotation", "x", (), (place(4, "@Override"),))
    rows = compare_refactorings([added], [added])
    assert [(row.by, row.element) for row in rows] == [(Author.BOTH, "@Override")]
    bare = Refactoring("Move Source Folder", "from a to b", (), ())
    assert [row.by for row in compare_refactorings([bare], [bare])] == [Author.BOTH]


some = st.builds(
    refactoring,
    st.sampled_from(["Extract Method", "Rename Method"]),
    st.integers(1, 3),
    st.sampled_from(["a()", "b()"]),
)


@given(st.lists(some, max_size=6), st.lists(some, max_size=6))
def test_no_refactoring_is_lost_or_counted_twice(human: list[Refactoring], agent: list[Refactoring]) -> None:
    rows = compare_refactorings(human, agent)
    assert Counter(row.human for row in rows if row.human) == Counter(each.description for each in human)
    assert Counter(row.agent for row in rows if row.agent) == Counter(each.description for each in agent)

    def keys(side: list[Refactoring]) -> Counter[tuple[str, int]]:
        return Counter((each.type, each.left[0].start_line) for each in side)

    both = sum(row.by is Author.BOTH for row in rows)
    assert both == (keys(human) & keys(agent)).total()
    assert sum(row.same_result for row in rows) <= both

"""What models are told of the tools' results, and which results reject an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from anyio import CapacityLimiter

from codetaste.errors import JavaError, JavaOutcome
from codetaste.java.checkstyle.service import StyleReport, StyleViolation
from codetaste.orchestration.job import JobContext
from codetaste.refactorings.model import CodeRange, Detection, Purity, Refactoring
from codetaste.swe_refactor.answers.problem import AnswerProblem, AnswerProblemKind
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome
from codetaste.swe_refactor.trials.context import TrialContext
from codetaste.swe_refactor.trials.conversation import AppliedAnswer, apply_text
from codetaste.swe_refactor.trials.pair import evidence
from codetaste.swe_refactor.trials.pair.evidence import Evidence, gather_evidence
from support.swe_refactor.shop import CART, answer, instance, tree

pytestmark = pytest.mark.anyio
EXTRACT = "Extract Method"
PASSED = TestedAnswer(TestOutcome.PASSED, compiles=True, passed=7)
LOG = "[ERROR] /testbed/src/main/java/shop/Cart.java:[18,19] cannot find symbol\n[ERROR] symbol: summ()\n"


@contextmanager
def no_wait(_wait: object) -> Iterator[None]:
    yield


JOB = cast("JobContext", SimpleNamespace(waiting=no_wait))


def pure(*, pure: bool = True) -> Purity:
    return Purity(pure=pure, description="all mapped", comment="Identical statements", mapping_state=1)


def extraction(**changes: Any) -> Refactoring:
    """What RefactoringMiner finds in the right answer."""

    def place(lines: tuple[int, int], words: str, element: str) -> CodeRange:
        return CodeRange(CART, *lines, 5, 6, "METHOD_DECLARATION", words, element)

    total, made = "public total(tax int) : int", "private sum() : int"
    values = {
        "type": EXTRACT,
        "description": f"Extract Method\t{made} extracted from {total} in class shop.Cart",
        "left": (place((14, 21), "source method declaration before extraction", total),),
        "right": (
            place((14, 18), "source method declaration after extraction", total),
            place((20, 26), "extracted method declaration", made),
        ),
        "purity": pure(),
    }
    return Refactoring(**{**values, **changes})


class Miner:
    def __init__(self, found: Any) -> None:
        self.found = found

    async def detect_contents(self, _before: object, _after: object) -> Detection:
        if isinstance(self.found, Exception):
            raise self.found
        return Detection(None, tuple(self.found), "3.1.4")


class Style:
    def __init__(self, *reports: Any) -> None:
        self.reports = [*reports]

    async def check(self, _contents: object) -> StyleReport:
        report = self.reports.pop(0)
        if isinstance(report, Exception):
            raise report
        return StyleReport(tuple(report), ())


async def gather(
    monkeypatch: pytest.MonkeyPatch,
    applied: AppliedAnswer | None = None,
    *,
    tested: TestedAnswer = PASSED,
    found: Any = None,
    style: Style | None = None,
) -> Evidence:
    files, kind = tree(), EXTRACT

    async def test(*_arguments: object) -> TestedAnswer:
        return tested

    async def open_base(_instance: object) -> None:
        return None

    monkeypatch.setattr(evidence, "compile_and_test", test)
    builds = CapacityLimiter(1)
    parts = {
        "source": lambda _instance: SimpleNamespace(tree=files),
        "miner": Miner([extraction()] if found is None else found),
        "bases": SimpleNamespace(open=open_base),
        "pair": SimpleNamespace(checkstyle=style or Style([], []), builds=builds),
    }
    context = cast("TrialContext", SimpleNamespace(**parts))
    applied = applied or apply_text(answer(kind), instance(kind), files)
    gathered = await gather_evidence(instance(kind), applied, context, JOB)
    assert builds.borrowed_tokens == 0
    assert Evidence.from_json(gathered.to_json()) == gathered
    return gathered


async def test_a_good_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await gather(monkeypatch)
    assert [each.good for each in found.findings] == [True] * 3
    assert "It compiles, and 7 tests pass." in found.findings[0].text
    assert (found.is_good, found.bad) == (True, ())


async def test_of_an_answer_that_cannot_be_used_the_problem_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = AnswerProblem(AnswerProblemKind.NO_PARTS, "There is no line of number signs.")
    found = await gather(monkeypatch, AppliedAnswer({}, problem))
    assert [(each.tool, each.good, each.text) for each in found.findings] == [
        ("format", False, problem.sentence)
    ]


@pytest.mark.parametrize(
    ("tested", "good", "text"),
    [
        (
            TestedAnswer(TestOutcome.COMPILE_FAILS, "it fails", compiles=False, log=LOG),
            False,
            "Cart.java:18: cannot find symbol",
        ),
        (
            TestedAnswer(TestOutcome.TESTS_FAIL, "1 test", compiles=True, new_failures=("T::adds",)),
            False,
            "before: T::adds",
        ),
        (TestedAnswer(TestOutcome.HANGS, "no end", log="x" * 9000 + "last words"), False, "last words"),
        (
            TestedAnswer(TestOutcome.EDITS_BUILD, "it changes pom.xml"),
            False,
            "edits build: it changes pom.xml",
        ),
        (TestedAnswer(TestOutcome.BASE_FAILS, "no"), None, "cannot be built here"),
    ],
)
async def test_builds(
    monkeypatch: pytest.MonkeyPatch, tested: TestedAnswer, good: bool | None, text: str
) -> None:
    found = (await gather(monkeypatch, tested=tested)).findings[0]
    assert (found.good, text in found.text) == (good, True), found
    assert len(found.text) < 4000


@pytest.mark.parametrize(
    ("found", "good", "text"),
    [
        ([], False, "It finds no refactoring. Wanted is Extract Method of shop.Cart#total."),
        ([extraction(type="Rename Method")], False, "no Extract Method was found, but Rename Method"),
        (
            [extraction(purity=pure(pure=False))],
            False,
            "more of the code than it needs",
        ),
        ([extraction(purity=None)], None, "cannot say whether it is pure"),
        (JavaError("no answer within 300 s", JavaOutcome.TIMEOUT), None, "It gave no answer."),
    ],
)
async def test_refactorings(
    monkeypatch: pytest.MonkeyPatch, found: Any, good: bool | None, text: str
) -> None:
    finding = (await gather(monkeypatch, found=found)).findings[1]
    assert (finding.good, text in finding.text) == (good, True), finding


async def test_style_is_for_the_reviewer_to_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [StyleViolation(CART, line, "Rule", "It is bad.") for line in range(1, 31)]
    found = await gather(monkeypatch, style=Style([], many))
    assert (found.is_good, found.findings[2].good) == (True, None)
    assert "Cart.java:1: It is bad. (Rule)\n" in found.findings[2].text
    assert found.findings[2].text.endswith("(and 10 more)")
    failed = await gather(monkeypatch, style=Style(JavaError("no", JavaOutcome.CRASH)))
    assert (failed.findings[2].good, failed.findings[2].text) == (None, "It gave no answer.")

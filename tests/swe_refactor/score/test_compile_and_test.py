"""Answers to an instance of a real Maven project: compiled, tested, and each bad end named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codetaste.source.repository import open_repository
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.score.base_build import BaseBuild, BaseFails, build_base
from codetaste.swe_refactor.score.compile_and_test import compile_and_test
from codetaste.swe_refactor.score.interface import keeps_interface
from codetaste.swe_refactor.score.tested_answer import TestedAnswer
from codetaste.swe_refactor.verify.settings import VerifyContext, VerifyLimits
from support.swe_refactor.documents import document
from support.swe_refactor.tested_project import (
    AFTER,
    BEFORE,
    FILES,
    JUNIT_4,
    POM,
    SHOP,
    TEST,
    History,
    method,
)

BASE = {path: text.encode() for path, text in FILES.items()}
TOTAL = method(BEFORE, "int total(int[] prices)")
CORNER = "src/main/java/org/example/CornerShop.java"


def instance() -> RefactoringInstance:
    lines = {"startLine": TOTAL.start_line, "endLine": TOTAL.end_line, "startColumn": 0, "endColumn": 0}
    return RefactoringInstance.from_document(
        document(
            diffLocations=[{"filePath": SHOP, **lines}] * 3,
            filePathBefore=SHOP,
            filePathAfter=SHOP,
            methodNameBefore="org.example.Shop#total",
            sourceCodeBeforeForWhole=BEFORE,
            compileJDK=17,
        )
    )


async def answer(base: BaseBuild, **changes: str | None) -> TestedAnswer:
    """Test an answer; ``changes`` are contents by "shop", "corner", "test", "pom", or "more"."""
    paths = {
        "shop": SHOP,
        "corner": CORNER,
        "test": TEST,
        "pom": "pom.xml",
        "more": "src/main/java/org/example/More.java",
    }
    edited = {paths[name]: None if text is None else text.encode() for name, text in changes.items()}
    return await compile_and_test(base, instance(), BASE, edited)


@pytest.mark.anyio
@pytest.mark.heavy
@pytest.mark.timeout(1800)
async def test_answers_to_one_instance(context: VerifyContext, tmp_path: Path) -> None:
    history = History(tmp_path / "clone")
    repository = await open_repository(history.folder)
    base = await build_base(context, repository, history.first, instance(), tmp_path / "store")
    assert (base.failures, base.jdk) == (frozenset(), 17)

    right = await answer(base, shop=AFTER)
    assert (right.outcome, right.detail, right.compiles, right.passed) == ("passed", "", True, 2), right.log
    assert right.incremental
    assert await answer(base, shop=AFTER) == right, "equal files are tested once"
    assert TestedAnswer.from_json(right.to_json()) == right

    wrong = await answer(base, shop=AFTER.replace("sum += price;", "sum -= price;"))
    assert (wrong.outcome, wrong.compiles, wrong.incremental) == ("tests_fail", True, True)
    assert [name.rpartition("::")[2] for name in wrong.new_failures] == ["adds"]

    typo = await answer(base, shop=AFTER.replace("return sum(prices)", "return summ(prices)"))
    assert (typo.outcome, typo.compiles) == ("compile_fails", False)
    assert "summ" in typo.log

    renamed = await answer(base, shop=BEFORE.replace("String name()", "String named()"))
    assert (renamed.outcome, renamed.incremental) == ("compile_fails", False), "a test calls it"
    gone = await answer(base, corner=None)
    assert (gone.outcome, gone.incremental) == ("compile_fails", False), "a test needs it"
    added = await answer(base, more="package org.example;\nclass More {\n}\n")
    assert (added.outcome, added.incremental) == ("passed", False)

    limited = replace(base, context=replace(context, limits=VerifyLimits(tests_s=20.0)))
    waits = "while (true) { java.util.concurrent.locks.LockSupport.park(); }"
    hanging = await answer(limited, shop=AFTER.replace("return sum(prices);", waits))
    assert (hanging.outcome, hanging.compiles) == ("hangs", None)
    assert len(list((base.store / "answers").glob("*.json"))) == 6, "a higher limit may give another result"

    again = await build_base(context, repository, history.first, instance(), tmp_path / "store")
    assert (again.store, again.failures) == (base.store, base.failures)
    history.first = history.commit({SHOP: BEFORE.replace("return sum;", "return summ;")})
    with pytest.raises(BaseFails, match="compil"):
        await build_base(context, repository, history.first, instance(), tmp_path / "store")


@pytest.mark.anyio
async def test_answers_that_change_tests_or_the_build_are_not_built(
    context: VerifyContext, tmp_path: Path
) -> None:
    base = BaseBuild(context, tmp_path, "", None, None, 17, None, frozenset())  # type: ignore[arg-type]
    tests = await answer(base, shop=AFTER, test=JUNIT_4.replace("3,", "4,"))
    build = await answer(base, shop=AFTER, pom=POM.replace("4.13.2", "4.13"))
    assert (tests.outcome, build.outcome) == ("edits_tests", "edits_build")
    assert TEST in tests.detail
    assert "pom.xml" in build.detail


@pytest.mark.parametrize(
    ("old", "new", "hidden"),
    [
        ("sum += price;", "sum -= price;", True),
        ("    public String name()", "    private int own() { return 1; }\n\n    public String name()", True),
        ("    public String name()", "    int seen() { return 1; }\n\n    public String name()", False),
        ("    public String name()", "    private int field;\n    public String name()", False),
        ("String name()", "String name() throws Error", False),
        ("String name()", "String named()", False),
        ("import java.util.List;", "import java.util.*;", False),
        ("class Shop {", "class Shop implements Cloneable {", False),
        ("return sum;", "return sum", False),
        ("/** Overloads", "/** Other overloads", True),
    ],
)
def test_an_edit_is_seen_from_other_files_or_not(old: str, new: str, *, hidden: bool) -> None:
    assert keeps_interface(BEFORE.encode(), BEFORE.replace(old, new).encode()) is hidden

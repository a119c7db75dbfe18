"""Candidates of a real Maven project are compiled, tested and measured; bad ones have named outcomes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from codetaste.core.concurrency import gather
from codetaste.java.build.coverage import CoverageTarget
from codetaste.sandbox.config import SandboxConfig
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.verify.local_repository import LocalRepository
from codetaste.swe_refactor.verify.outcome import VerificationOutcome as Outcome
from codetaste.swe_refactor.verify.request import MoveTarget, VerificationRequest
from codetaste.swe_refactor.verify.settings import VerifyContext, VerifyLimits
from codetaste.swe_refactor.verify.verification import Verification
from codetaste.swe_refactor.verify.verify import verify_candidate
from support.sandbox.providers import open_bubblewrap
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

pytestmark = pytest.mark.anyio
TOTAL = method(BEFORE, "int total(int[] prices)")
WRAPPER = "gradle/wrapper/gradle-wrapper.properties"
SUM = method(AFTER, "int sum(int[] prices)")


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "clone")


def with_statement(statement: str) -> str:
    return JUNIT_4.replace("assertEquals(3", f"{statement}\nassertEquals(3")


async def verify(context: VerifyContext, history: History, after: str, **more: object) -> Verification:
    fields = {"before_methods": (TOTAL,), "after_methods": (SUM,), **more}
    request = VerificationRequest("test", history.first, after, **fields)  # type: ignore[arg-type]
    return await verify_candidate(context, await open_repository(history.folder), request)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
async def test_candidates_of_one_project(context: VerifyContext, history: History) -> None:
    till = CoverageTarget(SHOP, "org.example.Shop.Till", "total", 7, 9)
    untested = method(BEFORE, "int total(List<T> prices)")
    methods = (TOTAL, method(BEFORE, "String name()"), untested, till)
    own = {"pom.xml": f"{POM}<!-- of this test: nothing is prepared for it -->"}
    history.first = history.commit(own)
    extracted = history.commit({SHOP: AFTER, **own})
    first, second = await gather(2 * [partial(verify, context, history, extracted)])
    assert [first.outcome, second.outcome] == [Outcome.VERIFIED, Outcome.VERIFIED]
    assert sorted([first.fetch_s > 0, second.fetch_s > 0]) == [False, True], "one fetched for both"
    result = first if first.fetch_s else second
    assert result.detail == ""
    assert (result.tool, result.compiles_before, result.compiles_after) == ("maven", True, True)
    assert result.jdk is not None
    assert result.before is not None
    assert result.after is not None
    assert (result.before.passed, result.before.failed, result.after.passed) == (2, 0, 2)
    (before,), (after,) = result.before.coverage, result.after.coverage
    assert before is not None
    assert after is not None
    assert (before.class_name, before.descriptor) == ("org/example/Shop", "([I)I")
    assert before.covered_lines == (14, 15, 16, 18)
    assert (after.name, after.missed_lines) == ("sum", ())
    assert Verification.from_json(result.to_json()) == result

    again = await verify(context, history, extracted, before_methods=methods)
    assert again.fetch_s == 0, "nothing is fetched twice"
    assert again.outcome is Outcome.NOT_COVERED
    assert again.before is not None
    covered = [each is not None and each.is_covered for each in again.before.coverage]
    assert covered == [True, True, False, False]


@pytest.mark.heavy
@pytest.mark.timeout(1800)
async def test_a_commit_that_breaks_a_test_or_the_compilation_is_named(
    context: VerifyContext, history: History
) -> None:
    broken = history.commit({SHOP: AFTER.replace("sum += price;", "sum -= price;")})
    failing = await verify(context, history, broken)
    assert failing.outcome is Outcome.TESTS_FAIL
    assert [name.rpartition("::")[2] for name in failing.new_failures] == ["adds"]

    typo = history.commit({SHOP: AFTER.replace("return sum(prices)", "return summ(prices)")})
    result = await verify(context, history, typo)
    assert (result.outcome, result.compiles_before, result.compiles_after) == (
        Outcome.COMPILE_FAILS_AFTER,
        True,
        False,
    )
    assert "after" in result.detail


@pytest.mark.heavy
@pytest.mark.timeout(1800)
async def test_coverage_is_measured_where_the_pom_decides_on_the_options_of_the_jvm(
    context: VerifyContext, history: History
) -> None:
    literal = "<version>3.2.5</version><configuration><argLine>-Xmx64m</argLine></configuration>"
    after = history.commit({SHOP: AFTER, "pom.xml": POM.replace("<version>3.2.5</version>", literal)})
    result = await verify(context, history, after)
    assert (result.outcome, result.detail) == (Outcome.VERIFIED, "")
    assert result.after is not None
    (covered,) = result.after.coverage
    assert covered is not None
    assert covered.is_covered


@pytest.mark.heavy
@pytest.mark.timeout(1800)
async def test_a_project_below_the_top_of_its_repository_is_verified(
    context: VerifyContext, history: History
) -> None:
    nothing: dict[str, str | None] = dict.fromkeys(FILES)

    def below(files: dict[str, str]) -> dict[str, str | None]:
        return {**nothing, **{f"java/{path}": content for path, content in files.items()}}

    history.first = history.commit(below(FILES))
    after = history.commit(below({**FILES, SHOP: AFTER}))
    methods = [(replace(each, path=f"java/{SHOP}"),) for each in (TOTAL, SUM)]
    result = await verify(context, history, after, before_methods=methods[0], after_methods=methods[1])
    assert (result.outcome, result.detail) == (Outcome.VERIFIED, "")


NO_NAMES: dict[str, str | None] = {"src/test/java/org/example/NameTest.java": None}
LITTLE_MEMORY = "<properties><argLine>-Xmx32m -XX:+ExitOnOutOfMemoryError</argLine>"
FILLS = "for (long[][] all = new long[9999][]; all != null;) all[0] = new long[99999999];"


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("changes", "outcome", "detail"),
    [
        ({TEST: None, **NO_NAMES}, Outcome.NO_TESTS, ""),
        (
            {TEST: with_statement("if (true) throw new java.awt.HeadlessException();"), **NO_NAMES},
            Outcome.WANTS_GUI,
            "",
        ),
        ({TEST: with_statement("Runtime.getRuntime().halt(3);")}, Outcome.JVM_DIES, ""),
        (
            {TEST: with_statement(FILLS), "pom.xml": POM.replace("<properties>", LITTLE_MEMORY)},
            Outcome.OUT_OF_MEMORY,
            "",
        ),
        ({"pom.xml": POM.replace("<version>4.13.2", "<version>4.99.99")}, Outcome.NEEDS_DOWNLOAD, "4.99.99"),
        ({"pom.xml": POM.replace(">8<", ">99<")}, Outcome.MISSING_JDK, "99"),
    ],
    ids=["no tests", "gui", "dying JVM", "no memory", "unknown dependency", "unknown JDK"],
)
async def test_a_build_that_cannot_be_used_is_named(
    context: VerifyContext, history: History, changes: dict[str, str | None], outcome: Outcome, detail: str
) -> None:
    history.first = history.commit(changes)
    result = await verify(context, history, history.first, after_methods=())
    assert result.outcome is outcome, result.log
    assert detail in result.detail


@pytest.mark.heavy
@pytest.mark.timeout(1800)
async def test_build_that_hangs_costs_its_time_limit(context: VerifyContext, history: History) -> None:
    hanging = with_statement("try { Thread.sleep(9999999); } catch (InterruptedException problem) { }")
    history.first = history.commit({TEST: hanging})
    limited = replace(context, limits=VerifyLimits(tests_s=8.0))
    result = await verify(limited, history, history.first, after_methods=())
    assert result.outcome is Outcome.HANGS
    assert "8s" in result.detail


async def test_what_files_show_needs_no_build(tmp_path: Path, history: History) -> None:
    async with open_bubblewrap(tmp_path / "sandboxes") as sandboxes:
        local = LocalRepository(tmp_path / "dependencies")
        context = VerifyContext(
            sandboxes,
            SandboxConfig(),
            "",
            local,
            tmp_path,
            tmp_path,
            "agent.jar",
            "cli.jar",
            "https://a.example",
            (),
        )
        new_file, new_class = (
            MoveTarget("src/New.java", "New"),
            MoveTarget(SHOP, "org.example.Shop.Counter"),
        )
        moved = await verify(context, history, history.first, move_targets=(new_file,))
        nested = await verify(context, history, history.first, move_targets=(new_class,))
        url = "distributionUrl=https\\://b.example/gradle-8.5-bin.zip"
        history.first = history.commit({"pom.xml": None, "build.gradle": "", WRAPPER: url})
        wrapper = await verify(context, history, history.first)
        old_build = {"pom.xml": None, "java/build.gradle": "", f"java/{WRAPPER}": url, f"java/{SHOP}": BEFORE}
        history.first = history.commit(old_build)
        below = await verify(
            context, history, history.first, before_methods=(replace(TOTAL, path=f"java/{SHOP}"),)
        )
        elsewhere = await verify(context, history, history.first)
        history.first = history.commit({"pom.xml": None, "build.xml": "<project/>"})
        ant = await verify(context, history, history.first)
    assert moved.outcome is nested.outcome is Outcome.MOVE_TARGET_MISSING
    assert "New" in moved.detail
    assert (wrapper.outcome, wrapper.tool) == (Outcome.WRAPPER_WITHOUT_DISTRIBUTION, "gradle")
    assert "Gradle 8.5" in wrapper.detail
    assert "b.example" in wrapper.detail
    assert (below.outcome, below.tool) == (Outcome.WRAPPER_WITHOUT_DISTRIBUTION, "gradle")
    assert elsewhere.outcome is Outcome.NO_BUILD_FILE
    assert ant.outcome is Outcome.NO_BUILD_FILE
    assert "Ant" in ant.detail

"""Instances are built from a history with the real tools: exactly the right ones; killed and continued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.flows.tiny_benchmark import (
    CommandResult,
    assert_no_finished_job_ran_twice,
    leftover_processes,
)
from support.swe_refactor.construction_run import (
    ConstructionRun,
    count,
    count_sessions,
    keys,
    make_broken_jdk,
    make_run,
    oldest_jdk,
    without_times,
)
from support.swe_refactor.shop_history import ShopHistory, make_shop
from support.swe_refactor.shop_sources import BASKET, PAGES, RATES, SHELVES
from support.swe_refactor.tested_project import SHOP

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]


def covered(
    instructions: tuple[int, int],
    lines: tuple[int, int],
    branches: tuple[int, int] | None = None,
    complexity: tuple[int, int] = (1, 0),
) -> dict[str, dict[str, int]]:
    """Return JaCoCo's counters of a method that ran; each pair is what ran and what was missed."""
    counters = {
        "INSTRUCTION": instructions,
        "BRANCH": branches,
        "LINE": lines,
        "COMPLEXITY": complexity,
        "METHOD": (1, 0),
    }
    return {
        name: {"missed": counter[1], "covered": counter[0]}
        for name, counter in counters.items()
        if counter is not None
    }


@dataclass(frozen=True)
class Expected:
    """An instance: the lines of its methods in its id, and the coverage of its target, counted by hand."""

    type: str
    id: str
    method: str
    file_before: str
    file_after: str
    coverage: dict[str, dict[str, int]]


EXPECTED = {
    "extract": Expected(
        "Extract Method",
        "12_19_17_23_12_15",
        "org.example.Shop#total",
        SHOP,
        SHOP,
        covered((24, 0), (4, 0), (2, 0), (2, 0)),
    ),
    "inline": Expected(
        "Inline Method",
        "32_34__32_36_36_40",
        "org.example.Shelves.Right.Item#square",
        SHELVES,
        SHELVES,
        covered((12, 0), (3, 0)),
    ),
    "move": Expected(
        "Move Method",
        "18_24__9_15",
        "org.example.Basket#tax",
        BASKET,
        RATES,
        covered((13, 2), (3, 1), (1, 1), (1, 1)),
    ),
    "move and rename": Expected(
        "Move And Rename Method",
        "18_24__17_23",
        "org.example.Basket#roundUp",
        BASKET,
        RATES,
        covered((14, 0), (4, 0), (2, 0), (2, 0)),
    ),
    "extract and move": Expected(
        "Extract And Move Method",
        "18_25_7_13_18_21",
        "org.example.Basket#describe",
        BASKET,
        BASKET,
        covered((25, 0), (6, 0)),
    ),
    "move and inline": Expected(
        "Move And Inline Method",
        "23_29__23_31_7_12",
        "org.example.Prices#highest",
        BASKET,
        BASKET,
        covered((19, 0), (4, 0)),
    ),
}
"""The instances by their commits, the oldest first."""
DROPPED = {
    "first": {("1 mine", "first_commit", "")},
    "merge": {("1 mine", "merge", "")},
    "no Java": {("1 mine", "no_java", "")},
    "rename": {("2 purity", "no_refactoring_of_the_types", "")},
    **{
        name: {("2 purity", "no_refactoring", "")}
        for name in ("comment", "tests pass", "no typo", "unparsable")
    },
    "impure": {("2 purity", "impure", "Extract Method")},
    "untested": {
        ("4 verify", "not_covered", "Extract Method"),
        ("4 verify", "move_target_missing", "Move Method"),
    },
    "tests fail": {("4 verify", "tests_fail", "Extract Method")},
    "typo": {("4 verify", "compile_fails_after", "Extract Method")},
}
"""Step, outcome and type of all that gives no instance, by commit."""


@dataclass(frozen=True)
class BuiltShop:
    """The history, the run over all of it, and what the command said."""

    history: ShopHistory
    run: ConstructionRun
    result: CommandResult


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory, bubblewrap: Path, require: Callable[..., None]
) -> BuiltShop:
    require("mvn")
    require("javac")
    folder = tmp_path_factory.mktemp("construction")
    history = make_shop(folder / "clones")
    run = make_run(folder, history)
    return BuiltShop(history, run, run.build())


def test_the_command_gives_exactly_the_pure_tested_ones(shop: BuiltShop) -> None:
    assert shop.result.code == 0, shop.result.err
    commits, outcomes = shop.history.commits, shop.result.json["candidates"]
    found: dict[str, set[tuple[str, str, str]]] = {name: set() for name in commits}
    names = {commit: name for name, commit in commits.items()}
    for each in outcomes:
        found[names[each["commit"]]].add((each["step"], each["outcome"], each["type"]))
    verified = {name: {("4 verify", "verified", each.type)} for name, each in EXPECTED.items()}
    assert found == {**verified, **DROPPED}
    assert len(outcomes) == sum(map(len, found.values()))
    details = {each["outcome"]: each["detail"] for each in outcomes}
    assert details["tests_fail"].endswith("org.example.TillTest::takesFee"), "others failed before, too"
    assert details["compile_fails_after"].startswith("compilation of the side after ")
    assert PAGES in details["move_target_missing"]
    ids = [f"{commits[name]}_{each.id}" for name, each in reversed(EXPECTED.items())]
    assert shop.result.json["instances"] == ids, "the newest first"


@pytest.mark.parametrize("name", EXPECTED)
def test_each_type_has_its_instance(shop: BuiltShop, name: str) -> None:
    expected, commit = EXPECTED[name], shop.history.commits[name]
    (instance,) = [each for each in shop.run.instances() if each.commit_id == commit]
    assert instance.unique_id == f"{commit}_{expected.id}"
    assert (instance.type, instance.method_name_before) == (expected.type, expected.method)
    assert instance.file_path_before == expected.file_before
    assert instance.file_path_after == expected.file_after
    assert instance.is_pure_refactoring
    assert instance.move_file_exist
    assert instance.verified
    assert instance.java_release == oldest_jdk()
    assert instance.document["coverageInfo"] == expected.coverage
    assert instance.own["other_refactorings"] == {}


def test_instances_know_their_callers_and_the_code_that_came_out(shop: BuiltShop) -> None:
    instances = {each.type: each for each in shop.run.instances()}
    extract, inline = instances["Extract Method"].context, instances["Inline Method"].context
    assert extract is not None
    assert [each.member for each in extract.callers] == ["org.example.ShopTest#adds"], "by an heir"
    assert [each.name for each in extract.children] == ["org.example.CornerShop"]
    assert inline is not None
    assert [each.member for each in inline.callers] == ["org.example.Shelves.Right.Item#area"]
    (extracted,) = instances["Extract And Move Method"].diff_source_code_set
    assert extracted.startswith("static String line(String title, int[] prices) {")
    checked = shop.run.workspace.cli("swe-refactor", "check", str(shop.run.folder / "instances.json"))
    assert checked.code == 0, checked.out + checked.err


def test_table_6_counts_them(shop: BuiltShop) -> None:
    types = ("extract", "inline", "move", "extract_and_move", "move_and_rename", "move_and_inline")
    numbers = {"commits": 18, **{f"{each}_method": 1 for each in types}, "pure_refactorings": 6}
    assert shop.run.table("projects") == [
        ("example/shop", column, str(number)) for column, number in numbers.items()
    ]
    counted = {(each["step"], each["outcome"]): each["number"] for each in shop.result.json["outcomes"]}
    assert counted == {
        **{("1 mine", name): 1 for name in ("first_commit", "merge", "no_java")},
        **{("2 purity", name): 1 for name in ("impure", "no_refactoring_of_the_types")},
        ("2 purity", "no_refactoring"): 4,
        **{
            ("4 verify", name): 1
            for name in ("not_covered", "move_target_missing", "tests_fail", "compile_fails_after")
        },
        ("4 verify", "verified"): 6,
    }


def test_killed_at_any_moment_it_continues_to_the_same_instances(tmp_path: Path, shop: BuiltShop) -> None:
    commits = shop.history.commits
    wanted = [commits["inline"], commits["extract"]]
    run = make_run(tmp_path, shop.history, f"{commits['first']}..{wanted[0]}")
    under_way = run.kill_when(lambda journal: count(journal, "started", "detect") > 0)
    assert _kinds(under_way) == {"detect"}
    run.take_dependencies(shop.run)
    run.kill_when(lambda journal: count(journal, "ended", "detect") > 0)
    under_way = run.kill_when(lambda journal: count(journal, "started", "enrich") > 0)
    assert "enrich" in _kinds(under_way)
    under_way = run.kill_when(lambda _: any(run.sandboxes.glob("*/output/coverage/jacoco.exec")))
    assert "verify" in _kinds(under_way)
    run.kill_when(lambda journal: count(journal, "ended", "verify") > 0)
    result = run.build()
    assert result.code == 0, result.err
    journal = run.workspace.journal()
    ended = keys(journal, "ended")
    assert len(ended) == len(set(ended)) == 6, "each job of two commits has ended once"
    assert [count(journal, "ended", kind) for kind in ("detect", "enrich", "verify")] == [2, 2, 2]
    assert_no_finished_job_ran_twice([each for each in journal if _is_done_once(each)])
    whole = [without_times(each) for each in shop.run.instances() if each.commit_id in wanted]
    assert [without_times(each) for each in run.instances()] == whole
    _check_nothing_is_left(run, tmp_path)
    file, before = (run.folder / "instances.json").read_bytes(), journal
    assert run.stop_when(lambda journal: count_sessions(journal) > count_sessions(before)) in {0, 130}
    assert (run.folder / "instances.json").read_bytes() == file, "nothing that was there is lost"


def test_without_verification_it_ends_with_step_3_and_repeats_nothing(
    tmp_path: Path, require: Callable[..., None]
) -> None:
    require("javac")
    history = make_shop(tmp_path / "clones")
    first, extract, inline = (history.commits[name] for name in ("first", "extract", "inline"))
    run = make_run(tmp_path, history, f"{first}..{inline}")
    settings = ("verify=false", 'types=["Extract Method"]')
    options = [part for each in settings for part in ("--set", f"swe_refactor.build.{each}")]
    broken = f"swe_refactor.build.refactoring_miner.jdk={make_broken_jdk(tmp_path / 'jdk')}"
    result = run.build(*options, "--set", broken)
    rows = [(each["step"], each["outcome"]) for each in result.json["candidates"]]
    assert (result.code, rows) == (1, 2 * [("1 mine", "not_done")]), "no matter of the commits"
    assert "ended with 7" in result.json["candidates"][0]["detail"]
    result = run.build(*options)
    assert result.code == 0, result.err
    rows = [(each["commit"], each["step"], each["outcome"]) for each in result.json["candidates"]]
    assert rows == [(inline, "2 purity", "type_not_wanted"), (extract, "3 enrich", "enriched")]
    (instance,) = run.instances()
    assert (instance.commit_id, instance.verified, instance.test_result) == (extract, False, None)
    started = keys(run.workspace.journal(), "started")
    assert sorted(started[-4:]) == sorted(
        f"{kind}/example/shop/{commit}" for kind in ("detect", "enrich") for commit in (extract, inline)
    )
    assert run.build(*options).json == result.json
    assert keys(run.workspace.journal(), "started") == started, "all was done"


def _kinds(under_way: set[str]) -> set[str]:
    return {key.partition("/")[0] for key in under_way}


def _is_done_once(line: dict[str, Any]) -> bool:
    """Return whether a line is of another job than those that each session repeats."""
    return not str(line.get("key", "")).startswith("candidates/")


def _check_nothing_is_left(run: ConstructionRun, folder: Path) -> None:
    assert not list(leftover_processes(str(folder)))
    assert not list(run.sandboxes.glob("*/output"))
    assert not [*(run.project / "scratch").glob("*"), *run.project.glob("dependencies/incoming-*")]

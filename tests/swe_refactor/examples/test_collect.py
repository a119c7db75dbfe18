"""A corpus made of the commits of an oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import JavaError, JavaOutcome
from codetaste.swe_refactor.examples.collect import CollectedCorpus, collect_corpus
from codetaste.swe_refactor.examples.corpus import read_corpus
from codetaste.swe_refactor.examples.oracle import list_oracle
from codetaste.swe_refactor.examples.overlap import InstanceOverlap
from support.swe_refactor.example_run import make_instance
from support.swe_refactor.oracle_clone import RECORD, Detector, refactoring, write_clone

pytestmark = pytest.mark.anyio
NOTHING = InstanceOverlap.of(())


async def collect(clone: Path, detector: Any, overlap: InstanceOverlap = NOTHING) -> CollectedCorpus:
    return await collect_corpus(list_oracle(clone), detector, overlap, at_once=2)


async def test_each_example_is_a_line_and_all_others_are_counted(tmp_path: Path) -> None:
    clone = write_clone(tmp_path, "d" * 40)
    detector = Detector(
        refactoring("Extract Method\tone"),
        refactoring("Extract Method\tfalse"),
        refactoring("Rename Method\tthree", "Rename Method"),
    )
    collected = await collect(clone, detector)
    (line,) = collected.lines
    assert json.loads(line)["commitId"] == RECORD["commitId"]
    assert collected.types == {"Extract Method": 1}
    assert collected.left_out == {"duplicate": 1, "unconfirmed": 2, "other_type": 2}
    path = tmp_path / "examples.jsonl"
    path.write_text(f"{line}\n")
    assert len(read_corpus(path, ()).examples) == 1


async def test_what_overlaps_with_instances_is_left_out(tmp_path: Path) -> None:
    twin = InstanceOverlap.of([make_instance("twin", RECORD["sourceCodeBeforeRefactoring"])])
    collected = await collect(write_clone(tmp_path), Detector(refactoring("Extract Method\tone")), twin)
    assert (collected.lines, collected.left_out) == ((), {"overlap": 1})


async def test_a_commit_without_an_answer_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    fault = JavaError("no answer within 300 s", JavaOutcome.TIMEOUT)
    detector = Detector(refactoring("Extract Method\tone"), faults=[fault])
    collected = await collect(write_clone(tmp_path, "d" * 40), detector)
    assert len(collected.lines) == 1
    assert [each.endswith("no answer within 300 s") for each in collected.problems] == [True]


async def test_progress_counts_commits_and_lines(tmp_path: Path) -> None:
    seen = []
    await collect_corpus(
        list_oracle(write_clone(tmp_path, "d" * 40)),
        Detector(refactoring("Extract Method\tone"), refactoring("Extract Method\ttwo")),  # type: ignore[arg-type]
        NOTHING,
        at_once=1,
        progress=lambda done, lines: seen.append((done, lines)),
    )
    assert seen == [(0, 0), (1, 2), (2, 4)]

"""The oracle in a clone of RefactoringMiner, read into lines of a corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import ConfigError, JavaError, JavaOutcome, SourceError
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import refactoring_service
from codetaste.swe_refactor.examples.corpus import read_corpus
from codetaste.swe_refactor.examples.oracle import ORACLE_FOLDER, list_oracle, oracle_records
from support.refactorings import examples
from support.refactorings.java_tools import tools_in
from support.swe_refactor.example_records import AFTER, BEFORE, PATH, write_corpus
from support.swe_refactor.oracle_clone import RECORD, Detector, refactoring, write_clone, write_real_clone

pytestmark = pytest.mark.anyio


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return write_clone(tmp_path / "clone")


async def test_confirmed_refactorings_of_the_six_types_become_lines(clone: Path, tmp_path: Path) -> None:
    (commit,) = list_oracle(clone)
    detector: Any = Detector(
        refactoring("Extract Method\tone"),
        refactoring("Extract Method\ttwo"),
        refactoring("Extract Method\tfalse"),
        refactoring("Extract Method\tnot listed"),
        refactoring("Rename Method\tthree", "Rename Method"),
    )
    records, left_out = await oracle_records(commit, detector)
    assert left_out == {"unconfirmed": 2, "other_type": 1}
    assert detector.requests == [({PATH: BEFORE}, {PATH: AFTER})]
    assert [(each["description"], each["humanPure"], each["humanComment"]) for each in records] == [
        ("Extract Method\tone", True, "fine"),
        ("Extract Method\ttwo", None, ""),
    ]
    for key in ("sourceCodeBeforeRefactoring", "sourceCodeAfterRefactoring", "filePathBefore", "startLine"):
        assert records[0][key] == RECORD[key]
    assert set(records[0]) == set(RECORD)
    corpus = read_corpus(write_corpus(tmp_path, records), ())
    assert len(corpus.examples) == 1
    assert [each.reason for each in corpus.left_out] == ["duplicate"]


async def test_what_no_list_has_becomes_a_line_if_it_is_wanted(clone: Path) -> None:
    (commit,) = list_oracle(clone)
    detector: Any = Detector(refactoring("Extract Method\tfalse"), refactoring("Extract Method\tnot listed"))
    records, left_out = await oracle_records(commit, detector, unconfirmed=True)
    assert [(each["description"], each["humanPure"]) for each in records] == [
        ("Extract Method\tnot listed", None)
    ]
    assert left_out == {"unconfirmed": 1}


async def test_no_answer_names_the_commit(clone: Path) -> None:
    (commit,) = list_oracle(clone)
    detector: Any = Detector(faults=[JavaError("no answer within 300 s", JavaOutcome.TIMEOUT)])
    with pytest.raises(SourceError, match=r"^shop-a{40}: no answer within 300 s$"):
        await oracle_records(commit, detector)


async def test_a_file_outside_of_its_commit_is_refused(clone: Path) -> None:
    (commit,) = list_oracle(clone)
    names = json.loads(commit.description.read_text())
    commit.description.write_text(json.dumps({**names, "filesBefore": ["../../data.json"]}))
    with pytest.raises(SourceError, match="not a commit of the oracle"):
        await oracle_records(commit, Detector())  # type: ignore[arg-type]


async def test_a_file_that_is_missing_is_named(clone: Path) -> None:
    (commit,) = list_oracle(clone)
    (clone / ORACLE_FOLDER / "commits" / f"shop-{RECORD['commitId']}" / PATH).unlink()
    with pytest.raises(SourceError, match=r"Shop\.java: No such file"):
        await oracle_records(commit, Detector())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "problem"),
    [("[", "not a list of the oracle"), ('{"a": 1}', "not a list"), ("[1]", "not a list")],
)
async def test_a_damaged_list_is_one_line(clone: Path, content: str, problem: str) -> None:
    (clone / ORACLE_FOLDER / "data.json").write_text(content)
    with pytest.raises(ConfigError, match=rf"data\.json: {problem}"):
        list_oracle(clone)


async def test_a_folder_without_an_oracle_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no oracle; name a checked-out clone"):
        list_oracle(tmp_path)


@pytest.mark.heavy
async def test_the_real_refactoring_miner_gives_a_line_that_is_an_example(tmp_path: Path) -> None:
    clone = write_real_clone(tmp_path / "clone")
    cache = tools_in(tmp_path / "cache", "refactoring-miner-3.1.4")
    (found,) = list_oracle(clone)
    async with refactoring_service(RefactoringMinerConfig(workers=1), cache) as service:
        records, _ = await oracle_records(found, service)
    (example,) = read_corpus(write_corpus(tmp_path, records), ()).examples
    assert example.source_code_before_refactoring.strip() == examples.LONG.replace("\n", "\n  ")
    assert example.source_code_after_refactoring.endswith(examples.EXTRACTED.replace("\n", "\n  "))
    assert example.is_pure
    assert example.human_pure is None

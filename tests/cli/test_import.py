"""``codetaste import``: published outputs become a run, and the same numbers come out either way."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import anyio
import pytest

from codetaste.evaluation.trials.read import read_outputs
from codetaste.evaluation.trials.records import TrialRecord
from support.cli import invoke
from support.evaluation.published_outputs import PATH, Outputs, scores, write


@pytest.fixture
def made(tmp_path: Path) -> Outputs:
    """Two agents on two tracks with attempts, baselines, a pseudo agent, and something wrong."""
    made = Outputs(tmp_path / "checkout" / "outputs")
    made.null()
    made.baselines((20, 1), (19, 2))
    made.trial("a")
    made.trial("a", at="instructed/direct", metadata={"cost_usd": None})
    made.trial("a/attempt-2", identity="a", rules=(4, 4, 0, 6))
    failed = made.trial("b <i>", metadata={"finish_reason": "timeout"}, patch=b"")
    (failed / "evaluation/evaluation_result.json").unlink()
    cut = made.trial("c", rules=(1, 4, 0, 6))
    (cut / "evaluation/rules_negative.sarif").write_bytes(b'{"runs": [')
    ours = made.trial("d", metadata={"additional": {"codetaste_version": "0.6.0"}})
    write(ours / "evaluation/scores.json", scores())
    (ours / "secret.bin").write_bytes(b"not of the layout")
    return made


Typed = Callable[..., str]


@pytest.fixture
def codetaste(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    monkeypatch.chdir(tmp_path)
    return partial(invoke.codetaste, capsys)


def values(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Records without what has to differ: where they lie, and what their run is called."""
    return [replace(record, run="", folder=Path()) for record in records]


def test_an_imported_run_reads_as_what_it_was_made_of(
    made: Outputs, tmp_path: Path, codetaste: Typed
) -> None:
    before = read_outputs(made.root)
    told = json.loads(codetaste("import", made.root, "--name", "taken", "--json"))
    after = read_outputs(tmp_path / "runs/taken")
    assert values(after.records) == values(before.records)
    assert len(after.records) == told["trials"] == 7
    assert {record.run for record in after.records} == {"taken"}
    assert sorted(p.kind for p in after.problems) == sorted(p.kind for p in before.problems)
    assert told["statuses"] == {"scored": 5, "failed": 1, "partial": 1}
    assert {problem["kind"] for problem in told["problems"]} == {"number", "name", "truncated"}
    assert not list((tmp_path / "runs").rglob("secret.bin"))
    assert json.loads((tmp_path / "runs/taken/import.json").read_text())["trials"] == 7


def test_a_trial_that_belongs_nowhere_is_named_and_not_counted(
    made: Outputs, tmp_path: Path, codetaste: Typed
) -> None:
    made.trial("lost", metadata={"description_type": None})
    bare = (made.root / "open/direct").rename(tmp_path / "bare")
    told = json.loads(codetaste("import", bare, "--name", "taken", "--json"))
    assert told["trials"] == len(read_outputs(tmp_path / "runs/taken").records) == 5
    assert any(p["kind"] == "layout" and p["location"].endswith("lost") for p in told["problems"])


def test_a_runs_own_outputs_can_be_imported_again_and_read_the_same(
    made: Outputs, tmp_path: Path, codetaste: Typed
) -> None:
    codetaste("import", made.root, "--name", "one")
    codetaste("import", "runs/one", "--name", "two")
    one, two = (read_outputs(tmp_path / "runs" / name) for name in ("one", "two"))
    assert values(one.records) == values(two.records)


@pytest.mark.parametrize("top", ["outputs/", "", "checkout/outputs/"])
def test_an_archive_is_taken_as_its_folder_is(
    made: Outputs, tmp_path: Path, top: str, codetaste: Typed
) -> None:
    with zipfile.ZipFile(tmp_path / "outputs.zip", "w") as archive:
        for path in sorted(made.root.rglob("*")):
            if path.is_file():
                archive.write(path, f"{top}{path.relative_to(made.root)}")
    codetaste("import", "outputs.zip", "--name", "taken")
    before = [record.scores.ifr for record in read_outputs(made.root).records]
    assert [record.scores.ifr for record in read_outputs(tmp_path / "runs/taken").records] == before
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["taken"]


def split_zip() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("x", "y")
    content = bytearray(packed.getvalue())
    content[content.rfind(b"PK\5\6") + 4] = 3
    return bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("outputs.zip", split_zip(), "is a part of a split archive"),
        ("outputs.z01", b"PK\3\4", "is a part of a split archive"),
        ("outputs.zip", b"PK\3\4 but no more", "damaged"),
        ("outputs.tar", b"", "empty file"),
    ],
)
def test_an_archive_that_cannot_be_taken_leaves_nothing(
    tmp_path: Path, name: str, content: bytes, said: str, codetaste: Typed
) -> None:
    (tmp_path / name).write_bytes(content)
    code = 2 if "split" in said else 1
    assert said in codetaste("import", name, "--name", "taken", code=code)
    assert not (tmp_path / "runs/taken").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["checkout", "--name", "../out"], "a name has only letters"),
        (["checkout", "--name", "there"], "exists already"),
        (["nowhere", "--name", "x"], "no such folder or archive"),
        (["checkout", "--name", "x", "--score"], "need --benchmark"),
        (["journal", "--name", "x"], "is already a codetaste run: report it directly"),
    ],
)
def test_import_invalid_source_is_rejected_before_writing(
    made: Outputs, tmp_path: Path, args: list[str], said: str, codetaste: Typed
) -> None:
    assert made.root.is_dir()
    (tmp_path / "runs/there").mkdir(parents=True)
    write(tmp_path / "journal/journal.jsonl", {})
    assert said in codetaste("import", *args, code=2)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["there"]


def test_names_that_no_folder_should_have_become_plain_and_stay_apart(
    tmp_path: Path, codetaste: Typed
) -> None:
    made = Outputs(tmp_path / "checkout" / "outputs")
    names = ["a b", "a_b", "a\x1b", "org/a b"]
    for number, name in enumerate(names):
        made.trial(name, identity=name, rules=(number, 4, 0, 6))
    codetaste("import", made.root, "--name", "taken")
    folders = {path.name for path in (tmp_path / "runs/taken/outputs/open/direct" / PATH).iterdir()}
    assert folders == {"a_b", "a_b-2", "a_", "org_a_b"}
    found: dict[str, Any] = {
        r.agent: r.scores.ifr_plus for r in read_outputs(tmp_path / "runs/taken").records
    }
    assert found == {"a b": 0.0, "a_b": 0.25, "a\\x1b": 0.5, "org/a b": 0.75}


@pytest.mark.anyio
async def test_import_concurrent_same_name_only_one_succeeds(made: Outputs, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command = [
        sys.executable,
        "-m",
        "codetaste",
        "import",
        str(made.root),
        "--name",
        "taken",
        "--out",
        str(runs),
    ]
    done: list[CompletedProcess[bytes]] = []

    async def one() -> None:
        done.append(await anyio.run_process(command, check=False))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
    assert sorted(each.returncode for each in done) == [0, 2, 2]
    assert all(b"taken" in each.stderr for each in done if each.returncode)
    assert [path.name for path in runs.iterdir()] == ["taken"]
    assert len(read_outputs(runs / "taken").records) == len(read_outputs(made.root).records)

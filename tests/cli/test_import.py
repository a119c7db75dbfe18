"""``codetaste import`` makes a run of published outputs, with the same numbers."""

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
from support.evaluation.published_outputs import PATH, Outputs, make_scores, write_json


@pytest.fixture
def outputs(tmp_path: Path) -> Outputs:
    """Two agents on two tracks with attempts, baselines, a pseudo agent, and some faults."""
    outputs = Outputs(tmp_path / "checkout" / "outputs")
    outputs.add_null()
    outputs.add_baselines((20, 1), (19, 2))
    outputs.add_trial("a")
    outputs.add_trial("a", at="instructed/direct", metadata={"cost_usd": None})
    outputs.add_trial("a/attempt-2", identity="a", rules=(4, 4, 0, 6))
    failed = outputs.add_trial("b <i>", metadata={"finish_reason": "timeout"}, patch=b"")
    (failed / "evaluation/evaluation_result.json").unlink()
    truncated = outputs.add_trial("c", rules=(1, 4, 0, 6))
    (truncated / "evaluation/rules_negative.sarif").write_bytes(b'{"runs": [')
    ours = outputs.add_trial("d", metadata={"additional": {"codetaste_version": "0.6.0"}})
    write_json(ours / "evaluation/scores.json", make_scores())
    (ours / "secret.bin").write_bytes(b"not of the layout")
    return outputs


Command = Callable[..., str]


@pytest.fixture
def codetaste(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    return partial(invoke.codetaste, capsys)


def comparable(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Return the records without what has to differ: their folder and the name of their run."""
    return [replace(record, run="", folder=Path()) for record in records]


def test_imported_run_has_the_records_of_its_source(
    outputs: Outputs, tmp_path: Path, codetaste: Command
) -> None:
    before = read_outputs(outputs.root)
    document = json.loads(codetaste("import", outputs.root, "--name", "taken", "--json"))
    after = read_outputs(tmp_path / "runs/taken")
    assert comparable(after.records) == comparable(before.records)
    assert len(after.records) == document["trials"] == 7
    assert {record.run for record in after.records} == {"taken"}
    assert sorted(p.kind for p in after.problems) == sorted(p.kind for p in before.problems)
    assert document["statuses"] == {"scored": 5, "failed": 1, "partial": 1}
    assert {problem["kind"] for problem in document["problems"]} == {"number", "name", "truncated"}
    assert not list((tmp_path / "runs").rglob("secret.bin"))
    assert json.loads((tmp_path / "runs/taken/import.json").read_text())["trials"] == 7


def test_conversations_are_imported(outputs: Outputs, tmp_path: Path, codetaste: Command) -> None:
    """An agent's log, and the trajectory of another harness: its pages show them."""
    texts = {"inference.out": '{"type": "system"}\n', "trajectory.json": '{"steps": []}'}
    for agent, (name, text) in zip("ef", texts.items(), strict=True):
        (outputs.add_trial(agent) / name).write_text(text)
    codetaste("import", outputs.root, "--name", "taken")
    for name, text in texts.items():
        assert [each.read_text() for each in (tmp_path / "runs").rglob(name)] == [text]


def test_misplaced_trial_is_reported_and_not_counted(
    outputs: Outputs, tmp_path: Path, codetaste: Command
) -> None:
    outputs.add_trial("lost", metadata={"description_type": None})
    bare = (outputs.root / "open/direct").rename(tmp_path / "bare")
    document = json.loads(codetaste("import", bare, "--name", "taken", "--json"))
    assert document["trials"] == len(read_outputs(tmp_path / "runs/taken").records) == 5
    assert any(p["kind"] == "layout" and p["location"].endswith("lost") for p in document["problems"])


def test_imported_run_can_be_imported_again(outputs: Outputs, tmp_path: Path, codetaste: Command) -> None:
    codetaste("import", outputs.root, "--name", "one")
    codetaste("import", "runs/one", "--name", "two")
    one, two = (read_outputs(tmp_path / "runs" / name) for name in ("one", "two"))
    assert comparable(one.records) == comparable(two.records)


@pytest.mark.parametrize("top", ["outputs/", "", "checkout/outputs/"])
def test_archive_is_imported_like_its_folder(
    outputs: Outputs, tmp_path: Path, top: str, codetaste: Command
) -> None:
    with zipfile.ZipFile(tmp_path / "outputs.zip", "w") as archive:
        for path in sorted(outputs.root.rglob("*")):
            if path.is_file():
                archive.write(path, f"{top}{path.relative_to(outputs.root)}")
    codetaste("import", "outputs.zip", "--name", "taken")
    before = [record.scores.ifr for record in read_outputs(outputs.root).records]
    assert [record.scores.ifr for record in read_outputs(tmp_path / "runs/taken").records] == before
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["taken"]


def split_zip() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo("x"), "y")  # without the time of day: it is part of a name of a test
    content = bytearray(packed.getvalue())
    content[content.rfind(b"PK\5\6") + 4] = 3
    return bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("outputs.zip", split_zip(), "is a part of a split archive"),
        ("outputs.z01", b"PK\3\4", "is a part of a split archive"),
        ("outputs.zip", b"PK\3\4 but no more", "damaged"),
        ("outputs.tar", b"", "empty file"),
    ],
)
def test_invalid_archive_leaves_nothing(
    tmp_path: Path, name: str, content: bytes, message: str, codetaste: Command
) -> None:
    (tmp_path / name).write_bytes(content)
    code = 2 if "split" in message else 1
    assert message in codetaste("import", name, "--name", "taken", code=code)
    assert not (tmp_path / "runs/taken").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["checkout", "--name", "../out"], "a name has only letters"),
        (["checkout", "--name", "there"], "exists already"),
        (["nowhere", "--name", "x"], "no such folder or archive"),
        (["checkout", "--name", "x", "--score"], "need --benchmark"),
        (["journal", "--name", "x"], "is already a codetaste run: report it directly"),
    ],
)
def test_invalid_source_is_rejected_before_writing(
    outputs: Outputs, tmp_path: Path, args: list[str], message: str, codetaste: Command
) -> None:
    assert outputs.root.is_dir()
    (tmp_path / "runs/there").mkdir(parents=True)
    write_json(tmp_path / "journal/journal.jsonl", {})
    assert message in codetaste("import", *args, code=2)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["there"]


def test_unsafe_agent_names_become_plain_and_distinct(tmp_path: Path, codetaste: Command) -> None:
    outputs = Outputs(tmp_path / "checkout" / "outputs")
    names = ["a b", "a_b", "a\x1b", "org/a b"]
    for number, name in enumerate(names):
        outputs.add_trial(name, identity=name, rules=(number, 4, 0, 6))
    codetaste("import", outputs.root, "--name", "taken")
    folders = {path.name for path in (tmp_path / "runs/taken/outputs/open/direct" / PATH).iterdir()}
    assert folders == {"a_b", "a_b-2", "a_", "org_a_b"}
    found: dict[str, Any] = {
        r.agent: r.scores.ifr_plus for r in read_outputs(tmp_path / "runs/taken").records
    }
    assert found == {"a b": 0.0, "a_b": 0.25, "a\\x1b": 0.5, "org/a b": 0.75}


@pytest.mark.anyio
async def test_only_one_of_concurrent_imports_with_one_name_succeeds(
    outputs: Outputs, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    command = [
        sys.executable,
        "-m",
        "codetaste",
        "import",
        str(outputs.root),
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
    assert len(read_outputs(runs / "taken").records) == len(read_outputs(outputs.root).records)

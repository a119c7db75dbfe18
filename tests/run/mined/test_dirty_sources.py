"""Mining of clones that cannot be opened or that share a name or a base, and of a server that is silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.run.config import read_config
from codetaste.run.limits import load_limits
from codetaste.run.mined.assembly import Assembly, assemble
from codetaste.run.plan import RunOptions
from codetaste.run.signals import StopRequest
from support.mining.clones import MadeClone, MadeCommit, make_clone

pytestmark = pytest.mark.anyio
MODEL = Path(__file__).parents[3] / "examples/mine_local_model.py"


@pytest.fixture(autouse=True)
def _no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # refuses connections: no answer


def make_history(path: Path, *, changes: int = 1, siblings: bool = False) -> MadeClone:
    """Make a clone with as many refactorings, in a row or all of the first commit."""
    label = path.name.encode()
    commits = [MadeCommit({b"a.py": b"".join(b"%s_%d = 1\n" % (label, n) for n in range(40))})]
    for number in range(changes):
        text = b"".join(b"%s_%d_%d = %d\n" % (label, number, n, n * number) for n in range(40))
        parent = 0 if siblings else number
        commits.append(MadeCommit({b"a.py": text}, [parent], b"Refactor part %d" % number))
    return make_clone(path, commits)


async def mine(folder: Path, source: str, **mine_keys: str) -> Assembly:
    path = folder / "mine.toml"
    keys = "".join(f"{name} = {value}\n" for name, value in mine_keys.items())
    path.write_text(
        f"""
[run]
name = "r"
[[models]]
id = "m"
provider = "scripted"
model = "{MODEL}:reply"
[mine]
{keys}
ranking = {{ min_stars = 0, min_files = 1 }}
scoring = {{ model = "m" }}
[[mine.runs]]
name = "made"
{source}
"""
    )
    return await assemble(load_limits(read_config(path), path), path, RunOptions(), StopRequest())


def goldens(found: Assembly) -> set[str]:
    return {each.record.golden for each in found.candidates}


def notes(folder: Path) -> str:
    return "".join(path.read_text() for path in (folder / "runs/r/logs").rglob("*") if path.is_file())


async def test_clones_whose_names_look_alike_are_all_read(tmp_path: Path) -> None:
    first, second = (make_history(tmp_path / name) for name in ("clones/a/b-c", "clones/a-b/c"))
    found = await mine(tmp_path, 'clones = ["clones"]')
    assert goldens(found) == {first.commits[1], second.commits[1]}


async def test_what_is_no_clone_in_a_folder_of_clones_is_left_out(tmp_path: Path) -> None:
    made = make_history(tmp_path / "clones/a/b")
    (tmp_path / "clones/a/broken/.git").mkdir(parents=True)
    again = make_history(tmp_path / "other/a/b", changes=2)
    found = await mine(tmp_path, 'clones = ["clones", "clones/a/b", "other/a/b"]')
    assert goldens(found) == {made.commits[1]}
    assert again.commits[2] not in goldens(found)
    assert "clones/a/broken is not a git repository" in notes(tmp_path)
    assert "other/a/b: a second clone of a/b" in notes(tmp_path)


async def test_of_two_changes_of_one_base_the_best_is_the_instance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_history(tmp_path / "clones/a/b", changes=2, siblings=True)
    found = await mine(tmp_path, 'clones = ["clones"]')
    assert goldens(found) == {min(made.commits[1:])}
    assert f"a/b@{max(made.commits[1:])[:10]} is left out: " in capsys.readouterr().err


async def test_commits_without_an_answer_are_tried_again(tmp_path: Path) -> None:
    made = make_history(tmp_path / "clones/a/b", changes=12)
    rows = [f"a/b,{commit},Refactor" for commit in made.commits[1:]]
    source = 'pairs = ["pairs.csv"]'
    (tmp_path / "pairs.csv").write_text(
        "\n".join(["repository,golden,message", *rows, f"a/gone,{'1' * 40},Refactor"])
    )
    assert len((await mine(tmp_path, source, repos='"clones"')).candidates) == 12
    assert started(tmp_path, "mine/made/prefilter") == 1
    await mine(tmp_path, source, repos='"clones"')
    assert started(tmp_path, "mine/made/prefilter") == 2
    assert started(tmp_path, "mine/made/collect") == 1


async def test_nothing_is_chosen_while_no_commit_has_an_answer(tmp_path: Path) -> None:
    made = make_history(tmp_path / "clones/a/b")
    (tmp_path / "pairs.csv").write_text(f"repository,golden,message\na/b,{made.commits[1]},Refactor\n")
    assert (await mine(tmp_path, 'pairs = ["pairs.csv"]')).candidates == []
    assert "got no answer, so none is chosen" in notes(tmp_path)
    found = await mine(tmp_path, 'pairs = ["pairs.csv"]', repos='"clones"')
    assert goldens(found) == {made.commits[1]}


async def test_candidates_of_an_earlier_choice_do_not_stand_for_a_new_one(tmp_path: Path) -> None:
    made = make_history(tmp_path / "clones/a/b")
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(f"repository,golden,message\na/b,{made.commits[1]},Refactor\n")
    assert goldens(await mine(tmp_path, 'pairs = ["pairs.csv"]', repos='"clones"')) == {made.commits[1]}
    pairs.write_text(f"repository,golden,message\na/gone,{'1' * 40},Refactor\n")
    assert (await mine(tmp_path, 'pairs = ["pairs.csv"]', repos='"clones"')).candidates == []


def started(folder: Path, key: str) -> int:
    """How often a job was begun."""
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in (folder / "runs/r/journal.jsonl").read_text().splitlines()
    ]
    return sum(line.get("event") == "started" and line.get("key") == key for line in lines)

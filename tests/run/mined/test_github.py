"""A run that asks GitHub: issues reach the prompt of the description, and clones get their stars."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from codetaste.run.config import read_config
from codetaste.run.limits import load_limits
from codetaste.run.mined.assembly import Assembly, assemble
from codetaste.run.plan import RunOptions
from codetaste.run.signals import StopRequest
from support.mining.archive_events import MergedChange, event_of_2026
from support.mining.clones import MadeClone, MadeCommit, make_clone
from support.mining.github import world as made
from support.mining.github.server import TOKEN, Hub, serving

pytestmark = pytest.mark.anyio
MODEL = Path(__file__).parents[3] / "examples/mine_local_model.py"
TOKEN_ENV = "CODETASTE_TEST_GITHUB_TOKEN"
OLD = b"".join(b"def old_%d():\n    return %d\n" % (number, number) for number in range(30))
COMMITS = [
    MadeCommit({b"pack/store.py": OLD, b"pack/__init__.py": b"", b"setup.py": b"\n"}, message=b"start"),
    MadeCommit(
        {b"pack/store.py": OLD.replace(b"old", b"new"), b"pack/__init__.py": b"", b"setup.py": b"\n"},
        parents=[0],
        message=b"Reorganize the package",
    ),
]


def make_world(clone: MadeClone) -> made.World:
    world = made.World()
    repository = world.add("made/one", stars=250)
    base, golden = clone.commits
    repository.commits = {
        base: made.Commit(base),
        golden: made.Commit(golden, "Reorganize the package", [base], additions=30, deletions=30, files=1),
    }
    issue = made.Issue(1, "Names mislead", "Everybody asks what old means.", repository="made/one")
    repository.pulls[3] = made.PullRequest(
        3, "Reorganize the package", "Closes #1", golden, commits=[golden], files=1, issues=[issue]
    )
    return world


def write_config(folder: Path, source: str, github: str = "") -> Path:
    path = folder / "mine.toml"
    path.write_text(
        f"""
[run]
name = "r"
[[models]]
id = "m"
provider = "scripted"
model = "{MODEL}:reply"
[mine]
repos = "clones"
fetch = false
code_edits = 1
ranking = {{ min_files = 1 }}
scoring = {{ model = "m" }}
{github}
[[mine.runs]]
name = "made"
{source}
[describe]
model = "m"
"""
    )
    return path


async def run(path: Path) -> Assembly:
    limits = load_limits(read_config(path), path)
    return await assemble(limits, path, RunOptions(), StopRequest())


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeClone:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(TOKEN_ENV, TOKEN)
    return make_clone(tmp_path / "clones/made/one", COMMITS)


def github_table(hub: Hub) -> str:
    return f'[mine.github]\napi_url = "{hub.url}"\ntoken_env = "{TOKEN_ENV}"\n'


async def test_issues_that_a_pull_request_closes_reach_the_prompt(tmp_path: Path, clone: MadeClone) -> None:
    hour = tmp_path / "2026-04-05-6.json.gz"
    hour.write_bytes(gzip.compress(json.dumps(event_of_2026(MergedChange("made/one", 3))).encode() + b"\n"))
    async with serving(make_world(clone)) as hub:
        path = write_config(tmp_path, f'archive = {{ hours = ["{hour.name}"] }}', github_table(hub))
        first = await run(path)
    (chosen,) = first.chosen
    out = tmp_path / "runs/r"
    change = json.loads(next((out / "benchmark").rglob("change.json")).read_text())
    assert change["pull_requests"] == [{"number": 3, "title": "Reorganize the package", "body": "Closes #1"}]
    assert [each["title"] for each in change["issues"]] == ["Names mislead"]
    transcript = (out / f"transcripts/describe/{chosen.instance.id}/instructed.jsonl").read_text()
    assert "Everybody asks what old means." in transcript
    assert (chosen.instance.golden_commit_hash, chosen.record.stars) == (clone.commits[1], 250)


async def test_continued_run_keeps_the_texts_without_a_token(
    tmp_path: Path, clone: MadeClone, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = tmp_path / "2026-04-05-6.json.gz"
    hour.write_bytes(gzip.compress(json.dumps(event_of_2026(MergedChange("made/one", 3))).encode() + b"\n"))
    async with serving(make_world(clone)) as hub:
        path = write_config(tmp_path, f'archive = {{ hours = ["{hour.name}"] }}', github_table(hub))
        await run(path)
    before = next((tmp_path / "runs/r/benchmark").rglob("change.json")).read_text()
    monkeypatch.delenv(TOKEN_ENV)
    again = await run(path)
    assert next((tmp_path / "runs/r/benchmark").rglob("change.json")).read_text() == before
    assert again.summary is not None
    assert [line.outcome.resumed for line in again.summary.lines] == [True, True]


@pytest.mark.parametrize(("stars", "instances"), [(89, 0), (90, 1)])
async def test_clones_get_the_stars_of_their_repositories(
    tmp_path: Path, clone: MadeClone, stars: int, instances: int
) -> None:
    world = make_world(clone)
    world.repositories["made/one"].stars = stars
    async with serving(world) as hub:
        found = await run(write_config(tmp_path, 'clones = ["clones"]', github_table(hub)))
    assert len(found.chosen) == instances
    rows = json.loads((tmp_path / "runs/r/mining/made/funnel.json").read_text())["rows"]
    (row,) = [each for each in rows if each["filter"] == "stars"]
    assert (row["unknown"], row["removed"]) == (0, 1 - instances)


async def test_without_the_section_github_gets_no_request_about_clones(
    tmp_path: Path, clone: MadeClone
) -> None:
    async with serving(make_world(clone)) as hub:
        found = await run(write_config(tmp_path, 'clones = ["clones"]'))
        assert hub.requests == []
    (chosen,) = found.chosen
    assert chosen.record.stars is None


async def test_clone_of_another_server_has_no_stars(tmp_path: Path, clone: MadeClone) -> None:
    clone.repository.git("remote", "add", "origin", "https://git.example.org/made/one.git")
    async with serving(make_world(clone)) as hub:
        found = await run(write_config(tmp_path, 'clones = ["clones"]', github_table(hub)))
    assert found.chosen[0].record.stars is None


async def test_commits_that_a_clone_gets_are_read_by_a_continued_run(
    tmp_path: Path, clone: MadeClone
) -> None:
    path = write_config(tmp_path, 'clones = ["clones"]')
    first = await run(path)
    again = await run(path)
    assert len(first.chosen) == len(again.chosen) == 1
    git = clone.repository.git
    tree = git("rev-parse", f"{clone.commits[0]}^{{tree}}")
    new = git("commit-tree", tree, "-p", clone.commits[1], "-m", "Restructure the modules of the package")
    git("update-ref", "refs/heads/b1", new)
    later = await run(path)
    assert {each.record.golden for each in later.candidates} == {clone.commits[1]}  # a revert is a duplicate
    rows = json.loads((tmp_path / "runs/r/mining/made/funnel.json").read_text())["rows"]
    assert [(each["filter"], each["entered"]) for each in rows if each["filter"] == "duplicate"][-1] == (
        "duplicate",
        2,
    )

"""The folders that rule discovery leaves say what the latest run came to, whatever was there before."""

from __future__ import annotations

from hashlib import sha256
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.errors import ConfigError
from codetaste.flows.discover.plan import DiscoveryPass
from codetaste.flows.discover.publish import rules_file, write_discovered_benchmarks
from codetaste.orchestration.job import Outcome, Status
from codetaste.orchestration.journal.blobs import Blobs
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark

HEADER = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language\n"


def benchmark(root: Path, repos: str = "abc") -> Benchmark:
    """A benchmark with an instance for each letter, without open descriptions."""
    root.mkdir()
    rows = [f"o,{repo},{index:040x},{'f' * 40},,,python\n" for index, repo in enumerate(repos, 1)]
    (root / "instances.csv").write_text(HEADER + "".join(rows), "utf-8")
    opened = open_benchmark(root)
    for instance in opened.instances:
        folder = root / "assets/descriptions" / instance.path
        folder.mkdir(parents=True)
        (folder / "description.md").write_text("Rename it.\n", "utf-8")
    return opened


def passes(opened: Benchmark, *repos: str) -> list[DiscoveryPass]:
    found = [
        DiscoveryPass(each, "m", Direction.ADDITIVE, "m") for each in opened.instances if each.repo in repos
    ]
    assert len(found) == len(repos)
    return found


async def written(around: Any, some: list[DiscoveryPass], text: str) -> None:
    blobs = Blobs(around.out / "blobs")
    value: Any = {"yaml": await blobs.store(text)}
    await write_discovered_benchmarks(
        some, {each.key: Outcome(each.key, Status.DONE, value) for each in some}, around, blobs
    )


@pytest.mark.anyio
async def test_rules_of_another_config_with_the_same_run_name_do_not_stay(tmp_path: Path) -> None:
    around: Any = SimpleNamespace(out=tmp_path / "run", benchmark=benchmark(tmp_path / "in"))
    some = passes(around.benchmark, "a")
    for text in ("rules: []\n", "rules: [] # others\n", "rules: []\n"):
        await written(around, some, text)
        assert rules_file(some[0], around).read_text("utf-8") == text


@pytest.mark.anyio
async def test_rules_that_are_there_need_no_stored_text(tmp_path: Path) -> None:
    around: Any = SimpleNamespace(out=tmp_path / "run", benchmark=benchmark(tmp_path / "in"))
    some = passes(around.benchmark, "a")
    await written(around, some, "rules: []\n")
    Blobs(tmp_path / "run/blobs").path(sha256(b"rules: []\n").hexdigest()).unlink()
    await write_discovered_benchmarks(
        some,
        {
            each.key: Outcome(each.key, Status.DONE, {"yaml": sha256(b"rules: []\n").hexdigest()})
            for each in some
        },
        around,
        Blobs(tmp_path / "run/blobs"),
    )
    assert all(rules_file(each, around).read_text("utf-8") == "rules: []\n" for each in some)


@pytest.mark.anyio
async def test_missing_stored_text_does_not_block_other_rules(tmp_path: Path) -> None:
    around: Any = SimpleNamespace(out=tmp_path / "run", benchmark=benchmark(tmp_path / "in"))
    lost, kept = passes(around.benchmark, "a", "b")
    blobs = Blobs(tmp_path / "run/blobs")
    values: Any = {lost.key: {"yaml": "0" * 64}, kept.key: {"yaml": await blobs.store("rules: []\n")}}
    outcomes = {key: Outcome(key, Status.DONE, value) for key, value in values.items()}
    with pytest.raises(ExceptionGroup) as caught:
        await write_discovered_benchmarks([lost, kept], outcomes, around, blobs)
    assert "is missing; restore it, or rerun the job" in str(caught.value.exceptions[0])
    assert rules_file(kept, around).is_file()


@pytest.mark.anyio
async def test_a_run_of_some_jobs_keeps_the_other_instances_in_the_table(tmp_path: Path) -> None:
    around: Any = SimpleNamespace(out=tmp_path / "run", benchmark=benchmark(tmp_path / "in"))
    await written(around, passes(around.benchmark, "b", "c"), "rules: []\n")
    await written(around, passes(around.benchmark, "a", "b"), "rules: []\n")
    product = open_benchmark(tmp_path / "run/discover/m")
    assert [each.repo for each in product.instances] == ["a", "b", "c"]


def test_all_missing_descriptions_are_found_before_anything_is_started(tmp_path: Path) -> None:
    opened = benchmark(tmp_path / "in")
    for repo in ("a", "c"):
        (each,) = passes(opened, repo)
        (tmp_path / "in/assets/descriptions" / each.instance.path / "description.md").unlink()
    with pytest.raises(ConfigError) as caught:
        opened.check_descriptions(opened.instances)
    assert len(caught.value.problems) == 2

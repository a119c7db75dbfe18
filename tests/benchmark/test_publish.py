"""The benchmark folders that rule discovery writes have the latest run's rules, whatever was there before."""

from __future__ import annotations

from hashlib import sha256
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.errors import ConfigError
from codetaste.flows.discover.plan import DiscoveryPass
from codetaste.flows.discover.publish import rules_file, write_discovered_benchmarks
from codetaste.flows.discover.result import DiscoveryResult
from codetaste.orchestration.job import Outcome, Status
from codetaste.orchestration.journal.blobs import Blobs
from codetaste.orchestration.journal.results import result_to_json
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark

HEADER = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language\n"


def make_benchmark(root: Path, repos: str = "abc") -> Benchmark:
    """Create a benchmark with an instance for each letter, without open descriptions."""
    root.mkdir()
    rows = [f"o,{repo},{index:040x},{'f' * 40},,,python\n" for index, repo in enumerate(repos, 1)]
    (root / "instances.csv").write_text(HEADER + "".join(rows), "utf-8")
    opened = open_benchmark(root)
    for instance in opened.instances:
        folder = root / "assets/descriptions" / instance.path
        folder.mkdir(parents=True)
        (folder / "description.md").write_text("Rename it.\n", "utf-8")
    return opened


def select_passes(opened: Benchmark, *repos: str) -> list[DiscoveryPass]:
    selected = [
        DiscoveryPass(each, "m", Direction.ADDITIVE, "m") for each in opened.instances if each.repo in repos
    ]
    assert len(selected) == len(repos)
    return selected


def finished_value(digest: str) -> Any:
    """Return the job value of a finished pass whose rules have the digest."""
    return result_to_json(DiscoveryResult("finished", 1, 1, 0, "opengrep", digest))


async def write_rules(context: Any, passes: list[DiscoveryPass], text: str) -> None:
    blobs = Blobs(context.out / "blobs")
    value: Any = finished_value(await blobs.store(text))
    await write_discovered_benchmarks(
        passes,
        {each.key: Outcome(each.key, Status.DONE, value, resumed=True) for each in passes},
        context,
        blobs,
    )


@pytest.mark.anyio
async def test_rules_of_another_config_with_the_same_run_name_are_replaced(tmp_path: Path) -> None:
    context: Any = SimpleNamespace(out=tmp_path / "run", benchmark=make_benchmark(tmp_path / "in"))
    passes = select_passes(context.benchmark, "a")
    for text in ("rules: []\n", "rules: [] # others\n", "rules: []\n"):
        await write_rules(context, passes, text)
        assert rules_file(passes[0], context).read_text("utf-8") == text


@pytest.mark.anyio
async def test_existing_rules_need_no_stored_text(tmp_path: Path) -> None:
    context: Any = SimpleNamespace(out=tmp_path / "run", benchmark=make_benchmark(tmp_path / "in"))
    passes = select_passes(context.benchmark, "a")
    await write_rules(context, passes, "rules: []\n")
    Blobs(tmp_path / "run/blobs").path(sha256(b"rules: []\n").hexdigest()).unlink()
    await write_discovered_benchmarks(
        passes,
        {
            each.key: Outcome(
                each.key, Status.DONE, finished_value(sha256(b"rules: []\n").hexdigest()), resumed=True
            )
            for each in passes
        },
        context,
        Blobs(tmp_path / "run/blobs"),
    )
    assert all(rules_file(each, context).read_text("utf-8") == "rules: []\n" for each in passes)


@pytest.mark.anyio
async def test_missing_stored_text_does_not_block_other_rules(tmp_path: Path) -> None:
    context: Any = SimpleNamespace(out=tmp_path / "run", benchmark=make_benchmark(tmp_path / "in"))
    missing, stored = select_passes(context.benchmark, "a", "b")
    blobs = Blobs(tmp_path / "run/blobs")
    values: Any = {
        missing.key: finished_value("0" * 64),
        stored.key: finished_value(await blobs.store("rules: []\n")),
    }
    outcomes = {key: Outcome(key, Status.DONE, value, resumed=True) for key, value in values.items()}
    with pytest.raises(ExceptionGroup) as caught:
        await write_discovered_benchmarks([missing, stored], outcomes, context, blobs)
    assert "is missing; restore it, or rerun the job" in str(caught.value.exceptions[0])
    assert rules_file(stored, context).is_file()


@pytest.mark.anyio
async def test_partial_run_preserves_other_instances_in_the_table(tmp_path: Path) -> None:
    context: Any = SimpleNamespace(out=tmp_path / "run", benchmark=make_benchmark(tmp_path / "in"))
    await write_rules(context, select_passes(context.benchmark, "b", "c"), "rules: []\n")
    await write_rules(context, select_passes(context.benchmark, "a", "b"), "rules: []\n")
    product = open_benchmark(tmp_path / "run/discover/m")
    assert [each.repo for each in product.instances] == ["a", "b", "c"]


def test_all_missing_descriptions_are_reported_at_once(tmp_path: Path) -> None:
    opened = make_benchmark(tmp_path / "in")
    for repo in ("a", "c"):
        (each,) = select_passes(opened, repo)
        (tmp_path / "in/assets/descriptions" / each.instance.path / "description.md").unlink()
    with pytest.raises(ConfigError) as caught:
        opened.check_descriptions(opened.instances)
    assert len(caught.value.problems) == 2

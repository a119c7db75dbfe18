"""Opening, selecting from and reading a benchmark folder, with clear errors; a run's product is one too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from codetaste.benchmark.benchmark import Benchmark, open_benchmark, quickstart_folder
from codetaste.benchmark.instance import Instance
from codetaste.benchmark.instances_csv import format_table
from codetaste.benchmark.layout import Track
from codetaste.benchmark.publish import write_benchmark, write_rules
from codetaste.errors import CodetasteError, ConfigError, JournalError
from codetaste.rules.registration import Direction
from codetaste.source.checkout import checkout_trees
from codetaste.source.origin import GitOrigin, SdistOrigin

A, B, C = "a" * 40, "b" * 40, "c" * 40
KOA = Instance("koajs", "koa", A, B, 0.5, "api", "javascript", {"origin": ""})
GQL = Instance("99designs", "gqlgen", B, C, None, "", "go", {"origin": "../clones/gqlgen"})


@pytest.fixture
def benchmark_folder(tmp_path: Path) -> Path:
    root = tmp_path / "bench"
    root.mkdir()
    (root / "instances.csv").write_text(format_table([KOA, GQL]))
    for instance in (KOA, GQL):
        folder = root / "assets/descriptions" / instance.path
        folder.mkdir(parents=True)
        (folder / "description.md").write_text(f"all about {instance.repo} ∘\n")
        (folder / "open_description.md").write_text("vague\n")
    (root / "assets/default.semgrepignore").write_text("*.svg\n")
    return root


def test_instances_are_selected_by_globs_in_the_tables_order(benchmark_folder: Path) -> None:
    benchmark = open_benchmark(benchmark_folder)
    assert benchmark.select() == (KOA, GQL)
    assert benchmark.select(["99*", "KOAJS__koa-*", "*"]) == (KOA, GQL)
    assert benchmark.select(["*__gqlgen-????????"]) == (GQL,)
    assert benchmark.get("koajs__koa-aaaaaaaa") == KOA


def test_glob_without_match_names_the_nearest_instance(benchmark_folder: Path) -> None:
    benchmark = open_benchmark(benchmark_folder)
    with pytest.raises(ConfigError) as caught:
        benchmark.select(["koajs_koa-*", "*", "zzz"])
    first, second = caught.value.problems
    assert "'koajs_koa-*'; did you mean koajs__koa-aaaaaaaa?" in first
    assert second.endswith("matches 'zzz'")
    with pytest.raises(ConfigError, match="did you mean koajs__koa-aaaaaaaa"):
        benchmark.get("koajs__koa-aaaaaaab")


def test_descriptions_are_read_by_track(benchmark_folder: Path) -> None:
    benchmark = open_benchmark(benchmark_folder)
    assert benchmark.description(KOA) == "all about koa ∘\n"
    assert benchmark.description(KOA, Track.OPEN) == "vague\n"


def test_description_edited_after_it_was_read_stays_as_it_was(benchmark_folder: Path) -> None:
    benchmark = open_benchmark(benchmark_folder)
    before = benchmark.description(KOA, Track.OPEN)
    benchmark.description_path(KOA, Track.OPEN).write_text("edited\n")
    assert benchmark.description(KOA, Track.OPEN) == before
    assert open_benchmark(benchmark_folder).description(KOA, Track.OPEN) == "edited\n"


def test_empty_unreadable_or_missing_description_is_refused(benchmark_folder: Path) -> None:
    benchmark = open_benchmark(benchmark_folder)
    path = benchmark.description_path(KOA, Track.OPEN)
    path.write_text(" \n")
    with pytest.raises(
        ConfigError, match=r"open_description\.md: the open description of koajs__koa-aaaaaaaa is empty"
    ):
        benchmark.description(KOA, Track.OPEN)
    path.write_bytes(b"caf\xe9")
    with pytest.raises(ConfigError, match="not UTF-8"):
        benchmark.description(KOA, Track.OPEN)
    path.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        benchmark.description(KOA, Track.OPEN)


def test_metadata_is_an_object_or_none(benchmark_folder: Path) -> None:
    benchmark = open_benchmark(benchmark_folder)
    assert benchmark.metadata(KOA) is None
    path = benchmark_folder / "instance_images" / KOA.path / "instance_metadata.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"has_execution_environment": true}')
    assert benchmark.metadata(KOA) == {"has_execution_environment": True}
    for damaged in ("[]", "{", "[" * 100_000):
        path.write_text(damaged)
        with pytest.raises(ConfigError, match=r"instance_metadata\.json"):
            benchmark.metadata(KOA)


def test_folder_without_benchmark_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such benchmark folder"):
        open_benchmark(tmp_path / "nothing")
    with pytest.raises(ConfigError, match=r"instances\.csv: No such file"):
        open_benchmark(tmp_path)


def test_a_relative_origin_is_relative_to_the_benchmark(benchmark_folder: Path, tmp_path: Path) -> None:
    benchmark = open_benchmark(benchmark_folder, repos=tmp_path / "repos")
    assert benchmark.origin(GQL) == GitOrigin(f"{benchmark_folder}/../clones/gqlgen", B, C)
    (tmp_path / "repos/koajs/koa").mkdir(parents=True)
    assert benchmark.origin(KOA) == GitOrigin(f"{tmp_path}/repos/koajs/koa", A, B)


def test_run_product_opens_as_a_benchmark(benchmark_folder: Path, tmp_path: Path) -> None:
    benchmark = open_benchmark(benchmark_folder)
    root = tmp_path / "run/discover/model"

    async def main() -> None:
        await write_benchmark(root, benchmark, [GQL])
        await write_rules(root, GQL, Direction.ADDITIVE, "rules: []\n")
        await write_rules(root, GQL, Direction.REDUCTIVE, "rules: [1]\n")
        await write_rules(root, GQL, Direction.REDUCTIVE, "rules: [2]\n")

    anyio.run(main)
    product = open_benchmark(root)
    (instance,) = product.instances
    assert instance == GQL
    assert product.origin(instance) == benchmark.origin(GQL)
    assert product.description(instance) == benchmark.description(GQL)
    assert product.ignore_text() == "*.svg\n"
    assert product.rules_path(GQL, Direction.ADDITIVE).read_text() == "rules: []\n"
    assert product.rules_path(GQL, Direction.REDUCTIVE).name == "rules_negative.yml"
    written = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert written == {
        "instances.csv",
        "assets/default.semgrepignore",
        f"assets/descriptions/{GQL.path}/description.md",
        f"assets/descriptions/{GQL.path}/open_description.md",
        f"assets/rules/{GQL.path}/rules_positive.yml",
        f"assets/rules/{GQL.path}/rules_negative.yml",
    }


def test_unwritable_folder_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "assets").write_text("in the way")
    with pytest.raises(JournalError, match="cannot be written"):
        anyio.run(write_rules, tmp_path, KOA, Direction.ADDITIVE, "rules: []\n")


def test_published_benchmark_opens_and_its_table_is_written_unchanged(published_data: Path) -> None:
    benchmark = open_benchmark(published_data)
    assert len(benchmark.instances) == 100
    assert format_table(benchmark.instances).rstrip("\n") == (published_data / "instances.csv").read_text()
    for instance in benchmark.select(["koajs__*", "99designs__*", "aws__aws-cli-*"]):
        assert all(benchmark.description(instance, track) for track in Track)
        assert all(benchmark.rules_path(instance, direction).is_file() for direction in Direction)
        assert benchmark.metadata(instance) is not None


def open_quickstart() -> tuple[Benchmark, Instance]:
    benchmark = open_benchmark(quickstart_folder())
    (instance,) = benchmark.instances
    return benchmark, instance


def test_the_quickstart_is_complete() -> None:
    benchmark, instance = open_quickstart()
    assert isinstance(benchmark.origin(instance), SdistOrigin)
    assert len(benchmark.description(instance)) >= 1500
    (line,) = benchmark.description(instance, Track.OPEN).splitlines()
    assert len(line) <= 68
    assert "egg-info" in benchmark.ignore_text()
    assert sorted(path.suffix for path in benchmark.root.rglob("*") if path.is_file()) == [
        ".csv", ".jsonl", ".jsonl", ".md", ".md", ".md", ".semgrepignore", ".yml", ".yml",
    ]  # fmt: skip


@pytest.mark.slow
def test_quickstart_sources_are_fetched_from_the_package_index(tmp_path: Path) -> None:
    benchmark, instance = open_quickstart()
    trees = anyio.run(checkout_trees, benchmark.origin(instance), tmp_path)
    old, new = (
        {path.name for path in (tree / "src/pluggy").iterdir()} for tree in (trees.base, trees.golden)
    )
    assert old - new == {"callers.py", "hooks.py", "manager.py"}
    assert new - old == {"_callers.py", "_hooks.py", "_manager.py", "_result.py"}
    assert trees.base_digest == "340e52c6cb18f170ccb396a605b3db73a6005acd5418692010cd3d10468bfcab"
    assert trees.golden_digest == "4c5ffc1fc52965619aa26da5feef5937152a784d37595186489ce35f4e20ecc3"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_published_commits_are_checked_out_from_clones(
    published_data: Path, clones: Path, tmp_path: Path
) -> None:
    benchmark = open_benchmark(published_data, repos=clones)
    cloned = [each for each in benchmark.instances if (clones / each.owner / each.repo).is_dir()]
    assert cloned, "no clone of any published instance"
    for instance in cloned:
        trees = anyio.run(checkout_trees, benchmark.origin(instance), tmp_path / "cache")
        assert trees.base_digest != trees.golden_digest


def test_instance_with_odd_names_is_written_below_the_folder(tmp_path: Path) -> None:
    """The reader refuses such names; the writer's paths stay below the folder all the same."""
    odd = replace(KOA, owner="a..b", repo="...x")
    try:
        path = anyio.run(write_rules, tmp_path, odd, Direction.ADDITIVE, "rules: []\n")
    except CodetasteError:
        return
    assert path.resolve().is_relative_to(tmp_path.resolve())

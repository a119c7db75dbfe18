"""Fixtures shared by the tests of flows: a tiny benchmark, and finished runs of the real command."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import QUICKSTART, Bench, TinyBenchmark, Workspace


@pytest.fixture(scope="session")
def tools(require: Callable[..., None]) -> None:
    """Skip where git or containment is missing."""
    from codetaste.errors import SandboxError
    from codetaste.sandbox.containment.engine import choose_engine

    require("git")
    try:
        choose_engine()
    except SandboxError as error:
        require("sandbox", ok=False, reason=str(error))


@pytest.fixture(scope="session")
def alpha(tmp_path_factory: pytest.TempPathFactory, tools: None) -> Iterator[TinyBenchmark]:
    """The tiny benchmark that tests share; its repository is named alpha."""
    folder = tmp_path_factory.mktemp("tiny")
    bench = Bench(folder)
    bench.add()
    yield TinyBenchmark(bench, folder / "cache")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def uninterrupted_run(
    tmp_path_factory: pytest.TempPathFactory, alpha: TinyBenchmark
) -> tuple[Workspace, tiny_benchmark.CommandResult]:
    """A run on the tiny benchmark from start to end, without interruption."""
    workspace = alpha.make_workspace(tmp_path_factory.mktemp("uninterrupted"), {"m": "slowly"})
    return workspace, workspace.run("--json")


@pytest.fixture(scope="session")
def quickstart(
    tmp_path_factory: pytest.TempPathFactory, tools: None, require: Callable[..., None]
) -> tuple[Workspace, tiny_benchmark.CommandResult]:
    """An uninterrupted run of the quickstart, with sources from the package index."""
    folder = tmp_path_factory.mktemp("quickstart")
    workspace = Workspace(folder, folder / "cache", QUICKSTART, name="quickstart")
    result = workspace.run("--json")
    fetched = "sources of" not in str([job["key"] for job in result.json["jobs"] if job["cause"] == "source"])
    unreachable = any(job["cause"] == "need" for job in result.json["jobs"])
    require("package index", ok=fetched and not unreachable, reason=f"no package index: {result.err[-500:]}")
    return workspace, result

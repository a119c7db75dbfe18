"""Runs of the real command that many tests look at."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import QUICKSTART, Bench, Place, Tiny


@pytest.fixture(scope="session")
def tools(require: Callable[..., None]) -> None:
    """What the main job needs on this machine."""
    from codetaste.errors import SandboxError
    from codetaste.sandbox.containment.engine import choose_engine

    require("git")
    try:
        choose_engine()
    except SandboxError as error:
        require("sandbox", ok=False, reason=str(error))


@pytest.fixture(scope="session")
def alpha(tmp_path_factory: pytest.TempPathFactory, tools: None) -> Iterator[Tiny]:
    folder = tmp_path_factory.mktemp("tiny")
    bench = Bench(folder)
    bench.add()
    yield Tiny(bench, folder / "cache")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, alpha: Tiny) -> tuple[Place, tiny_benchmark.Ended]:
    """A run on the tiny benchmark that nothing happened to."""
    where = alpha.place(tmp_path_factory.mktemp("undisturbed"), {"m": "slowly"})
    return where, where.run("--json")


@pytest.fixture(scope="session")
def quickstart(
    tmp_path_factory: pytest.TempPathFactory, tools: None, require: Callable[..., None]
) -> tuple[Place, tiny_benchmark.Ended]:
    """The undisturbed quickstart, its sources from the package index."""
    folder = tmp_path_factory.mktemp("quickstart")
    where = Place(folder, folder / "cache", QUICKSTART, name="quickstart")
    done = where.run("--json")
    fetched = "sources of" not in str([job["key"] for job in done.json["jobs"] if job["cause"] == "source"])
    unreachable = any(job["cause"] == "need" for job in done.json["jobs"])
    require("package index", ok=fetched and not unreachable, reason=f"no package index: {done.err[-500:]}")
    return where, done

"""Arguments shared by several commands: a benchmark, and one instance of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.benchmark.config import BenchmarkConfig
from codetaste.errors import ConfigError
from codetaste.run.resolve import find_benchmark

if TYPE_CHECKING:
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance

_MAX_LISTED = 5


def resolve_benchmark(name: str, repos: Path | None) -> Benchmark:
    """Open the benchmark ``name``, a folder or "quickstart", with the clones in ``repos``.

    Raises:
        ConfigError: a folder does not exist, or the benchmark is invalid.
    """
    if repos is not None and not repos.is_dir():
        raise ConfigError(f"--repos: {repos} is not a folder")
    return find_benchmark(BenchmarkConfig(path=name, repos=repos), Path())


def resolve_instance(benchmark: Benchmark, glob: str) -> Instance:
    """Return the one instance whose id matches ``glob``.

    Raises:
        ConfigError: none matches, or several.
    """
    chosen = benchmark.select([glob])
    if len(chosen) > 1:
        ids = ", ".join(
            [*(each.id for each in chosen[:_MAX_LISTED]), *(["…"] if len(chosen) > _MAX_LISTED else [])]
        )
        raise ConfigError(f"{glob!r} matches {len(chosen)} instances ({ids}): name one")
    return chosen[0]

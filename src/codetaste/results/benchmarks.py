"""``RunBenchmarks``: the benchmarks that runs name in their configs, opened."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.benchmark.config import BenchmarkConfig
from codetaste.benchmark.layout import OUTPUTS_FOLDER, RUN_CONFIG_FILE
from codetaste.core.files import read_regular_file
from codetaste.core.text import printable
from codetaste.errors import ConfigError
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem
from codetaste.results.problems import place_problem
from codetaste.run.resolve import find_benchmark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance


@dataclass(frozen=True)
class RunBenchmarks:
    """The benchmark of each run that has one.

    Attributes:
        by_root: by the folder that was read; runs may share one.
        problems: benchmarks that cannot be opened.
    """

    by_root: Mapping[Path, Benchmark] = field(default_factory=dict)
    problems: tuple[ReadProblem, ...] = ()

    @cached_property
    def opened(self) -> tuple[Benchmark, ...]:
        """The benchmarks in the order of the runs, each once."""
        return tuple({str(each.root): each for each in self.by_root.values()}.values())

    @property
    def only(self) -> Benchmark | None:
        """The benchmark, if there is exactly one."""
        return self.opened[0] if len(self.opened) == 1 else None

    @cached_property
    def _found(self) -> dict[str, tuple[Benchmark, Instance]]:
        # Of benchmarks that share an instance, the first one's.
        return {
            instance.id: (benchmark, instance)
            for benchmark in reversed(self.opened)
            for instance in benchmark.instances
        }

    @property
    def instances(self) -> list[Instance]:
        """The instances of all, each id once."""
        return [instance for _, instance in self._found.values()]

    def find(self, instance: str) -> tuple[Benchmark, Instance] | None:
        """Return the instance with this id, and its benchmark."""
        return self._found.get(instance)


def benchmarks_of_runs(
    roots: Sequence[Path], named: Benchmark | None = None, repos: Path | None = None
) -> RunBenchmarks:
    """Open the benchmark that each run names in its config. Blocking.

    Args:
        roots: folders of runs; one without a benchmark, such as a run of SWE-Refactor, has none here.
        named: the benchmark of all, whatever they name.
        repos: a folder of clones.
    """
    if named is not None:
        return RunBenchmarks(dict.fromkeys(roots, named))
    names = {root: _benchmark_of_run(root) for root in roots}
    opened: dict[str, Benchmark | str] = {name: _open(name, repos) for name in {*names.values()} if name}
    by_root: dict[Path, Benchmark] = {}
    problems: list[ReadProblem] = []
    for root, name in names.items():
        found = opened.get(name)
        if isinstance(found, str):
            if (root / OUTPUTS_FOLDER).is_dir():  # others name one that they could make
                problem = ReadProblem(ProblemKind.MISSING, RUN_CONFIG_FILE, found)
                problems.append(place_problem(problem, root, roots))
        elif found is not None:
            by_root[root] = found
    return RunBenchmarks(by_root, tuple(problems))


def _open(name: str, repos: Path | None) -> Benchmark | str:
    """Return the benchmark, or why it cannot be opened."""
    try:
        return find_benchmark(BenchmarkConfig(path=name, repos=repos), Path())
    except (ConfigError, ValueError):
        return (
            f"the benchmark {printable(name)} cannot be opened: languages, descriptions and golden patches "
            "are unknown; name it with --benchmark"
        )


def _benchmark_of_run(root: Path) -> str:
    """Return the benchmark in a run's frozen config, "" if there is none."""
    for folder in (root, root.parent):
        try:
            config = json.loads(read_regular_file(folder / RUN_CONFIG_FILE))
            return str(config["benchmark"]["path"])
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            continue
    return ""

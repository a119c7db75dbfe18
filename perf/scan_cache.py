"""CPU and wall time of each use of the match cache, beside full scans.

Candidates are registered in batches of five: new ones, then each batch again with one rule changed, and again
with one that is broken. Then all of them score the patch of an agent, the same patch again, and that of a
second agent. The trees are those of the quickstart and, if CODETASTE_CLONES names a folder of clones
OWNER/REPO, of ``--only`` in a published benchmark. A time counts only if both sides find the same. ::

    CODETASTE_CLONES=clones python perf/scan_cache.py --benchmark codetaste100 --only 99designs/gqlgen
"""

from __future__ import annotations

import filecmp
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from measure import Report, arguments, ratio
from one_scan import read, used_s

from codetaste.benchmark.benchmark import Benchmark, open_benchmark, quickstart_folder
from codetaste.core.concurrency import gather
from codetaste.core.paths import cache_dir
from codetaste.rules.config import RulesConfig
from codetaste.rules.registration import Direction
from codetaste.rules.rule import Rule, make_rule
from codetaste.run.services import open_scanner
from codetaste.source.checkout import checkout_trees
from codetaste.source.tree.overlay import OverlayTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.rules.scan.model import ScanResult
    from codetaste.source.checkout import Trees

BATCH, BATCHES = 5, 4


@dataclass(frozen=True, slots=True)
class Task:
    """Trees and rules of an instance, and two patches of R, each with half of the files that X* changes."""

    name: str
    trees: Trees
    rules: list[Rule]
    ignore: str
    patches: list[OverlayTree]


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU and wall seconds of one use."""

    cpu_s: float
    wall_s: float


async def prepare(benchmark: Benchmark, repository: str, folder: Path) -> Task:
    instance = next(each for each in benchmark.instances if f"{each.owner}/{each.repo}" == repository)
    trees = await checkout_trees(benchmark.origin(instance), cache_dir(print))
    files = [path for path in trees.golden.rglob("*") if path.is_file() and not path.is_symlink()]
    names = sorted(path.relative_to(trees.golden).as_posix() for path in files)
    _, differ, new = filecmp.cmpfiles(trees.golden, trees.base, names, shallow=False)
    patches = [
        patch(trees, sorted([*differ, *new])[half::2], folder / f"{instance.id}-{half}") for half in (0, 1)
    ]
    found = (benchmark.rules_path(instance, direction) for direction in Direction)
    named = read([str(path) for path in found])
    rules = [
        make_rule({**rule.body, "id": f"r{number}"})
        for number, (_, rule) in enumerate(named[:: max(1, len(named) // (BATCH * BATCHES))])
    ][: BATCH * BATCHES]
    name = f"{instance.repo}, {len(names)} files, {len(differ) + len(new)} changed"
    return Task(name, trees, rules, benchmark.ignore_text(), patches)


def patch(trees: Trees, paths: Sequence[str], overlay: Path) -> OverlayTree:
    """Return R with files of R∘X* and one more line in each, so that no cached scan of R∘X* has them."""
    for path in paths:
        (overlay / path).parent.mkdir(parents=True, exist_ok=True)
        (overlay / path).write_bytes((trees.golden / path).read_bytes() + b"\n")
    return OverlayTree(trees.base, overlay, frozenset(paths), frozenset())


async def uses(task: Task, config: RulesConfig, found: dict[str, Any]) -> dict[str, Cost]:
    """Return the costs of each use; check the results against ``found``, which the first call fills."""
    scanner, _ = await open_scanner(config, task.ignore, sys.exit)

    async def register(batches: Sequence[Sequence[Rule]]) -> list[ScanResult]:
        both = task.trees.base, task.trees.golden
        scans = [await gather([partial(scanner.scan, rules, tree) for tree in both]) for rules in batches]
        return [scan for pair in scans for scan in pair]

    async def score(patched: OverlayTree) -> list[ScanResult]:
        scanner, _ = await open_scanner(config, task.ignore, sys.exit)
        return [await scanner.scan(task.rules, tree) for tree in (patched.base, patched)]

    new = [task.rules[start : start + BATCH] for start in range(0, len(task.rules), BATCH)]
    steps = {
        "register, new rules": partial(register, new),
        "register, one of five changed": partial(register, [with_last(each, message="m") for each in new]),
        "register, one of five broken": partial(register, [with_last(each, languages=["-"]) for each in new]),
        "first score after that": partial(score, task.patches[0]),
        "re-scored patch": partial(score, task.patches[0]),
        "second agent's patch": partial(score, task.patches[1]),
    }
    costs = {}
    for name, step in steps.items():
        cpu_s, start_s = used_s(), time.monotonic()
        results = await step()
        costs[name] = Cost(used_s() - cpu_s, time.monotonic() - start_s)
        print(f"  {name}: {costs[name].cpu_s:.2f} s CPU, {costs[name].wall_s:.2f} s wall", file=sys.stderr)
        if results != found.setdefault(name, results):
            sys.exit(f"{task.name}, {name}: the results differ")
    return costs


def with_last(rules: Sequence[Rule], **changes: object) -> list[Rule]:
    return [*rules[:-1], make_rule({**rules[-1].body, **changes})]


async def compare(task: Task, rounds: int, report: Report) -> None:
    found: dict[str, Any] = {}
    costs: dict[str, list[dict[str, Cost]]] = {"cached": [], "full scans": []}
    for number in range(rounds):
        for side in costs if number % 2 == 0 else reversed([*costs]):
            with tempfile.TemporaryDirectory() as cache:
                config = RulesConfig(cache=Path(cache) if side == "cached" else "off")
                costs[side].append(await uses(task, config, found))
    for use in found:
        cpu_s = {side: [each[use].cpu_s for each in runs] for side, runs in costs.items()}
        for side, runs in costs.items():
            report.add(f"{task.name}: {use}, {side}, CPU", cpu_s[side], " s")
            report.add(f"{task.name}: {use}, {side}, wall", [each[use].wall_s for each in runs], " s")
        report.add(
            f"{task.name}: {use}, full scans / cached", ratio(cpu_s["full scans"], cpu_s["cached"]), " ×"
        )


async def compare_all(wanted: list[tuple[Benchmark, str]], rounds: int, report: Report) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for benchmark, repository in wanted:
            await compare(await prepare(benchmark, repository, Path(scratch)), rounds, report)


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--benchmark", type=Path, help="a folder in the published layout")
    parser.add_argument("--only", nargs="*", default=["99designs/gqlgen"], help="repositories of it")
    chosen = parser.parse_args()
    wanted = [(open_benchmark(quickstart_folder()), "pytest-dev/pluggy")]
    if chosen.benchmark and (clones := os.environ.get("CODETASTE_CLONES")):
        benchmark = open_benchmark(chosen.benchmark, repos=Path(clones).absolute())
        wanted += [(benchmark, repository) for repository in chosen.only]
    report = Report("uses of the match cache")
    anyio.run(compare_all, wanted, chosen.rounds, report)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())

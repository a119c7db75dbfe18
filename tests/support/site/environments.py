"""Made-up environments of a benchmark's instances, as a run that has built them leaves them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from codetaste.benchmark.instance import Instance
from codetaste.benchmark.layout import scripts_folder
from codetaste.environment.levels import Level
from codetaste.environment.record import (
    Builder,
    EnvironmentDetails,
    EnvironmentRecord,
    GateRecord,
    NetworkUse,
    RecordedMetrics,
    RecordedRun,
    RunSide,
    new_metadata,
    write_record,
)
from codetaste.evaluation.test_runs.gates import Gate
from codetaste.flows.environment.publish import ENVIRONMENTS_FOLDER

GATES = tuple(Gate)
PASSED_GATES = {Level.INSTALLS: 1, Level.TESTS_START: 6, Level.GATES_PASS: 8, Level.OFFLINE: 8}
REASONS = {
    Gate.RESULT: "run_tests printed no result: ModuleNotFoundError: No module named 'attr'",
    Gate.REPEATABLE: "a second run passed 811 tests, the first one 812",
}
RUN_TESTS = "#!/bin/sh\nset -e\ncd /testbed\npython3 -m pytest -q --junitxml=/tmp/report.xml\n"


def write_environments(run: Path, instances: Sequence[Instance], seed: int = 5) -> None:
    """Write an environment of each instance to the run: most are proven, some fail at a gate."""
    rng = random.Random(seed)
    for instance in instances:
        level = rng.choices(list(PASSED_GATES), (1, 2, 3, 6))[0]
        _write(run / ENVIRONMENTS_FOLDER, instance, level, rng)


def _write(root: Path, instance: Instance, level: Level, rng: random.Random) -> None:
    passed, total = PASSED_GATES[level], rng.randint(80, 4_000)
    gates = tuple(
        GateRecord(name=name, passed=at < passed, message="" if at < passed else REASONS.get(name, ""))
        for at, name in enumerate(GATES[: passed + 1])
    )
    failing = rng.randint(0, 6)
    counts = RecordedMetrics(passed=total - failing, failed=failing, skipped=rng.randint(0, 30), total=total)
    runs = tuple(
        RecordedRun(side=side, counts=counts, setup_s=rng.uniform(5, 60), duration_s=rng.uniform(10, 400))
        for side in (RunSide.BASE, RunSide.GOLDEN, RunSide.BASE, RunSide.GOLDEN)
    )
    existing = rng.random() < 0.25
    details = EnvironmentDetails(
        level=level,
        builder=Builder.NEIGHBOUR if existing else Builder.AGENT,
        built_by=f"{instance.owner}__{instance.repo}-5d1e0c3a" if existing else "setup",
        network=NetworkUse(needed=level is not Level.OFFLINE),
        gates=gates,
        runs=runs if level >= Level.TESTS_START else (),
        cost_usd=f"{0 if existing else rng.uniform(0.2, 3):.2f}",
        attempts=0 if existing else rng.randint(1, 4),
        duration_s=rng.uniform(120, 2_400),
    )
    proven = level.is_proven
    reason = "" if proven else f"{GATES[passed]} on base: {REASONS[GATES[passed]]}"
    metadata = new_metadata(
        instance, has_execution_environment=proven, reason_no_execution_environment=reason
    )
    write_record(root, instance, EnvironmentRecord(metadata, details))
    folder = scripts_folder(root, instance)
    folder.mkdir(parents=True)
    (folder / "run_tests").write_text(RUN_TESTS)

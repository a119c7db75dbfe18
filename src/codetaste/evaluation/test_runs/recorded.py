"""PASS from recorded test results: of a prediction's test run, and of the runs on R and R∘X* (the baseline).

This module runs no tests. A prediction's test run without a result counts as (0, 0), as in the paper (§2.1).
A baseline run without a result is ignored and noted, as in the published harness: otherwise one crash on R
would make p_R zero, and a patch after which no test runs would pass.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import BASELINES_FOLDER, GOLDEN, INSTANCE_METADATA_FILE, NULL
from codetaste.core.files import open_regular_file, write_atomically
from codetaste.errors import ConfigError
from codetaste.evaluation.metrics import CRASHED_RUN, PassThresholds, TestCounts, pass_thresholds, passes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance

_SIDES = {GOLDEN: "golden", NULL: "base"}
_RESULT_LINES = 10
"""How many of the last lines of a test output are searched for a result."""
_MAX_OUTPUT_BYTES = 16 * 1024**2
_MAX_TESTS = 10**9
_DIGITS = re.compile(r"-?[0-9]{1,12}")
_ONE_RUN_EACH = "the baseline is one run each of R and R∘X*, not several"
_CRASH = -1
"""What the published harness records as failed tests of a run that crashed."""


@dataclass(frozen=True, slots=True)
class RecordedBaseline:
    """Recorded results of an instance's test suite on R and R∘X*.

    ``thresholds`` are p_R and f_R over ``runs`` runs on R and R∘X* together, None if nothing is recorded;
    ``source`` is where, "" if nowhere. ``faults`` are those of the ``notes`` that report damaged files.
    """

    thresholds: PassThresholds | None = None
    runs: int = 0
    source: str = ""
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PassResult:
    """PASS of one prediction; ``passed`` is None if it is unknown, and ``why`` gives the reason."""

    tests: TestCounts | None = None
    baseline: RecordedBaseline = RecordedBaseline()
    passed: bool | None = None
    reason: str = "no test results are recorded"

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on PASS for the reader; empty if PASS is unknown."""
        if self.passed is None:
            return ()
        if self.tests is None or not self.tests.is_crash:
            return self.baseline.notes
        why = "" if self.tests.error == CRASHED_RUN.error else f" ({self.tests.error})"
        crashed = f"{CRASHED_RUN.error}{why}: it counts as 0 passed, 0 failed"
        return (crashed, *self.baseline.notes)


UNTESTED = PassResult()


def compare_with_baseline(tests: TestCounts | None, baseline: RecordedBaseline) -> PassResult:
    """Compute PASS (CodeTaste §4.1) if both the test results and a baseline are known."""
    if tests is None:
        return PassResult(None, baseline)
    if baseline.thresholds is None:
        return PassResult(tests, baseline, None, "no baseline of R and R∘X* is recorded")
    return PassResult(tests, baseline, passes(tests, baseline.thresholds), "")


def parse_test_output(content: bytes) -> TestCounts | None:
    """Return the results at the end of a test run's output; None if there are none.

    The last JSON object with results among the last ten lines counts, as in the published harness.
    """
    lines = content[-_MAX_OUTPUT_BYTES:].decode("utf-8", "replace").strip().split("\n")
    found = map(_counts_in, reversed(lines[-_RESULT_LINES:]))
    return next((counts for counts in found if counts is not None), None)


def read_test_output(path: Path) -> bytes:
    """Return the end of a test run's output: it can be long, and results come last.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return _tail(path)
    except OSError as error:
        raise ConfigError(f"{path}: the test output cannot be read: {error.strerror}") from None


def parse_test_counts(data: object) -> TestCounts | None:
    """Return parsed JSON ``data`` as the results of a test run; None if it is not a valid result.

    ``passed``, ``failed`` and ``total`` are required; NaN, infinities, fractions and negative numbers are
    invalid. A count may be written as a string, as the published harness reads it. ``failed`` -1 with an
    ``error`` is how it records a crash: (0, 0). Other keys are ignored.
    """
    if not isinstance(data, dict):
        return None
    counts: list[Any] = [data.get("passed"), data.get("failed"), data.get("skipped", 0), data.get("total")]
    error = data.get("error")
    if not (error is None or isinstance(error, str)):
        return None
    counts = [int(each) if isinstance(each, str) and _DIGITS.fullmatch(each) else each for each in counts]
    if error and type(counts[1]) is int and counts[1] == _CRASH:
        return replace(CRASHED_RUN, error=error)
    if not all(map(_is_count, counts)):
        return None
    passed, failed, skipped, total = map(int, counts)
    return TestCounts(passed, failed, skipped, total, error)


def read_baseline(benchmark: Benchmark, instance: Instance) -> RecordedBaseline:
    """Return the baseline of ``instance`` recorded in the benchmark's folder.

    ``baseline_results/<path>/{golden_agent,null_agent}.jsonl`` (k runs each) has precedence over
    ``golden_metrics`` and ``base_metrics`` of ``instance_metadata.json`` (one run each).

    Raises:
        ConfigError: an existing file cannot be read, or the metadata are not a JSON object.
    """
    folder = benchmark.root / BASELINES_FOLDER / instance.path
    recorded = _from_runs(folder)
    if recorded.thresholds is not None:
        return recorded
    metadata = benchmark.metadata(instance) or {}
    sides = {name: parse_test_counts(metadata.get(f"{name}_metrics")) for name in ("golden", "base")}
    found = [counts for counts in sides.values() if counts is not None and not counts.is_crash]
    crashed = [name for name, counts in sides.items() if counts is not None and counts.is_crash]
    notes = [f"the {name} run of the baseline crashed and does not count" for name in crashed]
    if not found:
        return replace(recorded, notes=(*recorded.notes, *notes))
    notes += [_ONE_RUN_EACH] if len(found) == len(sides) else []
    notes += [f"the baseline has no run of {side}" for side, counts in sides.items() if counts is None]
    all_notes = (*recorded.notes, *notes)
    return RecordedBaseline(
        pass_thresholds(found), len(found), INSTANCE_METADATA_FILE, all_notes, recorded.faults
    )


def write_baseline(
    root: Path, instance: Instance, golden: Sequence[TestCounts | None], null: Sequence[TestCounts | None]
) -> None:
    """Write test runs on R∘X* and on R to the benchmark ``root`` as published; blocking.

    Args:
        root: the folder of the benchmark.
        instance: the instance.
        golden: the counts of each run on R∘X*, None for a run that crashed.
        null: the same on R.

    Raises:
        StorageFull: no space left.
        JournalError: a file cannot be written.
    """
    for agent, runs in ((GOLDEN, golden), (NULL, null)):
        text = "".join(f"{json.dumps(counts and _published(counts))}\n" for counts in runs)
        write_atomically(root / BASELINES_FOLDER / instance.path / f"{agent}.jsonl", text)


def _published(counts: TestCounts) -> dict[str, Any]:
    return {**asdict(counts), "pass_rate": counts.pass_rate, "is_valid": counts.is_valid}


def read_pseudo_agent_tests(benchmark: Benchmark, instance: Instance, agent: str) -> TestCounts | None:
    """Return the recorded test results of a pseudo agent: on R∘X* for golden, on R for null.

    Raises:
        ConfigError: an existing file cannot be read, or the metadata are not a JSON object.
    """
    metadata = benchmark.metadata(instance) or {}
    stated = parse_test_counts(metadata.get(f"{_SIDES[agent]}_metrics"))
    if stated is not None:
        return stated
    runs = _lines(benchmark.root / BASELINES_FOLDER / instance.path / f"{agent}.jsonl") or ()
    return next((counts for counts in map(_counts_in, runs) if counts is not None), None)


def _from_runs(folder: Path) -> RecordedBaseline:
    """Read the published files of baseline runs; a ``null`` line stands for a crashed run."""
    runs: list[TestCounts] = []
    notes: list[str] = []
    faults: list[str] = []
    per_file: list[int] = []
    for agent in (GOLDEN, NULL):
        path = folder / f"{agent}.jsonl"
        lines = _lines(path)
        if lines is None:
            if folder.is_dir():
                notes.append(f"the baseline has no {path.name}")
            continue
        read = [(line, _counts_in(line)) for line in lines]
        per_file.append(len(read))
        runs += [counts for _, counts in read if counts is not None and not counts.is_crash]
        nulls = sum(1 for line, _ in read if line == "null")
        damaged = sum(1 for _, counts in read if counts is None) - nulls
        crashed = nulls + sum(1 for _, counts in read if counts is not None and counts.is_crash)
        notes += [f"{crashed} of {len(read)} runs in {path.name} crashed and do not count"] if crashed else []
        if damaged:
            faults.append(f"{damaged} of {len(read)} lines in {path.name} are damaged")
            notes.append(faults[-1])
    if per_file == [1, 1]:
        notes.append(_ONE_RUN_EACH)
    source = BASELINES_FOLDER if runs else ""
    return RecordedBaseline(pass_thresholds(runs), len(runs), source, tuple(notes), tuple(faults))


def _lines(path: Path) -> list[str] | None:
    """Return the non-blank lines of a file; None if it does not exist."""
    try:
        text = _tail(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    return [line.strip() for line in text.split("\n") if line.strip()]


def _counts_in(line: str) -> TestCounts | None:
    try:
        return parse_test_counts(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _is_count(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= _MAX_TESTS and value == int(value)  # NaN fails each comparison


def _tail(path: Path) -> bytes:
    with open_regular_file(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _MAX_OUTPUT_BYTES))
        return file.read(_MAX_OUTPUT_BYTES)

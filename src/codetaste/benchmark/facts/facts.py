"""Facts about the instances of a benchmark, for CodeTaste's Tables 1 and 2.

Nothing is fetched. None means unknown: a folder may lack rules, descriptions or metadata of some instances.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.facts.clones import PatchCounts, count_golden_patch, detect_licence, find_clone
from codetaste.benchmark.facts.licences import UNKNOWN
from codetaste.benchmark.layout import Track
from codetaste.core.files import read_regular_file
from codetaste.errors import ConfigError, RuleError, SourceError
from codetaste.rules.registration import Direction
from codetaste.rules.rule import read_rules
from codetaste.source.patch.parse import parse_patch, read_patch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance

REFERENCE_FILE = "golden_reference.csv"
"""Optional file with counts of golden patches, rules and tests; used where the folder lacks the data."""
_MAX_REFERENCE_BYTES = 16 * 1024**2
_MAX_DIGITS = 12


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """Facts about one instance.

    Attributes:
        instance: its row in the table.
        instructed_bytes: bytes of its description in UTF-8, without surrounding white space.
        open_bytes: the same for its open description.
        additive_rules: number of additive rules.
        reductive_rules: number of reductive rules.
        tests: number of tests in the recorded test run of R∘X*, skipped ones included where recorded.
        golden: size of its golden patch.
        base_tests: the recorded test run of R, as in the published metadata.
        golden_tests: the same for R∘X*.
        clone: the git directory of a local clone.
        licence: its SPDX name, "unknown" if it is not certain.
        problems: files that could not be read, one line each.
    """

    instance: Instance
    instructed_bytes: int | None = None
    open_bytes: int | None = None
    additive_rules: int | None = None
    reductive_rules: int | None = None
    tests: int | None = None
    golden: PatchCounts | None = None
    base_tests: Mapping[str, Any] | None = None
    golden_tests: Mapping[str, Any] | None = None
    clone: Path | None = None
    licence: str = UNKNOWN
    problems: tuple[str, ...] = ()

    @property
    def repository(self) -> str:
        """``owner/repo``."""
        return f"{self.instance.owner}/{self.instance.repo}"

    @property
    def rules(self) -> int | None:
        """Number of all its rules."""
        if self.additive_rules is None or self.reductive_rules is None:
            return None
        return self.additive_rules + self.reductive_rules


@dataclass(frozen=True, slots=True)
class BenchmarkFacts:
    """Facts about all instances, in the order of the table."""

    instances: tuple[InstanceFacts, ...]

    @property
    def repositories(self) -> Mapping[str, str]:
        """The licence of each repository, by name, sorted case-insensitively."""
        found: dict[str, str] = {}
        for facts in self.instances:
            if found.get(facts.repository, UNKNOWN) == UNKNOWN:
                found[facts.repository] = facts.licence
        return dict(sorted(found.items(), key=lambda item: item[0].lower()))

    @property
    def languages(self) -> Mapping[str, int]:
        """Number of instances by language (Figure 5), largest first."""
        counts = Counter(facts.instance.language for facts in self.instances)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def describe_benchmark(benchmark: Benchmark, instances: Sequence[Instance] | None = None) -> BenchmarkFacts:
    """Collect facts from the folder, a file of reference counts beside its table, and local clones.

    To be called in a thread: each clone takes about a second.

    Args:
        benchmark: if opened with ``repos``, licences and sizes of golden patches come from the clones.
        instances: only these; default all.

    Raises:
        ToolMissing: there are clones, but git is not installed.
    """
    reference = _reference(benchmark.root)
    chosen = benchmark.instances if instances is None else instances
    return BenchmarkFacts(tuple(_facts(benchmark, each, reference.get(each.path, {})) for each in chosen))


def _facts(benchmark: Benchmark, instance: Instance, reference: Mapping[str, str]) -> InstanceFacts:
    problems: list[str] = []
    metadata: Mapping[str, Any] = {}
    try:
        metadata = benchmark.metadata(instance) or {}
    except ConfigError as error:
        problems.extend(error.problems)
    base, golden = metadata.get("base_metrics"), metadata.get("golden_metrics")
    total = _count(golden.get("total")) if isinstance(golden, dict) else None
    clone = find_clone(benchmark, instance)
    additive, reductive = (_rules(benchmark, instance, direction, problems) for direction in Direction)
    return InstanceFacts(
        instance,
        _description_bytes(benchmark, instance, Track.INSTRUCTED),
        _description_bytes(benchmark, instance, Track.OPEN),
        _number(reference, "n_pos") if additive is None else additive,
        _number(reference, "n_neg") if reductive is None else reductive,
        _tests(reference) if total is None else total,
        _golden(benchmark, instance, clone, problems) or _patch_counts(reference),
        base if isinstance(base, dict) else None,
        golden if isinstance(golden, dict) else None,
        clone,
        UNKNOWN if clone is None else detect_licence(clone, instance.commit_hash),
        tuple(problems),
    )


def _description_bytes(benchmark: Benchmark, instance: Instance, track: Track) -> int | None:
    try:
        return len(benchmark.description(instance, track).strip().encode())
    except ConfigError:
        return None


def _rules(benchmark: Benchmark, instance: Instance, direction: Direction, problems: list[str]) -> int | None:
    path = benchmark.rules_path(instance, direction)
    try:
        return len(read_rules(read_regular_file(path), source=str(path)))
    except FileNotFoundError:
        return None
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")
    except RuleError as error:
        problems.append(str(error).splitlines()[0])
    return None


def _golden(
    benchmark: Benchmark, instance: Instance, clone: Path | None, problems: list[str]
) -> PatchCounts | None:
    path = benchmark.golden_path(instance)
    try:
        patch = parse_patch(read_patch(path)) if path.exists() else None
    except SourceError as error:
        problems.append(f"the golden patch of {instance.id}: {error}")
        patch = None
    if patch is not None:
        return PatchCounts(len(patch.files), patch.added_count, patch.removed_count)
    if clone is None:
        return None
    return count_golden_patch(clone, instance.commit_hash, instance.golden_commit_hash)


def _reference(root: Path) -> dict[str, dict[str, str]]:
    try:
        text = read_regular_file(root / REFERENCE_FILE, _MAX_REFERENCE_BYTES).decode("utf-8", "replace")
        rows = csv.DictReader(text.splitlines())
        return {row["instance"]: row for row in rows if row.get("instance")}
    except (OSError, csv.Error):
        return {}


def _number(reference: Mapping[str, str], name: str) -> int | None:
    return _count(reference.get(name))


def _count(value: object) -> int | None:
    """Return a number of zero or more, also one written as a string; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS:
        return int(value)
    return value if type(value) is int and value >= 0 else None


def _patch_counts(reference: Mapping[str, str]) -> PatchCounts | None:
    found = [_number(reference, name) for name in ("files", "naive_added", "naive_removed")]
    counts = [number for number in found if number is not None]
    return PatchCounts(*counts) if len(counts) == len(found) else None


def _tests(reference: Mapping[str, str]) -> int | None:
    """Return the size of the test run of R∘X*, without skipped tests, which the file does not have."""
    passed, failed = _number(reference, "golden_passed"), _number(reference, "golden_failed")
    return None if passed is None or failed is None else passed + failed

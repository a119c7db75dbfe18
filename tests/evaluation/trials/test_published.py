"""Published instances: the golden patch follows every rule, an empty patch none; counts are as published."""

from __future__ import annotations

import csv
from pathlib import Path

import anyio
import pytest

from codetaste.benchmark.benchmark import Benchmark, open_benchmark
from codetaste.benchmark.instance import Instance
from codetaste.evaluation.evaluate import Evaluation
from codetaste.evaluation.validation import InstanceValidation, ValidationContext, validate_instance
from codetaste.rules.cache.keys import engine_cache_name
from codetaste.rules.cache.scanner import IncrementalScanner
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep

HITS = {
    "koajs__koa-ef467caa": (385, 345),
    "99designs__gqlgen-d5c9f896": (323, 282),
    "aws__aws-cli-20315462": (73, 675),
}
"""|L⁺ ∩ C| and |L⁻ ∩ C| of the golden patch, from the stock engine's SARIF (docs/reproduction.md)."""


def reference(benchmark: Benchmark, instance: Instance) -> dict[str, str]:
    with (benchmark.root / "golden_reference.csv").open() as file:
        return next(row for row in csv.DictReader(file) if row["instance"] == instance.path)


def validate(bench: ValidationContext, instance: Instance) -> InstanceValidation:
    async def main() -> InstanceValidation:
        return await validate_instance(bench, instance)

    return anyio.run(main)


def rate(evaluation: Evaluation | None) -> tuple[int, int, int, int]:
    assert evaluation is not None
    assert evaluation.rule_counts is not None, evaluation.reason
    counts = evaluation.rule_counts
    return counts.positive_matched, counts.positive_total, counts.negative_matched, counts.negative_total


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", HITS)
def test_instance_is_valid_and_golden_patch_has_published_counts(
    name: str, published_data: Path, clones: Path, engine: RuleEngine, tmp_path: Path
) -> None:
    benchmark = open_benchmark(published_data, repos=clones)
    instance = benchmark.get(name)
    store = MatchStore(tmp_path / "matches", engine_cache_name(engine))
    scanner = IncrementalScanner(OpenGrep(engine), store, benchmark.ignore_text())
    validation = validate(ValidationContext(benchmark, scanner, tmp_path, tmp_path, "opengrep"), instance)
    assert validation.valid, validation.problems
    row = reference(benchmark, instance)
    rules = int(row["n_pos"]), int(row["n_neg"])
    assert rate(validation.golden) == (rules[0], rules[0], 0, rules[1])
    assert rate(validation.null) == (0, rules[0], rules[1], rules[1])
    assert validation.golden is not None
    assert validation.golden.precision is not None
    assert validation.golden.line_counts == (
        int(row["official_added"]),
        int(row["official_removed"]),
    )
    assert validation.golden.line_counts_all == (
        int(row["strict_added"]),
        int(row["strict_removed"]),
    )
    assert validation.golden.files == int(row["files"])
    assert len(validation.golden.positive_matches) == int(row["sum_nr_refactored"])
    assert (validation.golden.precision.hits_added, validation.golden.precision.hits_removed) == HITS[name]

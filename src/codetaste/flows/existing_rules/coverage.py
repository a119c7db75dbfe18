"""The lines that the rules of a benchmark cover, to compare discovered rules with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.files import read_regular_file
from codetaste.errors import ConfigError
from codetaste.rules.registration import Direction
from codetaste.rules.rule import parse_rules
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.flows.context import ScanContext
    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import Line


async def existing_coverage(
    benchmark: Benchmark, instances: Sequence[Instance], scan: ScanContext
) -> dict[tuple[str, Direction], frozenset[Line]]:
    """Return the covered lines of each instance and direction for which the benchmark has rules.

    Lines are of R for reductive rules, and of R∘X* for additive ones.

    Raises:
        ConfigError: a rule file cannot be read.
        RuleError: a rule file is invalid.
        SourceError: the trees of an instance cannot be checked out.
        EngineError: the rule engine failed.
    """
    covered: dict[tuple[str, Direction], frozenset[Line]] = {}
    for instance in instances:
        files = {direction: benchmark.rules_path(instance, direction) for direction in Direction}
        files = {direction: path for direction, path in files.items() if path.is_file()}
        if not files:
            continue
        trees = await checkout_trees(benchmark.origin(instance), scan.cache)
        for direction, path in files.items():
            rules = await to_thread.run_sync(_read, path)
            tree = trees.golden if direction is Direction.ADDITIVE else trees.base
            found = await scan.scanner.scan(rules, tree)
            lines = (found.coverage(rule.id) for rule in rules)
            covered[instance.id, direction] = frozenset[tuple[str, int]]().union(*lines)
    return covered


def _read(path: Path) -> tuple[Rule, ...]:
    try:
        return parse_rules(read_regular_file(path), source=str(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None

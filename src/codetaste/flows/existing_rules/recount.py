"""Recount published rules: compare M(γ, R) and M(γ, R∘X*) of every rule with its metadata."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.core.files import read_regular_file
from codetaste.errors import CodetasteError, ConfigError
from codetaste.rules.recount import recount_rules
from codetaste.rules.registration import Direction
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.rules.recount import RecountReport
    from codetaste.rules.scan.model import Scanner

MAX_CONCURRENT_CHECKS = 2


@dataclass(frozen=True, slots=True)
class RuleCheckResult:
    """The recount of one instance: its report, the reason why it was skipped, or the error."""

    instance: str
    report: RecountReport | None = None
    skip_reason: str = ""
    error: str = ""

    @property
    def agrees(self) -> bool:
        """Whether no count differs from the published one."""
        return not self.error and (self.report is None or self.report.all_match)


async def check_published_rules(
    benchmark: Benchmark,
    instances: Sequence[Instance],
    scanner: Scanner,
    cache: Path,
    on_result: Callable[[RuleCheckResult], None],
) -> list[RuleCheckResult]:
    """Recount the rules of ``instances``, a few concurrently; return the results in the given order.

    ``on_result`` is called with each result as soon as it is known.
    """
    limiter = anyio.CapacityLimiter(MAX_CONCURRENT_CHECKS)
    checked: dict[str, RuleCheckResult] = {}

    async def one(instance: Instance) -> None:
        async with limiter:
            try:
                result = await _check(benchmark, instance, scanner, cache)
            except CodetasteError as error:
                result = RuleCheckResult(instance.id, error=str(error))
            checked[instance.id] = result
            on_result(result)

    async with anyio.create_task_group() as tasks:
        for instance in instances:
            tasks.start_soon(one, instance)
    return [checked[instance.id] for instance in instances]


async def _check(benchmark: Benchmark, instance: Instance, scanner: Scanner, cache: Path) -> RuleCheckResult:
    paths = [benchmark.rules_path(instance, direction) for direction in Direction]
    if not any(path.is_file() for path in paths):
        return RuleCheckResult(instance.id, skip_reason="no rules")
    if reason := benchmark.describe_missing_clone(instance):
        return RuleCheckResult(instance.id, skip_reason=reason)
    trees = await checkout_trees(benchmark.origin(instance), cache)
    texts = {path.name: await to_thread.run_sync(_read_if_present, path) for path in paths}
    return RuleCheckResult(instance.id, await recount_rules(scanner, trees.base, trees.golden, texts))


def _read_if_present(path: Path) -> bytes:
    try:
        return read_regular_file(path)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def format_rule_check(checked: RuleCheckResult) -> str:
    """Format one instance as a line, and each disagreement as one more."""
    if checked.skip_reason:
        return f"{checked.instance}: skipped: {checked.skip_reason}"
    if checked.error or checked.report is None:
        return f"{checked.instance}: FAILED: {checked.error}"
    report = checked.report
    wrong = len(report.mismatches)
    lines = [f"{checked.instance}: {report.rule_count - wrong} of {report.rule_count} rules agree"]
    for each in report.mismatches:
        stated = f"states {_count(each.stated_base)} in R and {_count(each.stated_golden)} in R∘X*"
        counted = f"counted {_count(each.base)} and {_count(each.golden)}"
        why = f" ({each.reason})" if each.reason else ""
        lines.append(f"  {each.file}:{each.line}: {each.rule_id} {stated}, {counted}{why}")
    return "\n".join(lines)


def _count(count: int | None) -> str:
    return "nothing" if count is None else str(count)


def rule_checks_to_json(checked: Sequence[RuleCheckResult]) -> dict[str, Any]:
    """Return the results as JSON data."""
    return {
        "agree": all(each.agrees for each in checked),
        "instances": [
            {
                "instance": each.instance,
                "skipped": each.skip_reason or None,
                "failed": each.error or None,
                "rules": each.report.rule_count if each.report else None,
                "disagreements": [asdict(item) for item in each.report.mismatches] if each.report else [],
                "problems": [{"tree": side, **asdict(problem)} for side, problem in each.report.problems]
                if each.report
                else [],
            }
            for each in checked
        ],
    }

"""``codetaste rules check``: compare every published rule's metadata with its matches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.console import notify, print_result
from codetaste.core.paths import cache_dir
from codetaste.errors import ConfigError
from codetaste.flows.check_rules import check_published_rules, format_rule_check, rule_checks_to_json
from codetaste.rules.config import RulesConfig
from codetaste.run.services import open_scanner

if TYPE_CHECKING:
    from codetaste.flows.check_rules import RuleCheckResult


async def rules_check(folder: Path, repos: Path | None, globs: tuple[str, ...], as_json_data: bool) -> int:
    """Check the rules of the benchmark in ``folder``; returns the exit code, 1 if any differs.

    Raises:
        ConfigError: a folder does not exist, a glob matches nothing, or the benchmark's table is invalid.
        ToolMissing: there is no rule engine.
    """
    if repos is not None and not await to_thread.run_sync(Path.is_dir, repos):
        raise ConfigError(f"--repos: {repos} is not a folder")
    benchmark = open_benchmark(folder, repos=repos)
    instances = benchmark.select(globs)
    cache = await to_thread.run_sync(cache_dir, notify)
    scanner, engine = await open_scanner(RulesConfig(), benchmark.ignore_text(), notify, cache=cache)
    if engine.warning:
        notify(engine.warning)

    def report(checked: RuleCheckResult) -> None:
        if not as_json_data:
            print_result(format_rule_check(checked))

    checked = await check_published_rules(benchmark, instances, scanner, cache, report)
    if as_json_data:
        print_result(json.dumps({"engine": engine.version, **rule_checks_to_json(checked)}, indent=2))
    else:
        print_result(_format_total(checked))
    return 0 if all(each.agrees for each in checked) else 1


def _format_total(checked: list[RuleCheckResult]) -> str:
    reports = [each.report for each in checked if each.report is not None]
    rules = sum(report.rule_count for report in reports)
    wrong = sum(len(report.mismatches) for report in reports)
    failed = sum(1 for each in checked if each.error)
    skipped = sum(1 for each in checked if each.skip_reason)
    text = f"{rules - wrong} of {rules} rules agree in {len(reports)} instances; {skipped} skipped"
    return f"{text}, {failed} failed" if failed else text

"""``codetaste rules check``: compare every published rule's metadata with its matches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread
from cyclopts import App

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.cli.arguments import open_scan
from codetaste.cli.options import AsJson, OptionalPath, Several
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.text import plural
from codetaste.errors import ConfigError
from codetaste.flows.existing_rules.recount import (
    check_published_rules,
    format_rule_check,
    rule_checks_to_json,
)

if TYPE_CHECKING:
    from codetaste.flows.existing_rules.recount import RuleCheckResult


rules = App(name="rules")


@rules.command
@command
async def check(
    *, benchmark: Path, repos: OptionalPath = None, instance: Several = (), json_: AsJson = False
) -> int:
    """Count the matches of every published rule in R and in R∘X*, and list rules whose metadata differ.

    Instances without rules or clone are listed as skipped. Exit code 1 if any rule differs.

    Args:
        benchmark: A folder in the published layout.
        repos: A folder of clones OWNER/REPO; otherwise each instance's own origin is used.
        instance: Globs on instance ids; default all.
        json_: Print the result as JSON.

    Raises:
        ConfigError: a folder does not exist, a glob matches nothing, or the benchmark's table is invalid.
        ToolMissing: there is no rule engine.
    """
    if repos is not None and not await to_thread.run_sync(Path.is_dir, repos):
        raise ConfigError(f"--repos: {repos} is not a folder")
    opened = open_benchmark(benchmark, repos=repos)
    instances = opened.select(instance)
    scan = await open_scan(opened)

    def report(checked: RuleCheckResult) -> None:
        if not json_:
            print_result(format_rule_check(checked))

    checked = await check_published_rules(opened, instances, scan.scanner, scan.cache, report)
    if json_:
        print_result(json_document({"engine": scan.engine.version, **rule_checks_to_json(checked)}))
    else:
        print_result(_format_total(checked))
    return 0 if all(each.agrees for each in checked) else 1


def _format_total(checked: list[RuleCheckResult]) -> str:
    reports = [each.report for each in checked if each.report is not None]
    total = sum(report.rule_count for report in reports)
    wrong = sum(len(report.mismatches) for report in reports)
    failed = sum(1 for each in checked if each.error)
    skipped = sum(1 for each in checked if each.skip_reason)
    agree = f"{plural(total, 'rule')} {'agrees' if total == 1 else 'agree'}"
    text = f"{total - wrong} of {agree} in {plural(len(reports), 'instance')}; {skipped} skipped"
    return f"{text}, {failed} failed" if failed else text

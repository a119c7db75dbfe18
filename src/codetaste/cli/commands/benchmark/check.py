"""``codetaste benchmark check``: check that golden scores 1 and null 0 on each instance."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.cli.arguments import resolve_benchmark
from codetaste.console import notify, print_result
from codetaste.core.paths import cache_dir
from codetaste.evaluation.validation import ValidationContext, validate_instances
from codetaste.report.validation import all_sound, render_validation, validations_to_json
from codetaste.rules.config import RulesConfig
from codetaste.run.services import open_scanner

if TYPE_CHECKING:
    from codetaste.evaluation.validation import InstanceValidation


async def check_benchmark(name: str, repos: Path | None, globs: tuple[str, ...], as_json_data: bool) -> int:
    """Check the benchmark ``name``; returns the exit code, 1 if an instance is not sound or none was checked.

    Raises:
        ConfigError: a folder does not exist, a glob matches nothing, or the benchmark's table is invalid.
        ToolMissing: there is no rule engine.
    """
    benchmark = await to_thread.run_sync(resolve_benchmark, name, repos)
    instances = benchmark.select(globs)
    cache = await to_thread.run_sync(cache_dir, notify)
    scanner, engine = await open_scanner(RulesConfig(), benchmark.ignore_text(), notify, cache=cache)
    if engine.warning:
        notify(engine.warning)

    def report(checked: InstanceValidation) -> None:
        if not as_json_data:
            print_result(render_validation(checked))

    with tempfile.TemporaryDirectory(prefix="codetaste-check-") as scratch:
        bench = ValidationContext(benchmark, scanner, cache, Path(scratch), engine.label)
        checked = await validate_instances(bench, instances, report)
    if as_json_data:
        print_result(json.dumps({"engine": engine.version, **validations_to_json(checked)}, indent=2))
    else:
        print_result(_format_total(checked))
    return 0 if all_sound(checked) else 1


def _format_total(checked: list[InstanceValidation]) -> str:
    not_skipped = [each for each in checked if not each.skip_reason]
    sound = sum(bool(each.valid) for each in not_skipped)
    text = f"{sound} of {len(not_skipped)} instances are sound; {len(checked) - len(not_skipped)} skipped"
    return text if not_skipped else f"{text}: nothing was checked"

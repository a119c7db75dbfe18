"""``codetaste benchmark check``: check that golden scores 1 and null 0 on each instance."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.cli.arguments import open_scan, resolve_benchmark
from codetaste.cli.options import AsJson, OptionalPath, Several
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.text import plural
from codetaste.evaluation.validation import ValidationContext, validate_instances
from codetaste.report.validation import all_sound, render_validation, validations_to_json

if TYPE_CHECKING:
    from codetaste.evaluation.validation import InstanceValidation


@command
async def check(
    *,
    benchmark: str = "quickstart",
    repos: OptionalPath = None,
    instance: Several = (),
    json_: AsJson = False,
) -> int:
    """Check the instances, and print each as soon as it is checked.

    Args:
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO; otherwise each instance's own origin is used.
        instance: Globs on instance ids; default all.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if an instance is not sound or none was checked.

    Raises:
        ConfigError: a folder does not exist, a glob matches nothing, or the benchmark's table is invalid.
        ToolMissing: there is no rule engine.
    """
    opened = await to_thread.run_sync(resolve_benchmark, benchmark, repos)
    instances = opened.select(instance)
    scan = await open_scan(opened)

    def report(checked: InstanceValidation) -> None:
        if not json_:
            print_result(render_validation(checked))

    with tempfile.TemporaryDirectory(prefix="codetaste-check-") as scratch:
        bench = ValidationContext(opened, scan.scanner, scan.cache, Path(scratch), scan.engine.label)
        checked = await validate_instances(bench, instances, report)
    if json_:
        print_result(json_document({"engine": scan.engine.version, **validations_to_json(checked)}))
    else:
        print_result(_format_total(checked))
    return 0 if all_sound(checked) else 1


def _format_total(checked: list[InstanceValidation]) -> str:
    not_skipped = [each for each in checked if not each.skip_reason]
    sound = sum(bool(each.valid) for each in not_skipped)
    are = f"{plural(len(not_skipped), 'instance')} {'is' if len(not_skipped) == 1 else 'are'}"
    text = f"{sound} of {are} sound; {len(checked) - len(not_skipped)} skipped"
    return text if not_skipped else f"{text}: nothing was checked"

"""``codetaste benchmark check``: check that golden scores 1 and null 0 on each instance."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.assembly import cache_dir, open_scanner
from codetaste.command import say, tell
from codetaste.commands.named import named_benchmark
from codetaste.evaluation.soundness import Bench, check_all
from codetaste.report.soundness_text import all_sound, render_soundness, soundness_json
from codetaste.rules.config import RulesConfig

if TYPE_CHECKING:
    from codetaste.evaluation.soundness import Soundness


async def check_soundness(name: str, repos: Path | None, globs: tuple[str, ...], as_json_data: bool) -> int:
    """Check the benchmark ``name``; returns the exit code, 1 if an instance is not sound or none was checked.

    Raises:
        ConfigError: a folder does not exist, a glob matches nothing, or the benchmark's table is invalid.
        ToolMissing: there is no rule engine.
    """
    benchmark = await to_thread.run_sync(named_benchmark, name, repos)
    instances = benchmark.select(globs)
    cache = await to_thread.run_sync(cache_dir, tell)
    scanner, engine = await open_scanner(RulesConfig(), benchmark.ignore_text(), tell, cache=cache)
    if engine.warning:
        tell(engine.warning)

    def report(checked: Soundness) -> None:
        if not as_json_data:
            say(render_soundness(checked))

    with tempfile.TemporaryDirectory(prefix="codetaste-check-") as scratch:
        bench = Bench(benchmark, scanner, cache, Path(scratch), engine.label)
        checked = await check_all(bench, instances, report)
    if as_json_data:
        say(json.dumps({"engine": engine.version, **soundness_json(checked)}, indent=2))
    else:
        say(_format_total(checked))
    return 0 if all_sound(checked) else 1


def _format_total(checked: list[Soundness]) -> str:
    not_skipped = [each for each in checked if not each.skipped]
    sound = sum(bool(each.sound) for each in not_skipped)
    text = f"{sound} of {len(not_skipped)} instances are sound; {len(checked) - len(not_skipped)} skipped"
    return text if not_skipped else f"{text}: nothing was checked"

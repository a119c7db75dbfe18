"""Run a config with ``[mine]``, and print what came of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import MINING_FOLDER, STEPS_FILE
from codetaste.console.exit_codes import STOPPED
from codetaste.console.json import json_document
from codetaste.console.streams import print_result, result_is_coloured, result_stream, width_of
from codetaste.core.files import write_atomically
from codetaste.core.text import plural
from codetaste.flows.mine.context import funnel_file, mining_folder
from codetaste.mining.funnel import funnel_from_json, yields_to_json
from codetaste.report.render.csv import render_csv
from codetaste.report.render.text import render_text
from codetaste.report.summary import render_summary, summary_to_json
from codetaste.report.tables.funnel import funnel_table, steps_table
from codetaste.run.config import MINED_BENCHMARK
from codetaste.run.limits import load_limits
from codetaste.run.mined.assembly import Assembly, assemble
from codetaste.run.mined.steps import yield_of_steps
from codetaste.run.signals import StopRequest, until_stopped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.mining.funnel import FunnelRow, StepYield
    from codetaste.run.config import Config
    from codetaste.run.limits import RuntimeLimits
    from codetaste.run.plan import RunOptions


_STEPS_TABLE = "steps.csv"


async def assemble_and_report(base: Config, path: Path, options: RunOptions) -> int:
    """Run the config that was read from ``path``, and print the funnel, the candidates and the last round.

    Returns:
        The exit code: that of the last round, 1 if no candidate is left, 130 if the run was stopped.
    """
    stop = StopRequest()
    limits = load_limits(base, path)
    assembly = await until_stopped(stop, lambda: assemble(limits, path, options, stop))
    if assembly is None:
        return STOPPED
    funnels = await to_thread.run_sync(_read_funnels, limits)
    steps = await to_thread.run_sync(_write_steps, funnels, assembly, limits)
    if options.as_json:
        print_result(json_document(_to_json(assembly, steps, limits.directory)))
    else:
        width = width_of(result_stream())
        for name, rows in funnels.items():
            print_result(f"mining run {name}\n{render_text(funnel_table(rows), width)}")
        if assembly.summary is not None:
            print_result(render_summary(assembly.summary, width, coloured=result_is_coloured()))
        if steps:
            print_result(render_text(steps_table(steps), width))
        print_result(_describe(assembly, limits.directory))
    if stop.reason:
        return STOPPED
    if not assembly.chosen:
        return 1
    return 0 if assembly.summary is None else assembly.summary.exit_code


def _read_funnels(limits: RuntimeLimits) -> dict[str, tuple[FunnelRow, ...]]:
    """Return the funnels of the mining runs, and write each as a table beside its figure data."""
    funnels = {}
    for run in limits.config.mine.runs if limits.config.mine else ():
        file = funnel_file(mining_folder(limits.directory, run.name))
        if file.is_file():
            funnels[run.name] = funnel_from_json(json.loads(file.read_bytes()))
            text = render_csv([funnel_table(funnels[run.name])])
            write_atomically(file.with_suffix(".csv"), text.encode())
    return funnels


def _write_steps(
    funnels: Mapping[str, Sequence[FunnelRow]], assembly: Assembly, limits: RuntimeLimits
) -> list[StepYield]:
    """Return the yield and cost of all steps, and write them as a table and as JSON."""
    steps = yield_of_steps(funnels.values(), assembly, limits.config, limits.directory)
    if steps:
        folder = limits.directory / MINING_FOLDER
        text = json.dumps({"steps": yields_to_json(steps)}, indent=1) + "\n"
        write_atomically(folder / STEPS_FILE, text.encode())
        write_atomically(folder / _STEPS_TABLE, render_csv([steps_table(steps)]).encode())
    return steps


def _describe(assembly: Assembly, folder: Path) -> str:
    lines = [plural(len(assembly.candidates), "candidate") + f" in {folder / MINING_FOLDER}"]
    lines += [f"  {name} left the run: {each.reason}" for name, each in assembly.dropped.items()]
    lines.append(f"{plural(len(assembly.chosen), 'instance')} in {folder / MINED_BENCHMARK}")
    return "\n".join(lines)


def _to_json(assembly: Assembly, steps: Sequence[StepYield], folder: Path) -> dict[str, Any]:
    return {
        "directory": str(folder),
        "candidates": [each.instance.id for each in assembly.candidates],
        "dropped": {name: each._asdict() for name, each in assembly.dropped.items()},
        "instances": [each.instance.id for each in assembly.chosen],
        "steps": yields_to_json(steps),
        "run": None if assembly.summary is None else summary_to_json(assembly.summary),
    }

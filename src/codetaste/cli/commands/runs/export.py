"""``codetaste export``: write the trials of runs in formats of other tools."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from codetaste.cli.arguments import resolve_benchmark
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.text import plural, printable
from codetaste.errors import ConfigError
from codetaste.exports.atif.write import write_trial
from codetaste.exports.inspect.log import write_log
from codetaste.exports.trial import exported_trials, safe_name
from codetaste.results.read import read_results
from codetaste.results.roots import existing_run_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.exports.trial import ExportedTrial

_HARBOR = "instances become tasks of Harbor by: codetaste benchmark export --harbor DIR --benchmark FOLDER"


@command
def export(
    *runs: Path,
    to: Literal["atif", "inspect", "harbor"],
    out: Annotated[OptionalPath, Parameter(name=("--out", "-o"))] = None,
    benchmark: str = "",
    json_: AsJson = False,
) -> int:
    """Write the trials of both benchmarks, with their conversations, scores, costs and endings.

    Args:
        runs: Run folders or their names, or folders in the published layout of outputs.
        to: atif: one trajectory file a trial, for Harbor and tools that read its format. inspect: one log for
            each run, agent and setting, for ``inspect view``. harbor: see ``codetaste benchmark export``.
        out: The folder for the files; it is created. Files of the same trials are replaced.
        benchmark: The benchmark's folder, or "quickstart", for languages and categories; default the
            benchmark of the runs, if it exists.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if there is no trial.

    Raises:
        ConfigError: a folder does not exist or is not a run, or no run or no folder for the files is given.
        StorageFull: no space left.
        JournalError: a file cannot be written.
    """
    if to == "harbor":
        raise ConfigError(_HARBOR)
    if not runs or out is None:
        raise ConfigError("name a run, and a folder for the files by -o")
    results = read_results(
        existing_run_folders(runs), resolve_benchmark(benchmark, None) if benchmark else None
    )
    files: list[dict[str, Any]] = []
    write = _write_atif if to == "atif" else _write_inspect
    for file in write(exported_trials(results), out):
        files.append(file)
        if not json_:
            print_result(_format(file))
    if json_:
        problems = [f"{each.location}: {each.text}" for each in results.problems]
        print_result(json_document({"format": to, "folder": str(out), "files": files, "problems": problems}))
    for each in results.problems:
        notify(f"codetaste: {each.location}: {each.text}")
    if not files:
        notify(f"codetaste: there is no trial in {printable(', '.join(map(str, runs)))}")
    return 0 if files else 1


def _write_atif(trials: Iterator[ExportedTrial], out: Path) -> Iterator[dict[str, Any]]:
    for trial in trials:
        *folders, name = map(safe_name, trial.name.split("/"))
        written = write_trial(trial, out.joinpath(*folders, f"{name}.json"))
        yield {
            "path": str(written.path),
            "trials": [trial.name],
            "steps": written.steps,
            "embedded": len(written.embedded),
        }


def _write_inspect(trials: Iterator[ExportedTrial], out: Path) -> Iterator[dict[str, Any]]:
    for _, group in itertools.groupby(trials, lambda each: (each.run, each.agent, each.setting)):
        together = [*group]
        written = write_log(together, out)
        yield {
            "path": str(written.path),
            "trials": [trial.name for trial in together],
            "outcomes": written.outcomes,
        }


def _format(file: dict[str, Any]) -> str:
    what = plural(len(file["trials"]), "trial") if "outcomes" in file else plural(file["steps"], "step")
    more = f", {file['embedded']} more conversations in it" if file.get("embedded") else ""
    return f"{printable(file['path'], 1000)}: {what}{more}"

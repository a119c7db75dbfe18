"""``codetaste benchmark export``: write instances in the format of another harness."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.assembly.harbor.export import ExportOptions, ExportState, make_task, write_task
from codetaste.assembly.harbor.task import HARBOR_VERSION
from codetaste.benchmark.layout import Track
from codetaste.cli.arguments import resolve_benchmark
from codetaste.cli.options import AsJson, Flag, OptionalPath, Several
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.files import storage_error
from codetaste.core.paths import cache_dir
from codetaste.core.text import printable
from codetaste.errors import ConfigError, JournalError, RuleError, SourceError

if TYPE_CHECKING:
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance

_MAX_LINE = 2_000


@dataclass(frozen=True, slots=True)
class _Export:
    """What was done with an instance; ``folder`` and what follows are empty where it is left out."""

    instance: str
    state: ExportState
    reasons: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    folder: str = ""
    image: str = ""
    rules: int = 0
    min_passed: int | None = None
    max_failed: int | None = None


@command
async def export(  # noqa: PLR0913 - its options
    *,
    harbor: Path,
    benchmark: str = "quickstart",
    instance: Several = (),
    track: Track = Track.INSTRUCTED,
    image: str = "",
    repository: str = "",
    rules_only: Flag = False,
    replace: Flag = False,
    repos: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Write the tasks, and print what was done with each instance.

    Args:
        harbor: The folder for the tasks of Harbor, one folder each; it is created.
        benchmark: A folder in the published layout, or "quickstart".
        instance: Globs on instance ids; default all.
        track: Whose description is the task.
        image: An image that R is put into; default the runtime image of each instance, which has it. It needs
            git and Python 3.9 with pip.
        repository: The repository of the registry that has the runtime images, as HOST/PATH; default the
            images of this machine.
        rules_only: Score rules alone; otherwise instances without test scripts or baseline are left out.
        replace: Replace folders whose task differs; otherwise such an instance is left out.
        repos: A folder of clones OWNER/REPO; otherwise each instance's own origin is used.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if an instance is left out.

    Raises:
        ConfigError: the benchmark does not exist, a glob matches nothing, or an option is invalid.
        StorageFull: no space left.
        ToolMissing: there is no git.
    """
    if image and repository:
        raise ConfigError("--image and --repository exclude each other: the latter is of the runtime images")
    opened = await to_thread.run_sync(resolve_benchmark, benchmark, repos)
    chosen = opened.select(instance)
    options = ExportOptions(track, image, repository, rules_only)
    await to_thread.run_sync(_make_folder, harbor)
    cache = await to_thread.run_sync(cache_dir, notify)
    done: list[_Export] = []
    with tempfile.TemporaryDirectory(prefix="codetaste-export-") as scratch:
        for each in chosen:
            result = await _export(opened, each, options, harbor, cache, Path(scratch), replace=replace)
            done.append(result)
            if not json_:
                print_result(_format(result))
    if json_:
        print_result(
            json_document(
                {"folder": str(harbor), "harbor": HARBOR_VERSION, "tasks": [asdict(x) for x in done]}
            )
        )
    else:
        print_result(_format_total(harbor, done))
    return 1 if any(each.state is ExportState.LEFT_OUT for each in done) else 0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ConfigError(f"--harbor: {folder} is not a folder") from None
    except OSError as error:
        raise storage_error(error, folder, JournalError) from error


async def _export(
    benchmark: Benchmark,
    instance: Instance,
    options: ExportOptions,
    into: Path,
    cache: Path,
    scratch: Path,
    *,
    replace: bool,
) -> _Export:
    if missing := benchmark.describe_missing_clone(instance):
        return _Export(instance.id, ExportState.LEFT_OUT, [missing])
    try:
        task = await make_task(benchmark, instance, options, cache=cache, scratch=scratch)
    except (ConfigError, RuleError, SourceError) as error:
        return _Export(instance.id, ExportState.LEFT_OUT, str(error).splitlines())
    state, conflicts = await to_thread.run_sync(lambda: write_task(task, into, replace=replace))
    if state is ExportState.LEFT_OUT:
        why = "another task is there; --replace replaces it"
        return _Export(instance.id, state, [why], list(conflicts))
    thresholds = task.tests.thresholds if task.tests else None
    return _Export(
        instance.id,
        state,
        conflicts=list(conflicts),
        folder=str(into / instance.id),
        image=task.image,
        rules=len(task.rules.positive) + len(task.rules.negative),
        min_passed=thresholds.min_passed if thresholds else None,
        max_failed=thresholds.max_failed if thresholds else None,
    )


def _format(each: _Export) -> str:
    if each.state is ExportState.LEFT_OUT:
        lines = [f"{each.instance}: left out: {why}" for why in each.reasons]
        lines += [f"  conflict: {conflict}" for conflict in each.conflicts]
    else:
        passes = f"at least {each.min_passed} tests pass and at most {each.max_failed} fail"
        tests = "no tests" if each.min_passed is None else passes
        verb = "there already" if each.state is ExportState.UNCHANGED else "written"
        lines = [f"{each.instance}: {verb}: {each.rules} rules, {tests}; from {each.image}"]
        lines += [f"  replaced: {conflict}" for conflict in each.conflicts]
    return "\n".join(printable(line, _MAX_LINE) for line in lines)


def _format_total(into: Path, done: list[_Export]) -> str:
    counts = {state: sum(each.state is state for each in done) for state in ExportState}
    total = (
        f"{into}: {counts[ExportState.WRITTEN]} written, {counts[ExportState.UNCHANGED]} there already, "
        f"{counts[ExportState.LEFT_OUT]} left out"
    )
    there = any(each.folder for each in done)
    return f"{total}; prove them with the agents oracle (reward 1) and nop (0)" if there else total

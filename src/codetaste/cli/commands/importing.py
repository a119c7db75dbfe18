"""``codetaste import``: import published outputs as a run; evaluate what has no evaluation on request."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import from_thread, to_thread

from codetaste.benchmark.instances_csv import is_path_name
from codetaste.benchmark.release.staging import staging_folder
from codetaste.cli.arguments import resolve_benchmark
from codetaste.cli.commands.import_scoring import ImportEvaluation, evaluate_unscored
from codetaste.console import print_result
from codetaste.core.files import storage_error
from codetaste.core.text import printable
from codetaste.core.units import format_size
from codetaste.errors import ConfigError, SourceError
from codetaste.evaluation.trials.import_outputs import check_source, import_outputs
from codetaste.source.archive import ArchiveLimits, unpack_archive
from codetaste.source.tree.writer import TreeLimits

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.evaluation.trials.import_outputs import ImportResult

_LIMITS = ArchiveLimits(TreeLimits(members=2_000_000, total_bytes=64 * 1024**3))
_MAX_LISTED = 20
_ZIP_END_BYTES = 66 * 1024
_ZIP_END = b"PK\x05\x06"


@dataclass(frozen=True, slots=True)
class ImportArguments:
    """Arguments of ``codetaste import``."""

    source: Path
    name: str
    out: Path
    benchmark: str
    repos: Path | None
    score: bool
    json: bool


async def import_published_outputs(arguments: ImportArguments) -> int:
    """Create the run and print its contents; returns the exit code.

    Raises:
        ConfigError: the name is invalid or taken, or there is nothing to import.
        SourceError: an archive is damaged; UnsafeArchive: it is hostile.
        StorageFull: no space left.
    """
    run = arguments.out / arguments.name
    benchmark = await to_thread.run_sync(_check_arguments, arguments, run)
    async with staging_folder(run) as staging:
        imported = await to_thread.run_sync(_create_run, arguments, run, staging, benchmark)
    scored = ImportEvaluation()
    if arguments.score and benchmark is not None:
        scored = await evaluate_unscored(run, benchmark)
    to_text = _import_to_json if arguments.json else _format_import
    print_result(to_text(run, imported, scored))
    return 0


def _check_arguments(arguments: ImportArguments, run: Path) -> Benchmark | None:
    """Check the arguments before anything is written; returns the benchmark, if one is named."""
    problems = []
    if not is_path_name(arguments.name):
        problems.append(
            f"--name {printable(arguments.name, 60)!r}: a name has only letters, digits, '-', '_' and '.'"
        )
    elif run.exists():
        problems.append(f"{run} exists already; use another name")
    if not arguments.source.exists():
        problems.append(f"{printable(str(arguments.source))}: no such folder or archive")
    if arguments.repos is not None and not arguments.repos.is_dir():
        problems.append(f"--repos: {arguments.repos} is not a folder")
    if (arguments.score or arguments.repos is not None) and not arguments.benchmark:
        problems.append("--score and --repos need --benchmark, which names the rules and the code")
    if problems:
        raise ConfigError(*problems)
    if not arguments.benchmark:
        return None
    return resolve_benchmark(arguments.benchmark, arguments.repos)


def _create_run(
    arguments: ImportArguments, run: Path, staging: Path, benchmark: Benchmark | None
) -> ImportResult:
    """Build the run in ``staging``, next to its target, and move it there when it is complete."""
    if run.exists():
        raise ConfigError(f"{run} has just been created by another import; use another name")
    if arguments.source.is_dir():
        check_source(arguments.source)
    stage = staging / "importing"
    shutil.rmtree(stage, ignore_errors=True)
    try:
        source = arguments.source
        if not source.is_dir():
            _reject_split_archive(source)
            source = stage / "unpacked"
            unpack_archive(
                arguments.source,
                source,
                label=str(arguments.source),
                limits=_LIMITS,
                check=from_thread.check_cancelled,
            )
        imported = import_outputs(source, stage / "run", benchmark, source_name=str(arguments.source))
        (stage / "run").rename(run)
    except OSError as error:
        raise storage_error(error, str(run), SourceError) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return imported


def _reject_split_archive(archive: Path) -> None:
    """Check that a zip is not a part of a split archive, as the published outputs are."""
    with archive.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _ZIP_END_BYTES))
        end = file.read(_ZIP_END_BYTES)
    at = end.rfind(_ZIP_END)
    split = at >= 0 and end[at + 4 : at + 6] not in {b"\0\0", b"\xff\xff"}
    if split or archive.suffix.lower()[:3] in {".z0", ".z1"}:
        raise ConfigError(
            f"{archive} is a part of a split archive, which cannot be read: join the parts first "
            "(zip -s 0 outputs.zip --out whole.zip)"
        )


def _import_to_json(run: Path, imported: ImportResult, scored: ImportEvaluation) -> str:
    records = imported.records
    data = {
        "directory": str(run),
        "trials": len(records.records),
        "bytes": imported.copied_bytes,
        "statuses": dict(Counter(record.status.value for record in records.records)),
        "scored": scored.done,
        "unscored": [{"location": place, "text": why} for place, why in scored.failed],
        "problems": [
            {"kind": p.kind.value, "location": p.location, "text": p.text} for p in records.problems
        ],
    }
    return json.dumps(data, indent=2)


def _format_import(run: Path, imported: ImportResult, scored: ImportEvaluation) -> str:
    records = imported.records
    statuses = Counter(record.status.value for record in records.records)
    agents = sorted({record.agent for record in records.records})
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common()) or "none"
    size = format_size(imported.copied_bytes)
    lines = [f"{run}: {len(records.records)} trials of {len(agents)} agents, {size} ({counts})"]
    kinds = Counter(problem.kind.value for problem in records.problems)
    if kinds:
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        lines.append(f"{len(records.problems)} problems ({listed}):")
        lines += [f"  {printable(str(problem), 400)}" for problem in records.problems[:_MAX_LISTED]]
        if len(records.problems) > _MAX_LISTED:
            lines.append(f"  and {len(records.problems) - _MAX_LISTED} more, in {run / 'import.json'}")
    if scored.done or scored.failed:
        lines.append(f"{scored.done} scored here, {len(scored.failed)} could not be")
        lines += [f"  {printable(f'{place}: {why}', 400)}" for place, why in scored.failed[:_MAX_LISTED]]
    lines.append(f"codetaste report {run}")
    return "\n".join(lines)

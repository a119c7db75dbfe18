"""``codetaste import``: published outputs taken over as a run; what has no evaluation is scored if wanted."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio import from_thread, to_thread

from codetaste.benchmark.table import is_path_name
from codetaste.benchmark.workshop import workshop
from codetaste.command import say
from codetaste.commands.import_scoring import Scored, score_unscored
from codetaste.commands.named import named_benchmark
from codetaste.errors import ConfigError
from codetaste.evaluation.importing import check_source, import_outputs
from codetaste.report.progress import printable
from codetaste.source.archive import ArchiveLimits, unpack
from codetaste.source.writing import TreeLimits, storage_error
from codetaste.units import format_size

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.evaluation.importing import Imported

_LIMITS = ArchiveLimits(TreeLimits(members=2_000_000, total_bytes=64 * 1024**3))
_SHOWN = 20
_END_BYTES = 66 * 1024
_END = b"PK\x05\x06"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be imported, as it was typed."""

    source: Path
    name: str
    out: Path
    benchmark: str
    repos: Path | None
    score: bool
    json: bool


async def import_published(order: Order) -> int:
    """Make the run of ``order``, and say what is in it; returns the exit code.

    Raises:
        ConfigError: a name is no name or taken, or there is nothing to import.
        SourceError: an archive is damaged; UnsafeArchive: it is hostile.
        StorageFull: no space left.
    """
    run = order.out / order.name
    benchmark = await to_thread.run_sync(_checked, order, run)
    async with workshop(run) as shop:
        imported = await to_thread.run_sync(_bring, order, run, shop, benchmark)
    scored = Scored()
    if order.score and benchmark is not None:
        scored = await score_unscored(run, benchmark)
    say(json.dumps(_told(run, imported, scored), indent=2) if order.json else _text(run, imported, scored))
    return 0


def _checked(order: Order, run: Path) -> Benchmark | None:
    """Check what can be checked before anything is written."""
    problems = []
    if not is_path_name(order.name):
        problems.append(
            f"--name {printable(order.name, 60)!r}: letters, digits, '-', '_' and '.' make a name"
        )
    elif run.exists():
        problems.append(f"{run} is there already; name another run")
    if not order.source.exists():
        problems.append(f"{printable(str(order.source))}: no such folder or archive")
    if order.repos is not None and not order.repos.is_dir():
        problems.append(f"--repos: {order.repos} is not a folder")
    if (order.score or order.repos is not None) and not order.benchmark:
        problems.append("--score and --repos need --benchmark: the rules and the code are found by it")
    if problems:
        raise ConfigError(*problems)
    if not order.benchmark:
        return None
    return named_benchmark(order.benchmark, order.repos)


def _bring(order: Order, run: Path, shop: Path, benchmark: Benchmark | None) -> Imported:
    """Make the run in ``shop``, beside its place, and put it there when it is whole."""
    if run.exists():
        raise ConfigError(f"{run} has just been made by another import; name another run")
    if order.source.is_dir():
        check_source(order.source)
    stage = shop / "importing"
    shutil.rmtree(stage, ignore_errors=True)
    try:
        source = order.source
        if not source.is_dir():
            _refuse_part(source)
            source = stage / "unpacked"
            unpack(
                order.source,
                source,
                label=str(order.source),
                limits=_LIMITS,
                check=from_thread.check_cancelled,
            )
        imported = import_outputs(source, stage / "run", benchmark, named=str(order.source))
        (stage / "run").rename(run)
    except OSError as error:
        raise storage_error(error, str(run)) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return imported


def _refuse_part(archive: Path) -> None:
    """Check that a zip is no part of a split one, as the published outputs are."""
    with archive.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _END_BYTES))
        end = file.read(_END_BYTES)
    at = end.rfind(_END)
    split = at >= 0 and end[at + 4 : at + 6] not in {b"\0\0", b"\xff\xff"}
    if split or archive.suffix.lower()[:3] in {".z0", ".z1"}:
        raise ConfigError(
            f"{archive} is a part of a split archive, which is not read: put it together first "
            "(zip -s 0 outputs.zip --out whole.zip)"
        )


def _told(run: Path, imported: Imported, scored: Scored) -> dict[str, Any]:
    records = imported.records
    return {
        "directory": str(run),
        "trials": len(records.records),
        "bytes": imported.copied,
        "statuses": dict(Counter(record.status.value for record in records.records)),
        "scored": scored.done,
        "unscored": [{"place": place, "text": why} for place, why in scored.failed],
        "problems": [{"kind": p.kind.value, "place": p.place, "text": p.text} for p in records.problems],
    }


def _text(run: Path, imported: Imported, scored: Scored) -> str:
    records = imported.records
    statuses = Counter(record.status.value for record in records.records)
    agents = sorted({record.agent for record in records.records})
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common()) or "none"
    size = format_size(imported.copied)
    lines = [f"{run}: {len(records.records)} trials of {len(agents)} agents, {size} ({counts})"]
    kinds = Counter(problem.kind.value for problem in records.problems)
    if kinds:
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        lines.append(f"{len(records.problems)} problems ({listed}):")
        lines += [f"  {printable(str(problem), 400)}" for problem in records.problems[:_SHOWN]]
        if len(records.problems) > _SHOWN:
            lines.append(f"  and {len(records.problems) - _SHOWN} more, in {run / 'import.json'}")
    if scored.done or scored.failed:
        lines.append(f"{scored.done} scored here, {len(scored.failed)} could not be")
        lines += [f"  {printable(f'{place}: {why}', 400)}" for place, why in scored.failed[:_SHOWN]]
    lines.append(f"codetaste report {run}")
    return "\n".join(lines)

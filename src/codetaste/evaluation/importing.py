"""Published outputs taken over as a run of ours: the layout's files copied, so that a report reads the same.

What the layout does not name is not copied (agents' logs can be gigabytes): what an agent did is counted from
its log once, here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from codetaste import __version__
from codetaste.atomic import write_atomically
from codetaste.errors import ConfigError
from codetaste.evaluation.activity import FILE, write_activity
from codetaste.evaluation.reading import read_places
from codetaste.evaluation.records import ProblemKind, Records
from codetaste.evaluation.stray_files import Faulty, copy_file, is_link, printable
from codetaste.evaluation.traces import published_activity
from codetaste.evaluation.trial_context import RUNS
from codetaste.evaluation.trial_places import PSEUDO
from codetaste.orchestration.journal import NAME
from codetaste.source.writing import storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.evaluation.trial_context import Context
    from codetaste.evaluation.trial_places import Place

MANIFEST = "import.json"
_FILES = (
    *("prediction.diff", "agent_config.json", "inference_metadata.json", "plan_metadata.json"),
    *("multiplan_generation_metadata.json", "multiplan_metadata.json", "refactoring_plan.md", "judge.out"),
)
_EVALUATION = (
    *("evaluation_result.json", "scores.json", "rules_positive.sarif", "rules_negative.sarif"),
    *("test_output.txt", "rule_output.txt", "instance_metadata.json", "rules_positive.yml"),
    *("rules_negative.yml", FILE),
)
_PLANS = tuple(f"refactoring_plan{number}.md" for number in range(5))
_BASELINES = ("golden_agent.jsonl", "null_agent.jsonl")
_MOST_BYTES = 1024**3
_NO_NAME = re.compile(r"[^A-Za-z0-9._+@-]")


@dataclass(frozen=True, slots=True)
class Imported:
    """What was taken over, as it was read at its old place; ``copied`` in bytes."""

    records: Records
    copied: int


def check_source(source: Path) -> None:
    """Check that ``source`` is no run of ours, which needs no import.

    Raises:
        ConfigError: it is one.
    """
    if (source / NAME).is_file():
        raise ConfigError(
            f"{source} is a run of codetaste: report it as it is; its outputs/ alone can be imported"
        )


def import_outputs(source: Path, to: Path, benchmark: Benchmark | None, *, named: str) -> Imported:
    """Copy the trials below ``source`` to the new folder ``to``, a run of ours. Blocks.

    Args:
        source: published outputs: as ``read_outputs`` takes them.
        to: the run's folder, which must not be there.
        benchmark: trials of instances that it does not have are left out.
        named: what people call the source.

    Raises:
        ConfigError: there is no such folder, or nothing in it has the published layout.
        StorageFull: no space left; SourceError: something cannot be written.
    """
    check_source(source)
    trials, context = read_places(source, benchmark)
    copied, taken = 0, []
    names: dict[tuple[str, ...], dict[str, str]] = {}
    try:
        for place, record in trials:
            track = PSEUDO if place.pseudo or not record.track else record.track
            if track == PSEUDO and not record.pseudo:
                continue  # nobody knows where it belongs: it has been reported
            parent = (track, record.mode, place.owner, place.repo, place.hash8)
            name = _folder_name(place.agent, names.setdefault(parent, {}))
            folder = to.joinpath("outputs", *parent, name)
            folder = folder if place.attempt == 1 else folder / f"attempt-{place.attempt}"
            copied += sum(_copied(place, folder, context))
            _count_deeds(place, folder, context)
            taken.append(record)
        copied += _copy_baselines(context, {place.path for place, _ in trials}, to)
    except OSError as error:
        raise storage_error(error, str(to)) from error
    records = Records(tuple(taken), tuple(context.problems))
    write_atomically(to / MANIFEST, json.dumps(_manifest(records, named), indent=2) + "\n")
    return Imported(records, copied)


def _folder_name(agent: str, names: dict[str, str]) -> str:
    """Return a folder's name for ``agent``: plain, and no other agent's. ``names`` has those so far."""
    if agent not in names:
        plain = _NO_NAME.sub("_", agent)[:100].lstrip(".-") or "agent"
        name, number = plain, 1
        while name in names.values():
            number += 1
            name = f"{plain}-{number}"
        names[agent] = name
    return names[agent]


def _copied(place: Place, folder: Path, context: Context) -> Iterator[int]:
    """Copy the files of one trial, and give the bytes of each; the folder is there in any case."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [
        *_FILES,
        *(f"refactoring_plans/{name}" for name in _PLANS),
        *(f"evaluation/{name}" for name in _EVALUATION),
    ]
    for name in wanted:
        source = place.folder / name
        if is_link(source.parent):
            continue
        try:
            yield copy_file(source, folder / name, context.root, _MOST_BYTES)
        except FileNotFoundError:
            continue
        except Faulty as fault:
            context.report(f"{place.label}/{name}", Faulty(fault.kind, f"{fault}; not copied"))


def _count_deeds(place: Place, folder: Path, context: Context) -> None:
    """Count what the agent did by its log, unless somebody has."""
    if (folder / "evaluation" / FILE).exists():
        return
    try:
        activity = published_activity(place.folder)
    except (OSError, ValueError) as error:
        said = f"its log cannot be read: {printable(str(error))}"
        context.report(place.label, Faulty(ProblemKind.UNREADABLE, said))
        return
    write_activity(folder / "evaluation", activity)


def _copy_baselines(context: Context, paths: set[str], to: Path) -> int:
    """Copy the baselines that lie beside the outputs, where a report looks for them."""
    if context.outputs is None:
        return 0
    home = context.outputs.parent / RUNS
    copied = 0
    for path in sorted(paths):
        for name in _BASELINES:
            try:
                copied += copy_file(
                    home / path / name, to / RUNS / path / name, str(home.resolve()), _MOST_BYTES
                )
            except FileNotFoundError:
                continue
            except Faulty as fault:
                context.report(f"{RUNS}/{path}/{name}", fault)
    return copied


def _manifest(records: Records, named: str) -> dict[str, object]:
    return {
        "source": printable(named, 1000),
        "imported": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "codetaste": __version__,
        "trials": len(records.records),
        "problems": [{"kind": p.kind.value, "place": p.place, "text": p.text} for p in records.problems],
    }

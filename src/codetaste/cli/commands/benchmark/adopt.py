"""``codetaste benchmark adopt``: put the products of a run into a benchmark folder."""

from __future__ import annotations

import json
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.assembly.adopt import AdoptedRun, Adoption, AdoptionState, adopt_products
from codetaste.assembly.prepare import add_golden_patches, stage_benchmark
from codetaste.assembly.products import Part, collect_products, find_product_folders, find_unlisted
from codetaste.benchmark.benchmark import open_benchmark
from codetaste.benchmark.layout import INSTANCES_FILE, RUN_CONFIG_FILE
from codetaste.cli.adopted_reviews import copy_reviews, find_rejected, without_reviewed
from codetaste.cli.arguments import open_scan, resolve_benchmark
from codetaste.cli.options import AsJson, Flag, OptionalPath, Several
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.files import read_regular_file
from codetaste.core.paths import cache_dir
from codetaste.core.text import plural, printable
from codetaste.errors import ConfigError
from codetaste.evaluation.validation import ValidationContext, validate_instances
from codetaste.report.status.status import find_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.assembly.products import InstanceProducts, ProductFolder
    from codetaste.benchmark.benchmark import Benchmark

_MAX_LINE = 2_000


@command
async def adopt(
    run: Path,
    /,
    *,
    into: Path = Path("benchmark"),
    instance: Several = (),
    rules_of: str = "",
    only_sound: Flag = False,
    replace: Flag = False,
    repos: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Adopt what a run has made, and print what was done with each instance.

    Args:
        run: The run's folder (runs/NAME), or its name.
        into: The folder of the benchmark; it is created, or extended.
        instance: Globs on instance ids; default all of which the run has made something.
        rules_of: The id of the model whose rules are taken, where several have discovered rules.
        only_sound: Leave out instances on which the golden patch does not follow every rule, or an empty
            patch follows one, as benchmark check tells.
        replace: Take the run's version of files that differ; otherwise such an instance is left out.
        repos: A folder of clones OWNER/REPO; default that of the run.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if an instance is left out because of a conflict, or the run has none to adopt.

    Raises:
        ConfigError: the run does not exist or has made nothing, a glob matches nothing, or a table is broken.
        StorageFull: no space left.
        ToolMissing: there is no git or, to check instances, no rule engine.
    """
    folder = find_run(run)
    source = await to_thread.run_sync(_benchmark_of_run, folder, repos)
    repos = repos or (source.repos if source else None)
    folders, products = await to_thread.run_sync(_collect, folder, source, into, rules_of)
    chosen = await to_thread.run_sync(without_reviewed, into, _select(products, instance, folder))
    rejected = await to_thread.run_sync(find_rejected, into, folders, chosen)
    with tempfile.TemporaryDirectory(prefix="codetaste-adopt-") as name:
        scratch = Path(name)
        cache = await to_thread.run_sync(cache_dir, notify)
        chosen = await add_golden_patches(into, chosen, repos=repos, cache=cache, scratch=scratch)
        ignore_file = _ignore_file(folders, chosen)
        if only_sound:
            left = [each for each in chosen if each.instance.id not in rejected]
            rejected |= await _check(into, left, scratch, ignore_file, repos)
        result = await adopt_products(
            into, chosen, ignore_file=ignore_file, rejected=rejected, replace=replace
        )
    there = {each.instance for each in result.adoptions if each.state is not AdoptionState.LEFT_OUT}
    await copy_reviews(into, [each for each in folders if each.is_product], there)
    unlisted = await to_thread.run_sync(find_unlisted, folders, products)
    data = _to_json(into, result, unlisted)
    print_result(json_document(data) if json_ else _format(folder, into, result, unlisted))
    nothing = all(each.state is AdoptionState.LEFT_OUT for each in result.adoptions)
    return 1 if result.has_conflicts or nothing else 0


def _benchmark_of_run(run: Path, repos: Path | None) -> Benchmark | None:
    """Return the benchmark that the run read, with its clones; None where there is none any more."""
    if repos is not None and not repos.is_dir():
        raise ConfigError(f"--repos: {repos} is not a folder")
    try:
        section = json.loads(read_regular_file(run / RUN_CONFIG_FILE))["benchmark"]
        clones = section.get("repos")
        return resolve_benchmark(str(section["path"]), repos or (Path(clones) if clones else None))
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError, ConfigError):
        return None


def _collect(
    run: Path, source: Benchmark | None, into: Path, rules_of: str
) -> tuple[tuple[ProductFolder, ...], tuple[InstanceProducts, ...]]:
    if into.exists() and not into.is_dir():
        raise ConfigError(f"--into: {into} is not a folder")
    rows = open_benchmark(into).instances if (into / INSTANCES_FILE).exists() else ()
    folders = find_product_folders(run, source)
    return folders, collect_products(folders, rows, rules_of)


def _select(products: Sequence[InstanceProducts], globs: Sequence[str], run: Path) -> list[InstanceProducts]:
    problems = [
        f"{run} has no instance that matches {glob!r}"
        for glob in globs
        if not any(fnmatchcase(each.instance.id, glob.lower()) for each in products)
    ]
    if problems:
        raise ConfigError(*problems)
    lowered = [glob.lower() for glob in globs] or ["*"]
    return [each for each in products if any(fnmatchcase(each.instance.id, glob) for glob in lowered)]


def _ignore_file(folders: Sequence[ProductFolder], products: Sequence[InstanceProducts]) -> Path | None:
    """Return the ignore file of the folder that rules are from: what they match depends on it."""
    sources = {each.parts[Part.RULES].source for each in products if Part.RULES in each.parts}
    found = [each.ignore_file for each in folders if each.name in sources and each.ignore_file]
    return found[0] if found else None


async def _check(
    into: Path,
    products: Sequence[InstanceProducts],
    scratch: Path,
    ignore_file: Path | None,
    repos: Path | None,
) -> dict[str, tuple[str, ...]]:
    """Return why instances are not sound, by their ids."""
    if not products:
        return {}
    staged = await to_thread.run_sync(
        lambda: stage_benchmark(into, products, scratch / "staged", ignore_file=ignore_file, repos=repos)
    )
    scan = await open_scan(staged)
    bench = ValidationContext(staged, scan.scanner, scan.cache, scratch, scan.engine.label)
    checked = await validate_instances(bench, staged.instances, lambda _: None)
    found = {each.instance: (each.skip_reason,) if each.skip_reason else each.problems for each in checked}
    place = f"{staged.root}/"
    return {
        name: tuple(f"not sound: {why.replace(place, '')}" for why in reasons)
        for name, reasons in found.items()
        if reasons
    }


def _to_json(into: Path, result: AdoptedRun, unlisted: Sequence[str]) -> dict[str, Any]:
    return {
        "folder": str(into),
        "instances": result.instances,
        "adoptions": [
            {
                "instance": each.instance,
                "state": each.state.value,
                "reasons": list(each.reasons),
                "parts": dict(each.parts),
                "written": list(each.written),
                "removed": list(each.removed),
                "conflicts": list(each.conflicts),
                "notes": list(each.notes),
            }
            for each in result.adoptions
        ],
        "ignore_conflict": result.ignore_conflict or None,
        "unlisted": list(unlisted),
    }


def _format(run: Path, into: Path, result: AdoptedRun, unlisted: Sequence[str]) -> str:
    lines = [line for each in result.adoptions for line in _format_adoption(each)]
    if result.ignore_conflict:
        lines.append(f"conflict: {result.ignore_conflict}")
    lines += [f"{path}: left out: no table has a row for its environment" for path in unlisted]
    counts = {state: sum(each.state is state for each in result.adoptions) for state in AdoptionState}
    lines.append(
        f"{run}: {counts[AdoptionState.ADOPTED]} adopted, {counts[AdoptionState.UNCHANGED]} there already, "
        f"{counts[AdoptionState.LEFT_OUT] + len(unlisted)} left out; "
        f"{into} has {plural(result.instances, 'instance')}"
    )
    return "\n".join(printable(line, _MAX_LINE) for line in lines)


def _format_adoption(each: Adoption) -> list[str]:
    if each.state is AdoptionState.LEFT_OUT:
        lines = [f"{each.instance}: left out: {why}" for why in each.reasons]
        lines += [f"  conflict: {conflict}" for conflict in each.conflicts]
    elif each.state is AdoptionState.UNCHANGED:
        lines = [f"{each.instance}: there already"]
    else:
        parts = ", ".join(f"{part} from {source}" for part, source in each.parts.items())
        lines = [f"{each.instance}: adopted, {plural(len(each.written), 'file')}: {parts}"]
        lines += [f"  replaced: {conflict}" for conflict in each.conflicts]
    return [*lines, *(f"  note: {note}" for note in each.notes)]

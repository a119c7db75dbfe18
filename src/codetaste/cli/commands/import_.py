"""``codetaste import``: import published outputs as a run; evaluate what has no evaluation on request."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import from_thread, to_thread

from codetaste.benchmark.instances_csv import is_path_name
from codetaste.benchmark.layout import AGENT_CONFIG_FILE, EVALUATION_FOLDER, METADATA_FILE, PREDICTION_FILE
from codetaste.benchmark.release.staging import staging_folder
from codetaste.cli.arguments import open_scan, read_metadata, resolve_benchmark
from codetaste.cli.options import AsJson, Flag, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.files import open_regular_file, storage_error
from codetaste.core.text import printable
from codetaste.core.units import format_size
from codetaste.errors import ConfigError, EngineError, PatchTooLarge, RuleError, SourceError
from codetaste.evaluation.evaluate import evaluate, too_large_evaluation
from codetaste.evaluation.output.result_files import read_recorded_tests, write_evaluation
from codetaste.evaluation.rule_set import read_rule_set
from codetaste.evaluation.test_runs.recorded import compare_with_baseline, read_baseline
from codetaste.evaluation.trials.import_outputs import check_source, import_outputs
from codetaste.evaluation.trials.read import read_outputs
from codetaste.evaluation.trials.records import TrialStatus
from codetaste.source.archive import ArchiveLimits, unpack_archive
from codetaste.source.checkout import checkout_trees
from codetaste.source.patch.parse import read_patch
from codetaste.source.tree.writer import TreeLimits

if TYPE_CHECKING:
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.trials.import_outputs import ImportResult
    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.flows.context import ScanContext

_LIMITS = ArchiveLimits(TreeLimits(members=2_000_000, total_bytes=64 * 1024**3))
_MAX_LISTED = 20
_ZIP_END_BYTES = 66 * 1024
_ZIP_END = b"PK\x05\x06"


@dataclass(slots=True)
class _Scores:
    """The number of evaluated trials, and the folder and reason of each that could not be evaluated."""

    done: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)


@command
async def import_(
    outputs: Path,
    /,
    *,
    name: str,
    out: Path = Path("runs"),
    benchmark: str = "",
    repos: OptionalPath = None,
    score: Flag = False,
    json_: AsJson = False,
) -> int:
    """Create the run and print its contents.

    Args:
        outputs: An outputs folder in the published layout, or an archive of it (zip or tar, in one piece).
        name: Name of the run; it becomes runs/NAME.
        out: Folder of all runs.
        benchmark: The benchmark, a folder in the published layout; instances not in it are left out.
        repos: A folder of clones OWNER/REPO, for --score.
        score: Evaluate the predictions that have no evaluation.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the name is invalid or taken, or there is nothing to import.
        SourceError: an archive is damaged; UnsafeArchive: it is hostile.
        StorageFull: no space left.
    """
    run = out / name

    def check_arguments() -> Benchmark | None:
        """Check the arguments before anything is written; returns the benchmark, if one is named."""
        problems = []
        if not is_path_name(name):
            problems.append(
                f"--name {printable(name, 60)!r}: a name has only letters, digits, '-', '_' and '.'"
            )
        elif run.exists():
            problems.append(f"{run} exists already; use another name")
        if not outputs.exists():
            problems.append(f"{printable(str(outputs))}: no such folder or archive")
        if repos is not None and not repos.is_dir():
            problems.append(f"--repos: {repos} is not a folder")
        if (score or repos is not None) and not benchmark:
            problems.append("--score and --repos need --benchmark, which names the rules and the code")
        if problems:
            raise ConfigError(*problems)
        return resolve_benchmark(benchmark, repos) if benchmark else None

    opened = await to_thread.run_sync(check_arguments)
    async with staging_folder(run) as staging:
        imported = await to_thread.run_sync(_create_run, outputs, run, staging, opened)
    scores = await _evaluate_unscored(run, opened) if score and opened is not None else _Scores()
    to_text = _import_to_json if json_ else _format_import
    print_result(to_text(run, imported, scores))
    return 0


def _create_run(outputs: Path, run: Path, staging: Path, benchmark: Benchmark | None) -> ImportResult:
    """Build the run in ``staging``, next to its target, and move it there when it is complete."""
    if run.exists():
        raise ConfigError(f"{run} has just been created by another import; use another name")
    if outputs.is_dir():
        check_source(outputs)
    stage = staging / "importing"
    shutil.rmtree(stage, ignore_errors=True)
    try:
        source = outputs
        if not source.is_dir():
            _reject_split_archive(source)
            source = stage / "unpacked"
            unpack_archive(
                outputs,
                source,
                label=str(outputs),
                limits=_LIMITS,
                check=from_thread.check_cancelled,
            )
        imported = import_outputs(source, stage / "run", benchmark, source_name=str(outputs))
        (stage / "run").rename(run)
    except OSError as error:
        raise storage_error(error, str(run), SourceError) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return imported


def _reject_split_archive(archive: Path) -> None:
    """Check that a zip is not a part of a split archive, as the published outputs are."""
    with open_regular_file(archive) as file:
        file.seek(max(0, file.seek(0, 2) - _ZIP_END_BYTES))
        end = file.read(_ZIP_END_BYTES)
    at = end.rfind(_ZIP_END)
    split = at >= 0 and end[at + 4 : at + 6] not in {b"\0\0", b"\xff\xff"}
    if split or archive.suffix.lower()[:3] in {".z0", ".z1"}:
        raise ConfigError(
            f"{archive} is a part of a split archive, which cannot be read: join the parts first "
            "(zip -s 0 outputs.zip --out whole.zip)"
        )


async def _evaluate_unscored(run: Path, benchmark: Benchmark) -> _Scores:
    """Evaluate each prediction of ``run`` that has no evaluation; a failure does not stop the others."""
    read = await to_thread.run_sync(read_outputs, run, benchmark)
    unscored = [record for record in read.records if record.scores.status is TrialStatus.NOT_SCORED]
    result = _Scores()
    if not unscored:
        return result
    scan = await open_scan(benchmark)
    for number, record in enumerate(unscored, 1):
        notify(f"scoring {number} of {len(unscored)}: {record.instance} by {record.agent}")
        try:
            evaluation = await _evaluate_record(record, benchmark, scan)
            await to_thread.run_sync(_write_evaluation, record, benchmark, evaluation)
            result.done += 1
        except (ConfigError, SourceError, RuleError, EngineError) as error:
            result.failed.append((str(record.folder), str(error).splitlines()[0]))
    return result


async def _evaluate_record(record: TrialRecord, benchmark: Benchmark, scan: ScanContext) -> Evaluation:
    instance = benchmark.get(record.instance)
    rules = await to_thread.run_sync(read_rule_set, benchmark, instance)
    baseline = await to_thread.run_sync(read_baseline, benchmark, instance)
    path, folder = record.folder / PREDICTION_FILE, record.folder / EVALUATION_FOLDER
    try:
        patch = await to_thread.run_sync(read_patch, path)
    except PatchTooLarge as error:
        size = await to_thread.run_sync(lambda: path.stat().st_size)
        return too_large_evaluation(
            rules, size, str(error), compare_with_baseline(read_recorded_tests(folder), baseline)
        )
    tests = await to_thread.run_sync(lambda: read_recorded_tests(folder, sha256(patch).hexdigest()))
    trees = await checkout_trees(benchmark.origin(instance), scan.cache)
    with tempfile.TemporaryDirectory(prefix="codetaste-import-") as scratch:
        return await evaluate(
            rules,
            trees.base,
            patch,
            scan.scanner,
            scratch=Path(scratch),
            pass_result=compare_with_baseline(tests, baseline),
            engine=scan.engine.label,
        )


def _write_evaluation(record: TrialRecord, benchmark: Benchmark, evaluation: Evaluation) -> None:
    instance = benchmark.get(record.instance)
    write_evaluation(
        record.folder / EVALUATION_FOLDER,
        evaluation,
        instance=instance,
        agent_config=read_metadata(record.folder / AGENT_CONFIG_FILE) or {},
        inference_metadata=read_metadata(record.folder / METADATA_FILE) or None,
        instance_metadata=benchmark.metadata(instance),
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def _import_to_json(run: Path, imported: ImportResult, scores: _Scores) -> str:
    records = imported.records
    data = {
        "directory": str(run),
        "trials": len(records.records),
        "bytes": imported.copied_bytes,
        "statuses": dict(Counter(record.scores.status.value for record in records.records)),
        "scored": scores.done,
        "failed": [{"folder": folder, "error": error} for folder, error in scores.failed],
        "problems": [
            {"kind": p.kind.value, "location": p.location, "text": p.text} for p in records.problems
        ],
    }
    return json_document(data)


def _format_import(run: Path, imported: ImportResult, scores: _Scores) -> str:
    records = imported.records
    statuses = Counter(record.scores.status.value for record in records.records)
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
    if scores.done or scores.failed:
        lines.append(f"{scores.done} scored here, {len(scores.failed)} could not be")
        lines += [f"  {printable(f'{place}: {why}', 400)}" for place, why in scores.failed[:_MAX_LISTED]]
    lines.append(f"codetaste report {run}")
    return "\n".join(lines)

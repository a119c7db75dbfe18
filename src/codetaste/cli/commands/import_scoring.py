"""Evaluate the predictions of an imported run that have no evaluation, one trial after the other."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import AGENT_CONFIG_FILE, EVALUATION_FOLDER, METADATA_FILE, PREDICTION_FILE
from codetaste.console import notify
from codetaste.core.paths import cache_dir
from codetaste.errors import ConfigError, EngineError, PatchTooLarge, RuleError, SourceError
from codetaste.evaluation.baseline import compare_with_baseline, read_baseline
from codetaste.evaluation.evaluate import evaluate, too_large_evaluation
from codetaste.evaluation.output.result_files import read_recorded_tests, write_evaluation
from codetaste.evaluation.rule_set import read_rule_set
from codetaste.evaluation.trials.read import read_outputs
from codetaste.evaluation.trials.records import TrialStatus
from codetaste.rules.config import RulesConfig
from codetaste.run.services import open_scanner
from codetaste.source.checkout import checkout_trees
from codetaste.source.patch.parse import read_patch

if TYPE_CHECKING:
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.rules.scan.model import Scanner

_MAX_METADATA_BYTES = 16 * 1024**2


@dataclass(slots=True)
class ImportEvaluation:
    """The number of evaluated trials, and the folder and reason of each that could not be evaluated."""

    done: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Context:
    """Inputs shared by the evaluation of all trials."""

    benchmark: Benchmark
    scanner: Scanner
    engine: str
    cache: Path


async def evaluate_unscored(run: Path, benchmark: Benchmark) -> ImportEvaluation:
    """Evaluate each prediction of ``run`` that has no evaluation; a failure does not stop the others.

    Raises:
        ToolMissing: there is no rule engine, or no git.
        JournalError: results cannot be written.
    """
    read = await to_thread.run_sync(read_outputs, run, benchmark)
    unscored = [record for record in read.records if record.status is TrialStatus.NOT_SCORED]
    result = ImportEvaluation()
    if not unscored:
        return result
    cache = await to_thread.run_sync(cache_dir, notify)
    scanner, engine = await open_scanner(RulesConfig(), benchmark.ignore_text(), notify, cache=cache)
    if engine.warning:
        notify(engine.warning)
    context = _Context(benchmark, scanner, engine.label, cache)
    for number, record in enumerate(unscored, 1):
        notify(f"scoring {number} of {len(unscored)}: {record.instance} by {record.agent}")
        try:
            await _evaluate_and_write(record, context)
            result.done += 1
        except (ConfigError, SourceError, RuleError, EngineError) as error:
            result.failed.append((str(record.folder), str(error).splitlines()[0]))
    return result


async def _evaluate_and_write(record: TrialRecord, context: _Context) -> None:
    instance = context.benchmark.get(record.instance)
    folder = record.folder / EVALUATION_FOLDER
    evaluation = await _evaluate_record(record, instance, folder, context)

    def write() -> None:
        write_evaluation(
            folder,
            evaluation,
            instance=instance,
            agent_config=_read_metadata(record.folder / AGENT_CONFIG_FILE),
            inference_metadata=_read_metadata(record.folder / METADATA_FILE) or None,
            instance_metadata=context.benchmark.metadata(instance),
            timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )

    await to_thread.run_sync(write)


async def _evaluate_record(
    record: TrialRecord, instance: Instance, folder: Path, context: _Context
) -> Evaluation:
    rules = await to_thread.run_sync(read_rule_set, context.benchmark, instance)
    baseline = await to_thread.run_sync(read_baseline, context.benchmark, instance)
    path = record.folder / PREDICTION_FILE
    try:
        patch = await to_thread.run_sync(read_patch, path)
    except PatchTooLarge as error:
        size = await to_thread.run_sync(lambda: path.stat().st_size)
        return too_large_evaluation(
            rules, size, str(error), compare_with_baseline(read_recorded_tests(folder), baseline)
        )
    tests = await to_thread.run_sync(lambda: read_recorded_tests(folder, sha256(patch).hexdigest()))
    trees = await checkout_trees(context.benchmark.origin(instance), context.cache)
    with tempfile.TemporaryDirectory(prefix="codetaste-import-") as folder_name:
        return await evaluate(
            rules,
            trees.base,
            patch,
            context.scanner,
            scratch=Path(folder_name),
            pass_result=compare_with_baseline(tests, baseline),
            engine=context.engine,
        )


def _read_metadata(path: Path) -> dict[str, Any]:
    """Return JSON data next to a prediction, {} if it is unreadable: it is only copied to the results."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_MAX_METADATA_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}

"""Scoring what an imported run has predictions and no evaluation of, one trial after the other."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.assembly import cache_dir, open_scanner
from codetaste.command import tell
from codetaste.errors import ConfigError, EngineError, PatchTooLarge, RuleError, SourceError
from codetaste.evaluation.baseline import correctness, read_baseline
from codetaste.evaluation.evaluate import evaluate, too_large
from codetaste.evaluation.reading import read_outputs
from codetaste.evaluation.records import TrialStatus
from codetaste.evaluation.result_files import recorded_tests, write_evaluation
from codetaste.evaluation.rule_files import read_rule_files
from codetaste.rules.config import RulesConfig
from codetaste.source.patch import read_patch
from codetaste.source.trees import materialise

if TYPE_CHECKING:
    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.records import TrialRecord
    from codetaste.rules.scan import Scanner

_JSON_BYTES = 16 * 1024**2


@dataclass(slots=True)
class Scored:
    """How many trials were scored, and which could not be, with a line why."""

    done: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Bench:
    """What all trials are scored with."""

    benchmark: Benchmark
    scanner: Scanner
    engine: str
    cache: Path


async def score_unscored(run: Path, benchmark: Benchmark) -> Scored:
    """Score each prediction of ``run`` that has no evaluation; what is wrong with one costs no other.

    Raises:
        ToolMissing: there is no rule engine, or no git.
        JournalError: results cannot be written.
    """
    read = await to_thread.run_sync(read_outputs, run, benchmark)
    wanted = [record for record in read.records if record.status is TrialStatus.NOT_SCORED]
    scored = Scored()
    if not wanted:
        return scored
    cache = await to_thread.run_sync(cache_dir, tell)
    scanner, engine = await open_scanner(RulesConfig(), benchmark.ignore_text(), tell, cache=cache)
    if engine.warning:
        tell(engine.warning)
    bench = _Bench(benchmark, scanner, engine.label, cache)
    for number, record in enumerate(wanted, 1):
        tell(f"scoring {number} of {len(wanted)}: {record.instance} by {record.agent}")
        try:
            await _score(record, bench)
            scored.done += 1
        except (ConfigError, SourceError, RuleError, EngineError) as error:
            scored.failed.append((str(record.folder), str(error).splitlines()[0]))
    return scored


async def _score(record: TrialRecord, bench: _Bench) -> None:
    instance = bench.benchmark.get(record.instance)
    folder = record.folder / "evaluation"
    evaluation = await _evaluated(record, instance, folder, bench)

    def write() -> None:
        write_evaluation(
            folder,
            evaluation,
            instance=instance,
            agent_config=_read(record.folder / "agent_config.json"),
            inference_metadata=_read(record.folder / "inference_metadata.json") or None,
            instance_metadata=bench.benchmark.metadata(instance),
            timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )

    await to_thread.run_sync(write)


async def _evaluated(record: TrialRecord, instance: Instance, folder: Path, bench: _Bench) -> Evaluation:
    rules = await to_thread.run_sync(read_rule_files, bench.benchmark, instance)
    baseline = await to_thread.run_sync(read_baseline, bench.benchmark, instance)
    path = record.folder / "prediction.diff"
    try:
        patch = await to_thread.run_sync(read_patch, path)
    except PatchTooLarge as error:
        size = await to_thread.run_sync(lambda: path.stat().st_size)
        return too_large(rules, size, str(error), correctness(recorded_tests(folder), baseline))
    tests = await to_thread.run_sync(lambda: recorded_tests(folder, sha256(patch).hexdigest()))
    trees = await materialise(bench.benchmark.origin(instance), bench.cache)
    with tempfile.TemporaryDirectory(prefix="codetaste-import-") as place:
        return await evaluate(
            rules,
            trees.base,
            patch,
            bench.scanner,
            scratch=Path(place),
            correctness=correctness(tests, baseline),
            engine=bench.engine,
        )


def _read(path: Path) -> dict[str, Any]:
    """Return what an agent left beside its prediction, as far as it can be read: it is copied, not used."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_JSON_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}

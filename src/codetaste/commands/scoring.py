"""``codetaste evaluate``: one patch scored, told in a few lines, and written in the published layout."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.assembly import cache_dir, open_scanner
from codetaste.command import say, tell
from codetaste.commands.named import named_benchmark, named_instance
from codetaste.errors import ConfigError, PatchTooLarge, RuleError, SourceError
from codetaste.evaluation.baseline import correctness, pseudo_tests, read_baseline, read_tests
from codetaste.evaluation.evaluate import evaluate, too_large
from codetaste.evaluation.pseudo import NULL_PATCH, golden_patch, pseudo_config
from codetaste.evaluation.records import GOLDEN, NULL
from codetaste.evaluation.result_files import recorded_tests, write_evaluation
from codetaste.evaluation.result_place import check_place, results_folder
from codetaste.evaluation.rule_files import read_rule_files
from codetaste.evaluation.scores_file import scores_json
from codetaste.report.evaluation_text import render_evaluation
from codetaste.rules.config import RulesConfig
from codetaste.source.patch import read_patch
from codetaste.source.trees import materialise

if TYPE_CHECKING:
    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.baseline import Correctness
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.exclusions import Exclusions
    from codetaste.evaluation.rule_files import RuleFiles
    from codetaste.evaluation.score import TestCounts

_WORDS = {"golden": GOLDEN, "null": NULL}
"""Patches that go by a word; a file of that name is ``./golden``."""
_CONFIG, _METADATA = "agent_config.json", "inference_metadata.json"
_MOST_BYTES = 16 * 1024**2


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be scored, as it was typed. ``patch`` is a file, "golden" or "null"."""

    benchmark: str
    repos: Path | None
    instance: str
    patch: str
    tests: Path | None
    out: Path | None
    exclusions: Exclusions
    json: bool

    @property
    def pseudo(self) -> str:
        """The id of the pseudo agent whose patch is meant, "" for a file."""
        return _WORDS.get(self.patch, "")


@dataclass(frozen=True, slots=True)
class _Task:
    """What was ordered, found and read.

    Attributes:
        order: as it was typed.
        benchmark: where the instance is from.
        instance: which one.
        rules: its rules.
        correctness: PASS.
        patch: None for one that is too large, and for the golden one: the trees may be needed for it.
        oversize: why a patch is not read.
        folder: where results go.
    """

    order: Order
    benchmark: Benchmark
    instance: Instance
    rules: RuleFiles
    correctness: Correctness
    patch: bytes | None
    oversize: str
    folder: Path | None


async def score_patch(order: Order) -> int:
    """Score the patch of ``order``, write the results and say them; returns the exit code.

    Raises:
        ConfigError: something that was named is not there or wrong.
        SourceError: the trees cannot be had.
        EngineError: the rule engine could not be run at all.
        ToolMissing: there is no rule engine, or no git.
        JournalError: results cannot be written.
    """
    task = await to_thread.run_sync(_find, order)
    evaluation = await _score(task)
    if task.folder is not None:
        await to_thread.run_sync(_write, task, task.folder, evaluation)
    say(_document(task, evaluation) if order.json else _text(task, evaluation))
    return 1 if evaluation.counts is None else 0


def _find(order: Order) -> _Task:
    """Find and read all that is there, so that what is wrong is said at once."""
    benchmark, instance = _named(order)
    patch, oversize = _given(order)
    try:
        rules = read_rule_files(benchmark, instance)
    except RuleError as error:
        raise ConfigError(*str(error).splitlines()) from None
    tests = _tests(order, benchmark, instance, patch)
    folder = order.out if order.pseudo or order.out is not None else results_folder(Path(order.patch))
    known = correctness(tests, read_baseline(benchmark, instance))
    return _Task(order, benchmark, instance, rules, known, patch, oversize, folder)


def _named(order: Order) -> tuple[Benchmark, Instance]:
    benchmark = named_benchmark(order.benchmark, order.repos)
    instance = named_instance(benchmark, order.instance)
    if lacking := benchmark.lacks_clone(instance):
        raise ConfigError(f"--repos: {lacking}")
    return benchmark, instance


def _given(order: Order) -> tuple[bytes | None, str]:
    """Return the patch as far as it is there, and why one that is too large is not read."""
    if order.pseudo:
        return (NULL_PATCH if order.pseudo == NULL else None), ""
    path = Path(order.patch)
    if not path.is_file():
        raise ConfigError(f"--patch: {path} is not a file (nor one of the words golden, null)")
    try:
        return read_patch(path), ""
    except PatchTooLarge as error:
        return None, str(error)
    except SourceError as error:
        raise ConfigError(f"--patch: {error}") from None


def _tests(order: Order, benchmark: Benchmark, instance: Instance, patch: bytes | None) -> TestCounts | None:
    if order.tests is not None:
        return read_tests(order.tests)
    if order.pseudo:
        return pseudo_tests(benchmark, instance, order.pseudo)
    return recorded_tests(results_folder(Path(order.patch)), sha256(patch or b"").hexdigest())


async def _score(task: _Task) -> Evaluation:
    if task.oversize:
        size = await to_thread.run_sync(lambda: Path(task.order.patch).stat().st_size)
        await to_thread.run_sync(_check, task, "")
        return too_large(task.rules, size, task.oversize, task.correctness)
    cache = await to_thread.run_sync(cache_dir, tell)
    scanner, engine = await open_scanner(RulesConfig(), task.benchmark.ignore_text(), tell, cache=cache)
    if engine.warning:
        tell(engine.warning)
    trees = await materialise(task.benchmark.origin(task.instance), cache)
    with tempfile.TemporaryDirectory(prefix="codetaste-evaluate-") as place:
        scratch, patch = Path(place), task.patch
        if patch is None:
            patch = await golden_patch(task.benchmark, task.instance, trees, scratch)
        await to_thread.run_sync(_check, task, sha256(patch).hexdigest())
        return await evaluate(
            task.rules,
            trees.base,
            patch,
            scanner,
            scratch=scratch,
            exclusions=task.order.exclusions,
            correctness=task.correctness,
            engine=engine.label,
        )


def _check(task: _Task, patch_sha256: str) -> None:
    if task.folder is not None:
        check_place(task.folder, task.instance.id, patch_sha256)


def _write(task: _Task, folder: Path, evaluation: Evaluation) -> None:
    order = task.order
    beside = {} if order.pseudo else _beside(Path(order.patch).parent)
    unknown = {"name": "unknown", "version": None, "provider": "unknown", "additional": None}
    named = {"id": Path(order.patch).stem, "agent": unknown, "model": {**unknown, "name": "unknown"}}
    write_evaluation(
        folder,
        evaluation,
        instance=task.instance,
        agent_config=pseudo_config(order.pseudo) if order.pseudo else beside.get(_CONFIG, named),
        inference_metadata=beside.get(_METADATA),
        instance_metadata=task.benchmark.metadata(task.instance),
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
        test_output=order.tests.read_bytes()[-_MOST_BYTES:] if order.tests is not None else None,
    )


def _beside(folder: Path) -> dict[str, dict[str, Any]]:
    """Read what an agent left beside its prediction, as far as it can be read."""
    found: dict[str, dict[str, Any]] = {}
    for name in (_CONFIG, _METADATA):
        try:
            with (folder / name).open("rb") as file:
                data = json.loads(file.read(_MOST_BYTES))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError) as error:
            tell(f"{folder / name}: not read: {error}")
            continue
        if isinstance(data, dict):
            found[name] = data
    return found


def _text(task: _Task, evaluation: Evaluation) -> str:
    what = f"{task.order.patch} patch" if task.order.pseudo else task.order.patch
    said = render_evaluation(evaluation, f"{task.instance.id}: {what}")
    return said if task.folder is None else f"{said}\nwritten to {task.folder}"


def _document(task: _Task, evaluation: Evaluation) -> str:
    known = {
        "instance": task.instance.id,
        "patch": task.order.patch,
        "directory": None if task.folder is None else str(task.folder),
    }
    return json.dumps({**known, **scores_json(evaluation)}, indent=2)

"""``codetaste evaluate``: evaluate one patch, print its scores, and write them in the published layout."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import AGENT_CONFIG_FILE, METADATA_FILE
from codetaste.cli.arguments import resolve_benchmark, resolve_instance
from codetaste.console import notify, print_result
from codetaste.core.paths import cache_dir
from codetaste.errors import ConfigError, PatchTooLarge, RuleError, SourceError
from codetaste.evaluation.baseline import (
    compare_with_baseline,
    read_baseline,
    read_pseudo_agent_tests,
    read_test_results,
)
from codetaste.evaluation.evaluate import evaluate as evaluate_patch
from codetaste.evaluation.evaluate import too_large_evaluation
from codetaste.evaluation.output.location import check_results_folder, results_folder
from codetaste.evaluation.output.result_files import read_recorded_tests, write_evaluation
from codetaste.evaluation.output.scores_json import scores_to_json
from codetaste.evaluation.pseudo_agents import NULL_PATCH, golden_patch, pseudo_agent_config
from codetaste.evaluation.rule_set import read_rule_set
from codetaste.evaluation.trials.records import GOLDEN, NULL
from codetaste.report.evaluation import render_evaluation
from codetaste.rules.config import RulesConfig
from codetaste.run.services import open_scanner
from codetaste.source.checkout import checkout_trees
from codetaste.source.patch.parse import read_patch

if TYPE_CHECKING:
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.baseline import PassResult
    from codetaste.evaluation.changed_lines import Exclusions
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.metrics import TestCounts
    from codetaste.evaluation.rule_set import RuleSet

_PSEUDO_AGENTS = {"golden": GOLDEN, "null": NULL}
"""Values of ``--patch`` that are not files; a file of that name is ``./golden``."""
_MAX_BYTES = 16 * 1024**2


@dataclass(frozen=True, slots=True)
class EvaluateArguments:
    """Arguments of ``codetaste evaluate``. ``patch`` is a file, "golden" or "null"."""

    benchmark: str
    repos: Path | None
    instance: str
    patch: str
    tests: Path | None
    out: Path | None
    exclusions: Exclusions
    json: bool

    @property
    def pseudo_agent(self) -> str:
        """The id of the pseudo agent that ``patch`` names, "" for a file."""
        return _PSEUDO_AGENTS.get(self.patch, "")


@dataclass(frozen=True, slots=True)
class _Task:
    """The inputs of one evaluation.

    Attributes:
        arguments: of the command line.
        benchmark: the benchmark of the instance.
        instance: the evaluated instance.
        rules: the instance's rules.
        correctness: PASS.
        patch: None if it is too large, or golden, which may need the trees.
        oversize: why the patch is not read, "" if it is.
        folder: folder of the results, None if they are not written.
    """

    arguments: EvaluateArguments
    benchmark: Benchmark
    instance: Instance
    rules: RuleSet
    correctness: PassResult
    patch: bytes | None
    oversize: str
    folder: Path | None


async def score_patch(arguments: EvaluateArguments) -> int:
    """Evaluate the patch, write and print the results; returns the exit code.

    Raises:
        ConfigError: an argument names something missing or invalid.
        SourceError: the trees are unavailable.
        EngineError: the rule engine could not be run at all.
        ToolMissing: there is no rule engine, or no git.
        JournalError: results cannot be written.
    """
    task = await to_thread.run_sync(_read_inputs, arguments)
    evaluation = await _evaluate_task(task)
    if task.folder is not None:
        await to_thread.run_sync(_write_results, task, task.folder, evaluation)
    print_result(
        _evaluation_to_json(task, evaluation) if arguments.json else _format_evaluation(task, evaluation)
    )
    return 1 if evaluation.rule_counts is None else 0


def _read_inputs(arguments: EvaluateArguments) -> _Task:
    """Find and read all inputs, so that problems are reported before anything runs."""
    benchmark, instance = _find_instance(arguments)
    patch, oversize = _read_given_patch(arguments)
    try:
        rules = read_rule_set(benchmark, instance)
    except RuleError as error:
        raise ConfigError(*str(error).splitlines()) from None
    tests = _test_counts(arguments, benchmark, instance, patch)
    folder = (
        arguments.out
        if arguments.pseudo_agent or arguments.out is not None
        else results_folder(Path(arguments.patch))
    )
    passed = compare_with_baseline(tests, read_baseline(benchmark, instance))
    return _Task(arguments, benchmark, instance, rules, passed, patch, oversize, folder)


def _find_instance(arguments: EvaluateArguments) -> tuple[Benchmark, Instance]:
    benchmark = resolve_benchmark(arguments.benchmark, arguments.repos)
    instance = resolve_instance(benchmark, arguments.instance)
    if lacking := benchmark.describe_missing_clone(instance):
        raise ConfigError(f"--repos: {lacking}")
    return benchmark, instance


def _read_given_patch(arguments: EvaluateArguments) -> tuple[bytes | None, str]:
    """Return the patch, None for a golden or too large one, and why a too large patch is not read."""
    if arguments.pseudo_agent:
        return (NULL_PATCH if arguments.pseudo_agent == NULL else None), ""
    path = Path(arguments.patch)
    if not path.is_file():
        raise ConfigError(f"--patch: {path} is not a file (nor one of the words golden, null)")
    try:
        return read_patch(path), ""
    except PatchTooLarge as error:
        return None, str(error)
    except SourceError as error:
        raise ConfigError(f"--patch: {error}") from None


def _test_counts(
    arguments: EvaluateArguments, benchmark: Benchmark, instance: Instance, patch: bytes | None
) -> TestCounts | None:
    if arguments.tests is not None:
        return read_test_results(arguments.tests)
    if arguments.pseudo_agent:
        return read_pseudo_agent_tests(benchmark, instance, arguments.pseudo_agent)
    return read_recorded_tests(results_folder(Path(arguments.patch)), sha256(patch or b"").hexdigest())


async def _evaluate_task(task: _Task) -> Evaluation:
    if task.oversize:
        size = await to_thread.run_sync(lambda: Path(task.arguments.patch).stat().st_size)
        await to_thread.run_sync(_check_folder, task, "")
        return too_large_evaluation(task.rules, size, task.oversize, task.correctness)
    cache = await to_thread.run_sync(cache_dir, notify)
    scanner, engine = await open_scanner(RulesConfig(), task.benchmark.ignore_text(), notify, cache=cache)
    if engine.warning:
        notify(engine.warning)
    trees = await checkout_trees(task.benchmark.origin(task.instance), cache)
    with tempfile.TemporaryDirectory(prefix="codetaste-evaluate-") as folder_name:
        scratch, patch = Path(folder_name), task.patch
        if patch is None:
            patch = await golden_patch(task.benchmark, task.instance, trees, scratch)
        await to_thread.run_sync(_check_folder, task, sha256(patch).hexdigest())
        return await evaluate_patch(
            task.rules,
            trees.base,
            patch,
            scanner,
            scratch=scratch,
            exclusions=task.arguments.exclusions,
            pass_result=task.correctness,
            engine=engine.label,
        )


def _check_folder(task: _Task, patch_sha256: str) -> None:
    if task.folder is not None:
        check_results_folder(task.folder, task.instance.id, patch_sha256)


def _write_results(task: _Task, folder: Path, evaluation: Evaluation) -> None:
    arguments = task.arguments
    metadata = {} if arguments.pseudo_agent else _read_metadata_files(Path(arguments.patch).parent)
    unknown = {"name": "unknown", "version": None, "provider": "unknown", "additional": None}
    default = {"id": Path(arguments.patch).stem, "agent": unknown, "model": {**unknown, "name": "unknown"}}
    write_evaluation(
        folder,
        evaluation,
        instance=task.instance,
        agent_config=pseudo_agent_config(arguments.pseudo_agent)
        if arguments.pseudo_agent
        else metadata.get(AGENT_CONFIG_FILE, default),
        inference_metadata=metadata.get(METADATA_FILE),
        instance_metadata=task.benchmark.metadata(task.instance),
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
        test_output=arguments.tests.read_bytes()[-_MAX_BYTES:] if arguments.tests is not None else None,
    )


def _read_metadata_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the agent's metadata files next to its prediction; unreadable ones are left out."""
    found: dict[str, dict[str, Any]] = {}
    for name in (AGENT_CONFIG_FILE, METADATA_FILE):
        try:
            with (folder / name).open("rb") as file:
                data = json.loads(file.read(_MAX_BYTES))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError) as error:
            notify(f"{folder / name}: not read: {error}")
            continue
        if isinstance(data, dict):
            found[name] = data
    return found


def _format_evaluation(task: _Task, evaluation: Evaluation) -> str:
    patch = f"{task.arguments.patch} patch" if task.arguments.pseudo_agent else task.arguments.patch
    text = render_evaluation(evaluation, f"{task.instance.id}: {patch}")
    return text if task.folder is None else f"{text}\nwritten to {task.folder}"


def _evaluation_to_json(task: _Task, evaluation: Evaluation) -> str:
    data = {
        "instance": task.instance.id,
        "patch": task.arguments.patch,
        "directory": None if task.folder is None else str(task.folder),
    }
    return json.dumps({**data, **scores_to_json(evaluation)}, indent=2)

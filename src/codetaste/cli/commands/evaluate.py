"""``codetaste evaluate``: evaluate one patch, print its scores, and write them in the published layout."""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anyio import to_thread
from cyclopts import Parameter

from codetaste.benchmark.layout import AGENT_CONFIG_FILE, GOLDEN, METADATA_FILE, NULL
from codetaste.cli.arguments import open_scan, read_metadata, resolve_benchmark, resolve_instance
from codetaste.cli.container_runs import (
    DEFAULT_BASELINE_RUNS,
    DEFAULT_CONTAINERS,
    BaselineRuns,
    ContainerOptions,
    InstanceSelection,
    run_tests,
)
from codetaste.cli.options import AsJson, Flag, OptionalPath
from codetaste.console.command import command
from codetaste.console.exit_codes import STOPPED
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result, result_stream, width_of
from codetaste.core.paths import cache_dir
from codetaste.errors import ConfigError, PatchTooLarge, RuleError, SourceError
from codetaste.evaluation.activity.refactorings import (
    compare_patches,
    refactoring_rows,
    refactorings_to_json,
    write_refactorings,
)
from codetaste.evaluation.changed_lines import Exclusions
from codetaste.evaluation.config import EvaluateConfig
from codetaste.evaluation.evaluate import evaluate as evaluate_patch
from codetaste.evaluation.evaluate import too_large_evaluation
from codetaste.evaluation.metrics import CRASHED_RUN
from codetaste.evaluation.output.location import check_results_folder, results_folder
from codetaste.evaluation.output.result_files import read_recorded_tests, write_evaluation
from codetaste.evaluation.output.scores_json import scores_to_json
from codetaste.evaluation.pseudo_agents import NULL_PATCH, golden_patch, pseudo_agent_config
from codetaste.evaluation.rule_set import read_rule_set
from codetaste.evaluation.test_runs.recorded import (
    PassResult,
    compare_with_baseline,
    parse_test_output,
    read_baseline,
    read_pseudo_agent_tests,
    read_test_output,
)
from codetaste.flows.evaluate.measured_tests import MeasuredTests, with_test_run
from codetaste.flows.evaluate.plan import EvaluationTask, given_prediction
from codetaste.refactorings.service import refactoring_service
from codetaste.report.evaluation import render_evaluation, render_refactorings
from codetaste.source.checkout import checkout_trees
from codetaste.source.patch.parse import read_patch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.activity.refactorings import RefactoringComparison
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.metrics import TestCounts
    from codetaste.evaluation.rule_set import RuleSet
    from codetaste.refactorings.service import RefactoringService

_RUN = Path("run")
"""The value of ``--tests`` that is not a file; a file of that name is ``./run``."""
_PSEUDO_AGENTS = {"golden": GOLDEN, "null": NULL}
"""Values of ``--patch`` that are not files; a file of that name is ``./golden``."""


@dataclass(frozen=True, slots=True)
class _Task:
    """The inputs of one evaluation.

    Attributes:
        benchmark: the benchmark of the instance.
        instance: the evaluated instance.
        source: of the patch: a file, "golden" or "null".
        patch: None if it is too large, or golden, which may need the trees.
        oversize: why the patch is not read, "" if it is.
        rules: the instance's rules.
        test_output: the given output of the test run, None if none is given.
        correctness: PASS.
        folder: folder of the results, None if they are not written.
        measured: the test runs that PASS was measured with, None if there were none.
    """

    benchmark: Benchmark
    instance: Instance
    source: str
    patch: bytes | None
    oversize: str
    rules: RuleSet
    test_output: bytes | None
    correctness: PassResult
    folder: Path | None
    measured: MeasuredTests | None = None

    @property
    def pseudo_agent(self) -> str:
        """The id of the pseudo agent whose patch this is, "" for a file."""
        return _PSEUDO_AGENTS.get(self.source, "")


@dataclass(frozen=True, slots=True)
class _Result:
    """The scores of the patch, and the comparison of its refactorings, if there is one."""

    evaluation: Evaluation
    refactorings: RefactoringComparison | None = None


@command
async def evaluate(  # noqa: PLR0913 - the options of the command
    *,
    benchmark: str = "quickstart",
    repos: OptionalPath = None,
    instance: str,
    patch: str,
    tests: OptionalPath = None,
    out: OptionalPath = None,
    baseline_runs: BaselineRuns = DEFAULT_BASELINE_RUNS,
    exclusions: Exclusions = Exclusions.PUBLISHED,
    containers: Annotated[ContainerOptions, Parameter(name="*")] = DEFAULT_CONTAINERS,
    refactorings: Flag = False,
    json_: AsJson = False,
) -> int:
    """Evaluate the patch, write and print the results.

    Args:
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO; otherwise the instance's own origin is used.
        instance: The instance's id, or a glob that matches exactly one.
        patch: A file, or "golden" for the human's patch, "null" for an empty patch.
        tests: "run" to run the tests of the patched code, of R and of R∘X* in containers, from the scripts
            of the benchmark; or a file with the output of a test run of the patched code, whose last line of
            JSON is used; default the test results of an earlier evaluation next to the patch.
        out: Folder of the results; default evaluation/ next to a prediction.diff, NAME-evaluation/ next to
            another file, and none for golden and null.
        baseline_runs: With --tests run, test runs on each of R and R∘X*; each is made once.
        exclusions: Which files do not count for precision: those that the published harness excludes, or
            none.
        containers: With --tests run, where tests run.
        refactorings: Compare the refactorings of the patch with the human's, by RefactoringMiner.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if the patch has no score, or if its tests should run or its refactorings be compared
        and there is no result.

    Raises:
        ConfigError: an argument names something missing or invalid.
        SourceError: the trees are unavailable.
        EngineError: the rule engine could not be run at all.
        ToolMissing: there is no rule engine, no git, or no RefactoringMiner to compare refactorings.
        SandboxMissing: tests should run, and there is no container engine or no base image.
        JournalError: results cannot be written, or the folder of the test runs is in use.
    """

    def read_inputs() -> _Task:
        """Find and read all inputs, so that problems are reported before anything runs."""
        opened = resolve_benchmark(benchmark, repos)
        chosen = resolve_instance(opened, instance)
        if missing := opened.describe_missing_clone(chosen):
            raise ConfigError(f"--repos: {missing}")
        content, oversize = _read_given_patch(patch)
        try:
            rules = read_rule_set(opened, chosen)
        except RuleError as error:
            raise ConfigError(*str(error).splitlines()) from None
        output = None if tests in {None, _RUN} else read_test_output(tests)
        counts = (
            _recorded_tests(opened, chosen, patch, content)
            if output is None
            else parse_test_output(output) or CRASHED_RUN
        )
        correctness = compare_with_baseline(counts, read_baseline(opened, chosen))
        folder = out if patch in _PSEUDO_AGENTS or out is not None else results_folder(Path(patch))
        return _Task(opened, chosen, patch, content, oversize, rules, output, correctness, folder)

    task = await to_thread.run_sync(read_inputs)
    async with _open_miner(wanted=refactorings) as miner:
        if tests == _RUN and not task.oversize:
            prediction = _prediction(task, baseline_runs)
            selection = InstanceSelection(benchmark=benchmark, repos=repos, instance=(task.instance.id,))
            measured = await run_tests(selection, containers, [prediction])
            if measured is None:
                return STOPPED
            task = _with_tests(task, measured[prediction.key])
        result = await _evaluate_task(task, exclusions, miner)
    if task.folder is not None:
        await to_thread.run_sync(_write_results, task, task.folder, result)
    print_result(_result_to_json(task, result) if json_ else _format_result(task, result))
    unmeasured = tests == _RUN and result.evaluation.pass_result.passed is None
    compared = result.refactorings is None or result.refactorings.is_answer
    return 1 if result.evaluation.rule_counts is None or unmeasured or not compared else 0


@asynccontextmanager
async def _open_miner(*, wanted: bool) -> AsyncIterator[RefactoringService | None]:
    """Open the service that detects refactorings, if it is wanted."""
    if not wanted:
        yield None
        return
    cache = await to_thread.run_sync(cache_dir, notify)
    async with refactoring_service(EvaluateConfig().refactoring_miner, cache) as service:
        yield service


def _prediction(task: _Task, baseline_runs: int) -> EvaluationTask:
    if task.pseudo_agent:
        return EvaluationTask(task.instance, task.pseudo_agent, baseline_runs=baseline_runs)
    return given_prediction(task.instance, task.patch or b"", baseline_runs)


def _with_tests(task: _Task, measured: MeasuredTests | str) -> _Task:
    if isinstance(measured, str):
        return replace(task, correctness=PassResult(reason=f"the tests could not be run: {measured}"))
    return replace(task, correctness=measured.result, measured=measured)


def _read_given_patch(source: str) -> tuple[bytes | None, str]:
    """Return the patch, None for a golden or too large one, and why a too large patch is not read."""
    if source in _PSEUDO_AGENTS:
        return (NULL_PATCH if _PSEUDO_AGENTS[source] == NULL else None), ""
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"--patch: {path} is not a file (nor one of the words golden, null)")
    try:
        return read_patch(path), ""
    except PatchTooLarge as error:
        return None, str(error)
    except SourceError as error:
        raise ConfigError(f"--patch: {error}") from None


def _recorded_tests(
    benchmark: Benchmark, instance: Instance, source: str, patch: bytes | None
) -> TestCounts | None:
    if source in _PSEUDO_AGENTS:
        return read_pseudo_agent_tests(benchmark, instance, _PSEUDO_AGENTS[source])
    return read_recorded_tests(results_folder(Path(source)), sha256(patch or b"").hexdigest())


async def _evaluate_task(task: _Task, exclusions: Exclusions, miner: RefactoringService | None) -> _Result:
    if task.oversize:
        size = await to_thread.run_sync(lambda: Path(task.source).stat().st_size)
        await to_thread.run_sync(_check_folder, task, "")
        return _Result(too_large_evaluation(task.rules, size, task.oversize, task.correctness))
    scan = await open_scan(task.benchmark)
    trees = await checkout_trees(task.benchmark.origin(task.instance), scan.cache)
    with tempfile.TemporaryDirectory(prefix="codetaste-evaluate-") as folder_name:
        scratch, patch = Path(folder_name), task.patch
        if patch is None:
            patch = await golden_patch(task.benchmark, task.instance, trees, scratch)
        await to_thread.run_sync(_check_folder, task, sha256(patch).hexdigest())
        evaluation = await evaluate_patch(
            task.rules,
            trees.base,
            patch,
            scan.scanner,
            scratch=scratch,
            exclusions=exclusions,
            pass_result=task.correctness,
            engine=scan.engine.label,
        )
        if task.measured is not None:
            evaluation = await with_test_run(evaluation, task.measured, patch, trees, scratch)
        if miner is None:
            return _Result(evaluation)
        human = await golden_patch(task.benchmark, task.instance, trees, scratch)
        return _Result(evaluation, await compare_patches(miner, trees.base, human, patch, scratch))


def _check_folder(task: _Task, patch_sha256: str) -> None:
    if task.folder is not None:
        check_results_folder(task.folder, task.instance.id, patch_sha256)


def _write_results(task: _Task, folder: Path, result: _Result) -> None:
    source = Path(task.source)
    unknown = {"name": "unknown", "version": None, "provider": "unknown", "additional": None}
    default = {"id": source.stem, "agent": unknown, "model": unknown}
    write_evaluation(
        folder,
        result.evaluation,
        instance=task.instance,
        agent_config=pseudo_agent_config(task.pseudo_agent)
        if task.pseudo_agent
        else read_metadata(source.parent / AGENT_CONFIG_FILE) or default,
        inference_metadata=None if task.pseudo_agent else read_metadata(source.parent / METADATA_FILE),
        instance_metadata=task.benchmark.metadata(task.instance),
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
        test_output=task.test_output,
    )
    if (found := result.refactorings) is not None:
        write_refactorings(folder, refactorings_to_json(found), refactoring_rows(found))


def _format_result(task: _Task, result: _Result) -> str:
    patch = f"{task.source} patch" if task.pseudo_agent else task.source
    lines = [render_evaluation(result.evaluation, f"{task.instance.id}: {patch}")]
    if result.refactorings is not None:
        lines.append(render_refactorings(result.refactorings, result.evaluation, width_of(result_stream())))
    if task.folder is not None:
        lines.append(f"written to {task.folder}")
    return "\n".join(lines)


def _result_to_json(task: _Task, result: _Result) -> str:
    data = {
        "instance": task.instance.id,
        "patch": task.source,
        "directory": None if task.folder is None else str(task.folder),
    }
    scores = scores_to_json(result.evaluation)
    if (found := result.refactorings) is None:
        return json_document({**data, **scores})
    compared = {**refactorings_to_json(found), "rows": [asdict(row) for row in found.rows]}
    return json_document({**data, **scores, "refactorings": compared})

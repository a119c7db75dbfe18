"""Read the results of runs: trials of both benchmarks, discovery passes, environments, and problems."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import MINING_FOLDER, OUTPUTS_FOLDER, RUN_CONFIG_FILE
from codetaste.core.text import printable
from codetaste.environment.record import read_records
from codetaste.errors import ConfigError, JournalError
from codetaste.evaluation.trials.read import merge_records, read_outputs
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem, TrialRecords
from codetaste.flows.describe.context import DESCRIPTIONS_FOLDER
from codetaste.flows.environment.publish import ENVIRONMENTS_FOLDER
from codetaste.orchestration.journal.journal import JOURNAL_FILE
from codetaste.report.discovery.passes import read_passes
from codetaste.report.statistics.merge import merge_runs
from codetaste.results.benchmarks import RunBenchmarks, benchmarks_of_runs
from codetaste.results.problems import make_problem, place_problem
from codetaste.results.roots import root_of
from codetaste.results.trial_studies import StudiesOfRuns, read_studies
from codetaste.swe_refactor.dataset.layout import FOLDER, TRIALS_FILE
from codetaste.swe_refactor.report.merge import MergedRows, read_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path
    from typing import TypeVar

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.environment.record import EnvironmentRecord
    from codetaste.report.discovery.passes import PassRecord
    from codetaste.report.statistics.merge import MergedTrials

    T = TypeVar("T")


_NO_JOURNAL = "it is missing: jobs, costs by call, waits and rule discovery of this run are unknown"


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results of one or more runs.

    Attributes:
        roots: the folders that were read, each once.
        records: the trials of CodeTaste as each run has them.
        trials: these with unique agent names and without duplicates.
        passes: passes of rule discovery.
        environments: execution environments, those that failed too.
        answers: the trials of SWE-Refactor.
        problems: what could not be read, by file or folder.
        studies: the case studies and failure labels that are filed beside the trials.
        benchmarks: what the trials' instances are of, as far as runs name it and it can be opened.
    """

    roots: tuple[Path, ...]
    records: TrialRecords
    trials: MergedTrials
    passes: tuple[PassRecord, ...]
    environments: tuple[EnvironmentRecord, ...]
    answers: MergedRows
    problems: tuple[ReadProblem, ...]
    studies: StudiesOfRuns = field(default_factory=StudiesOfRuns)
    benchmarks: RunBenchmarks = field(default_factory=RunBenchmarks)

    @property
    def empty(self) -> bool:
        """Whether no run has a trial, a pass or an environment."""
        return not (self.trials.agents or self.passes or self.environments or self.answers.rows)


def read_results(
    roots: Sequence[Path], benchmark: Benchmark | None = None, repos: Path | None = None
) -> RunResults:
    """Read the results of runs, also of runs that go on or were killed. Blocking.

    A part that cannot be read becomes a problem, so that the others are shown.

    Args:
        roots: folders of runs, or in the published layout of outputs, each once.
        benchmark: the instances of all runs with language, category and baselines; default the one that each
            run names, if it can be opened.
        repos: a folder of clones of the benchmarks that runs name.

    Raises:
        ConfigError: a folder does not exist or has nothing that is a result.
    """
    benchmarks = benchmarks_of_runs(roots, benchmark, repos)
    several = len(roots) > 1
    problems = [
        place_problem(ReadProblem(ProblemKind.MISSING, JOURNAL_FILE, _NO_JOURNAL), root, roots)
        for root in roots
        if (root / RUN_CONFIG_FILE).is_file() and not (root / JOURNAL_FILE).is_file()
    ]
    passes = _parts(roots, lambda root: read_passes(root, f"{root.name}/" if several else ""), problems)
    environments = _parts(roots, lambda root: read_records(root / ENVIRONMENTS_FOLDER), problems)
    answering = [root for root in roots if (root / FOLDER / TRIALS_FILE).is_file()]
    try:
        answers = read_runs(answering) if answering else MergedRows(())
    except ConfigError as error:
        answers = MergedRows(())
        problems += [make_problem(text) for text in error.problems]
    others = passes or environments or answering
    with_trials = [root for root in roots if _may_have_trials(root) or not (others or _makes_no_trials(root))]
    records = read_trial_records(with_trials, benchmarks)
    studies = read_studies(roots, problems)
    return RunResults(
        tuple(roots),
        records,
        merge_runs(records.records),
        tuple(passes),
        tuple(environments),
        answers,
        (*records.problems, *problems, *benchmarks.problems),
        studies,
        benchmarks,
    )


def _may_have_trials(root: Path) -> bool:
    """Whether a folder has outputs, or is no run but perhaps outputs in the published layout."""
    of_run = (RUN_CONFIG_FILE, JOURNAL_FILE, f"{FOLDER}/{TRIALS_FILE}", ENVIRONMENTS_FOLDER)
    return (root / OUTPUTS_FOLDER).is_dir() or not any((root / name).exists() for name in of_run)


def _makes_no_trials(root: Path) -> bool:
    """Whether a folder is of a run that mines or describes instances, and has no outputs."""
    return not _may_have_trials(root) and any(
        (root / name).is_dir() for name in (MINING_FOLDER, DESCRIPTIONS_FOLDER)
    )


def describe_no_trials(results: RunResults) -> str:
    """Say that there is no trial in the runs, and of runs that make none by design what they do."""
    named = printable(", ".join(map(str, results.roots))) or "no run"
    by_design = results.roots and all(map(_makes_no_trials, results.roots))
    return f"there is no trial in {named}{', which mines or describes instances' if by_design else ''}"


def run_names(results: RunResults) -> dict[Path, str]:
    """Return the name of the run in each folder, as the rows of its trials have it."""
    names = {root: root.absolute().name for root in results.roots}
    uses = Counter(names.values())
    found = {root: printable(str(root) if uses[name] > 1 else name) for root, name in names.items()}
    for record in results.records.records:
        found[root_of(record, found)] = record.run
    return found


def read_trial_records(roots: Sequence[Path], benchmarks: RunBenchmarks) -> TrialRecords:
    """Read the trials of several folders; runs of the same name are labelled by their paths. Blocking.

    Raises:
        ConfigError: a folder does not exist, or nothing in it has the published layout.
    """
    readings: list[TrialRecords] = []
    names: set[str] = set()
    for root in roots:
        found = read_outputs(root, benchmarks.by_root.get(root))
        own = {record.run for record in found.records}
        if own & names:
            label = printable(str(root))
            found = replace(found, records=tuple(replace(each, run=label) for each in found.records))
            own = {label}
        found = replace(found, problems=tuple(place_problem(each, root, roots) for each in found.problems))
        names |= own
        readings.append(found)
    return readings[0] if len(readings) == 1 else merge_records(readings)


def _parts(
    roots: Sequence[Path], read: Callable[[Path], Iterable[T]], problems: list[ReadProblem]
) -> list[T]:
    """Return what ``read`` finds in each folder; a damaged file of one folder becomes a problem."""
    found: list[T] = []
    for root in roots:
        try:
            found += read(root)
        except (ConfigError, JournalError, OSError) as error:
            problems.append(make_problem(str(error)))
    return found

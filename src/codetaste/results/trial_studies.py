"""What agents have said of trials, by trial: failure labels, and case studies that compare them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from codetaste.benchmark.trial_identity import TrialIdentity
from codetaste.case_study.plan import METHOD_TRACK
from codetaste.case_study.read import read_case_studies, read_labels
from codetaste.report.statistics.merge import original_identity
from codetaste.results.problems import make_problem, place_problem
from codetaste.results.roots import root_of
from codetaste.swe_refactor.report.merge import original_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.case_study.study import CaseStudy, StudyOrigin, TrialAssessment, TrialLabel
    from codetaste.evaluation.trials.records import ReadProblem, TrialRecord
    from codetaste.swe_refactor.report.trial_row import TrialRow

_Key: TypeAlias = "tuple[Path, TrialIdentity]"
"""A trial: the folder of its run, and what identifies it there."""


@dataclass(slots=True)
class TrialStudies:
    """The labels of a trial, and what each case study says of it."""

    labels: list[TrialLabel] = field(default_factory=list)
    assessments: list[tuple[CaseStudy, TrialAssessment]] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing was said."""
        return not (self.labels or self.assessments)

    @property
    def label_words(self) -> tuple[str, ...]:
        """The labels in words, each once."""
        return tuple(dict.fromkeys(each.label.words for each in self.labels))


@dataclass(frozen=True, slots=True)
class StudiesOfRuns:
    """The case studies of runs, and what they and the labels say of each trial."""

    roots: tuple[Path, ...] = ()
    case_studies: tuple[CaseStudy, ...] = ()
    by_trial: Mapping[_Key, TrialStudies] = field(default_factory=dict)

    def of(self, trial: TrialRecord) -> TrialStudies:
        """Return what was said of a trial."""
        root = root_of(trial, self.roots)
        return self.by_trial.get((root, original_identity(trial)), TrialStudies())

    def of_answer(self, row: TrialRow, root: Path | None) -> TrialStudies:
        """Return what was said of a trial of SWE-Refactor; ``root`` is the folder of its run."""
        if root is None:
            return TrialStudies()
        key = original_key(row)
        identity = TrialIdentity(f"{key.strategy}/{key.model}", METHOD_TRACK, "", key.instance, key.attempt)
        return self.by_trial.get((root, identity), TrialStudies())


def read_studies(roots: Sequence[Path], problems: list[ReadProblem]) -> StudiesOfRuns:
    """Read what is filed beside the trials of runs, and add what cannot be read to ``problems``. Blocking."""
    studies: list[CaseStudy] = []
    by_trial: defaultdict[_Key, TrialStudies] = defaultdict(TrialStudies)
    for root in roots:
        faults: list[str] = []
        for label in read_labels(root, faults):
            by_trial[root, _identity(label.origin, label.agent, label.attempt)].labels.append(label)
        for study in read_case_studies(root, faults):
            studies.append(study)
            for each in study.trials:
                filed = by_trial[root, _identity(study.origin, each.agent, each.attempt)]
                filed.assessments.append((study, each))
        problems += (place_problem(make_problem(fault), root, roots) for fault in dict.fromkeys(faults))
    return StudiesOfRuns(tuple(roots), tuple(studies), dict(by_trial))


def _identity(origin: StudyOrigin, agent: str, attempt: int) -> TrialIdentity:
    return TrialIdentity(agent, origin.track, origin.mode, origin.instance, attempt)

"""What agents have said of a trial: failure labels, and case studies that compare it with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.case_study.study import CaseStudy, TrialAssessment, TrialLabel
    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.site.site import Site


@dataclass(frozen=True, slots=True)
class TrialStudies:
    """The labels of a trial, and what each case study says of it."""

    labels: tuple[TrialLabel, ...]
    assessments: tuple[tuple[CaseStudy, TrialAssessment], ...]

    @property
    def empty(self) -> bool:
        """Whether nothing was said."""
        return not (self.labels or self.assessments)


def studies_of_trial(site: Site, trial: TrialRecord) -> TrialStudies:
    """Return what was said of a trial."""
    labels = (each for each in site.trial_labels if _is_of(each, each.agent, each.attempt, trial))
    assessments = (
        (study, each)
        for study in site.case_studies
        for each in study.trials
        if _is_of(study, each.agent, each.attempt, trial)
    )
    return TrialStudies(tuple(labels), tuple(assessments))


def _is_of(each: TrialLabel | CaseStudy, agent: str, attempt: int, trial: TrialRecord) -> bool:
    origin = each.origin
    of = (origin.instance, origin.track, origin.mode, agent, attempt)
    return of == (trial.instance, trial.track, trial.mode, trial.agent, trial.attempt)

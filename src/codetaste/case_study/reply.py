"""Read the report that an agent leaves in its sandbox: JSON of a fixed form, from an untrusted archive."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from codetaste.case_study.config import StudyKind
from codetaste.case_study.read import clean_json
from codetaste.case_study.study import Claim, CommandEvidence, FailureLabel, TrialAssessment
from codetaste.core.text import one_line, plural, printable

if TYPE_CHECKING:
    from codetaste.case_study.plan import StudyTask

REPORT_FILE = "report.json"
"""What the agent writes to /output."""
MAX_REPORT_BYTES = 1024**2
_MAX_PROBLEMS = 5

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=20_000)]


class _Evidence(BaseModel):
    command: str = Field(max_length=100_000)
    excerpt: str = Field(max_length=20_000)

    def as_record(self) -> CommandEvidence:
        return CommandEvidence(self.command, self.excerpt)


class _Claim(BaseModel):
    claim: _Text
    evidence: list[_Evidence] = Field(max_length=20)


class _Assessment(BaseModel):
    assessment: _Text
    claims: list[_Claim] = Field(min_length=1, max_length=50)


class _Comparison(BaseModel):
    summary: _Text
    trials: dict[str, _Assessment]


class _Label(BaseModel):
    label: FailureLabel
    reason: _Text
    evidence: list[_Evidence] = Field(max_length=50)


@dataclass(frozen=True, slots=True)
class ReportText:
    """A report that an agent wrote, or what is wrong with it; its evidence is not checked.

    ``summary`` is about the refactoring, or the reason of a ``label``, whose ``evidence`` it has.
    """

    problems: tuple[str, ...] = ()
    summary: str = ""
    trials: tuple[TrialAssessment, ...] = ()
    label: FailureLabel | None = None
    evidence: tuple[CommandEvidence, ...] = ()


def read_report(text: str, task: StudyTask) -> ReportText:
    """Read the report on a task."""
    try:
        data = clean_json(json.loads(text))
        if task.kind is StudyKind.LABELS:
            label = _Label.model_validate(data)
            evidence = tuple(each.as_record() for each in label.evidence)
            return ReportText(summary=label.reason, label=label.label, evidence=evidence)
        comparison = _Comparison.model_validate(data)
    except ValidationError as error:
        return ReportText(_validation_problems(error))
    except (ValueError, RecursionError) as error:
        return ReportText((f"{REPORT_FILE} is not JSON: {printable(one_line(error))}",))
    names = {each.name for each in task.trials}
    missing, unknown = sorted(names - set(comparison.trials)), sorted(set(comparison.trials) - names)
    problems = (
        *(f"trials: {name} is missing" for name in missing[:_MAX_PROBLEMS]),
        *(f"trials: there is no trial {printable(name, 100)!r}" for name in unknown[:_MAX_PROBLEMS]),
    )
    if problems:
        return ReportText(problems)
    return ReportText(summary=comparison.summary, trials=_assessments(comparison, task))


def _assessments(comparison: _Comparison, task: StudyTask) -> tuple[TrialAssessment, ...]:
    found = []
    for trial in task.trials:
        each = comparison.trials[trial.name]
        claims = tuple(
            Claim(claim.claim, tuple(part.as_record() for part in claim.evidence)) for claim in each.claims
        )
        found.append(TrialAssessment(trial.agent, trial.attempt, each.assessment, claims))
    return tuple(found)


def _validation_problems(error: ValidationError) -> tuple[str, ...]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [
        printable(f"{'.'.join(map(str, each['loc'])) or REPORT_FILE}: {one_line(each['msg'])}")
        for each in found[:_MAX_PROBLEMS]
    ]
    more = len(found) - len(lines)
    return (*lines, *([f"and {plural(more, 'more problem')}"] if more > 0 else []))

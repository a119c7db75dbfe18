"""File a checked report beside the trials of its run, as JSON for programs and as Markdown for people."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.layout import CASE_STUDIES_FOLDER, attempt_name
from codetaste.case_study.config import StudyKind
from codetaste.case_study.evidence import check_claims, check_evidence
from codetaste.case_study.read import LABELS, REPORTS, SCHEMA_VERSION, study_from_json
from codetaste.case_study.study import CaseStudy, FailureLabel, StudyOrigin, TrialLabel
from codetaste.core.files import write_atomically
from codetaste.core.text import plural
from codetaste.core.units import format_exact_usd

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from decimal import Decimal
    from typing import Self

    from codetaste.case_study.evidence import EvidenceRecord
    from codetaste.case_study.plan import StudyTask
    from codetaste.case_study.reply import ReportText


@dataclass(frozen=True, slots=True)
class StudyResult:
    """The value of a study's job: the digest of its report, "" with a ``problem``, and what was verified.

    ``claims`` counts the claims of a comparison, or the evidence of a ``label``.
    """

    report: str
    problem: str = ""
    claims: int = 0
    verified: int = 0
    label: str = ""

    @classmethod
    def of(cls, study: CaseStudy | TrialLabel, digest: str) -> Self:
        """Return the result of a checked report, which is stored under ``digest``."""
        if isinstance(study, TrialLabel):
            verified = sum(each.verified for each in study.evidence)
            return cls(digest, "", len(study.evidence), verified, study.label)
        return cls(digest, "", len(study.claims), sum(each.verified for each in study.claims))

    def describe(self) -> str:
        """Describe the result in one line."""
        if not self.report:
            return f"no report: {self.problem}"
        if self.label:
            words = FailureLabel(self.label).words
            return f"{words}; {self.verified} of {plural(self.claims, 'piece')} of evidence verified"
        return f"{self.verified} of {plural(self.claims, 'claim')} verified"


def check_report(
    task: StudyTask,
    report: ReportText,
    record: EvidenceRecord,
    spent_usd: Decimal,
    finished_at: str,
) -> CaseStudy | TrialLabel:
    """Return a report with the problems of its evidence.

    Args:
        task: what it is about.
        report: what the agent wrote.
        record: what its evidence is looked up in.
        spent_usd: US dollars of its runs.
        finished_at: when, UTC, ISO 8601.
    """
    subject, path = task.subject, study_path(task)
    origin = StudyOrigin(
        subject.id, subject.track, subject.mode, task.agent.id, task.model_label, spent_usd, finished_at
    )
    if report.label is not None:
        trial, evidence = task.trials[0], check_evidence(report.evidence, record)
        return TrialLabel(path, origin, trial.agent, trial.attempt, report.label, report.summary, evidence)
    checked = (replace(each, claims=check_claims(each.claims, record)) for each in report.trials)
    return CaseStudy(path, origin, report.summary, tuple(checked))


def study_to_json(study: CaseStudy | TrialLabel) -> str:
    """Return a study as the text of its JSON file, which ``study_from_json`` reads."""
    data = asdict(study)
    del data["path"]
    if study.origin.cost_usd is not None:
        data["origin"]["cost_usd"] = format_exact_usd(study.origin.cost_usd)
    return json.dumps({"schema_version": SCHEMA_VERSION, **data}, indent=1, ensure_ascii=False) + "\n"


def study_folder(task: StudyTask) -> Path:
    """Return the folder of all reports of a run, or of all its labels."""
    return task.run / CASE_STUDIES_FOLDER / (REPORTS if task.kind is StudyKind.COMPARISON else LABELS)


def study_path(task: StudyTask) -> Path:
    """Return the file of a study for people: a comparison as Markdown, beside its JSON, or a label's JSON."""
    folder = study_folder(task)
    if task.kind is StudyKind.COMPARISON:
        return folder / task.subject.path / f"{task.agent.id}.md"
    trial = task.trials[0]
    first = trial.name.removesuffix(f".{attempt_name(trial.attempt)}")
    later = Path() if trial.attempt == 1 else Path(attempt_name(trial.attempt))
    return folder / task.subject.path / first / later / f"{task.agent.id}.json"


def file_study(study: CaseStudy | TrialLabel) -> None:
    """Write the files of a study. Does blocking I/O.

    Raises:
        JournalError: a file cannot be written; StorageFull is one of these.
    """
    if isinstance(study, CaseStudy):
        write_atomically(study.path, render_study(study))
    write_atomically(_json_path(study.path), study_to_json(study))


async def restore_study(
    task: StudyTask, result: StudyResult, load: Callable[[str], Awaitable[str]]
) -> Path | None:
    """Return the file of a study to be read by people, made again if it is gone; None without a report.

    Raises:
        JournalError: the report is missing in the run's folder, or a file cannot be written.
    """
    if not result.report:
        return None
    path = study_path(task)
    if not await to_thread.run_sync(lambda: path.is_file() and _json_path(path).is_file()):
        study = study_from_json(task.kind, json.loads(await load(result.report)), path)
        await to_thread.run_sync(file_study, study)
    return path


def _json_path(path: Path) -> Path:
    return path.with_suffix(".json")


def render_study(study: CaseStudy) -> str:
    """Return a comparison as Markdown; the agent's texts are quoted, and its commands are code."""
    origin = study.origin
    cost = "unknown cost" if origin.cost_usd is None else f"${format_exact_usd(origin.cost_usd)}"
    lines = [
        f"# {origin.instance}, {'/'.join(filter(None, (origin.track, origin.mode)))}",
        "",
        f"Case study by {origin.by} ({origin.model}), {origin.finished_at}, {cost}.",
        "A claim is *verified* if its commands were run in the agent's sandbox and printed what is quoted;",
        "whether that proves the claim is for the reader to judge.",
        "",
        *_quoted(study.summary),
    ]
    for trial in study.trials:
        again = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
        lines += ["", f"## {_one_line(trial.agent)}{again}", "", *_quoted(trial.text), ""]
        for number, claim in enumerate(trial.claims, 1):
            state = "verified" if claim.verified else "**not verified**"
            lines += [f"{number}. {_one_line(claim.text)} ({state})", ""]
            for each in claim.evidence:
                lines += [*_code(f"$ {each.command}\n{each.excerpt}"), ""]
                lines += [f"    Not verified: {each.problem}.", ""] if each.problem else []
            lines += [] if claim.evidence else ["    Not verified: it has no evidence.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _quoted(text: str) -> Iterable[str]:
    return (f"> {_plain(line)}".rstrip() for line in text.splitlines())


def _code(text: str) -> Iterable[str]:
    """Return an indented block of code, which no text can end."""
    return (f"        {_visible(line)}" for line in text.splitlines())


def _one_line(text: str) -> str:
    return _plain(" ".join(text.split()))


def _plain(text: str) -> str:
    """Return a line without HTML, links and images; a viewer of Markdown would load these."""
    for char, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("[", "&#91;")):
        text = text.replace(char, escaped)
    return _visible(text)


def _visible(text: str) -> str:
    """Return a line with its control characters escaped."""
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in text
    )

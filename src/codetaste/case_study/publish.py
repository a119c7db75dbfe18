"""File a checked report beside the trials of its run, as JSON for programs and as Markdown for people."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import CASE_STUDIES_FOLDER, attempt_name
from codetaste.case_study.config import StudyKind
from codetaste.case_study.evidence import check_claims, check_evidence
from codetaste.case_study.read import LABELS, REPORTS, SCHEMA_VERSION
from codetaste.case_study.study import FailureLabel, StudyOrigin
from codetaste.core.files import write_atomically
from codetaste.core.text import plural
from codetaste.core.units import format_exact_usd

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
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
    def of(cls, study: str, digest: str) -> Self:
        """Return the result of a report, as JSON text."""
        data = json.loads(study)
        if "label" in data:
            found = data["evidence"]
            good = [each for each in found if not each["problem"]]
            return cls(digest, "", len(found), len(good), data["label"])
        claims = [claim for trial in data["trials"] for claim in trial["claims"]]
        good = [each for each in claims if _is_verified(each["evidence"])]
        return cls(digest, "", len(claims), len(good))

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
) -> str:
    """Return a report as it is filed, JSON text, with the problems of its evidence.

    Args:
        task: what it is about.
        report: what the agent wrote.
        record: what its evidence is looked up in.
        spent_usd: US dollars of its runs.
        finished_at: when, UTC, ISO 8601.
    """
    by, model = task.agent.id, task.model_label
    subject = task.subject
    origin = StudyOrigin(subject.id, subject.track, subject.mode, by, model, spent_usd, finished_at)
    data: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "origin": {**asdict(origin), "cost_usd": format_exact_usd(spent_usd)},
    }
    if task.kind is StudyKind.LABELS:
        data |= {"agent": task.trials[0].agent, "attempt": task.trials[0].attempt}
        data |= {"label": str(report.label), "reason": report.summary}
        data["evidence"] = [asdict(each) for each in check_evidence(report.evidence, record)]
    else:
        checked = [replace(each, claims=check_claims(each.claims, record)) for each in report.trials]
        data |= {"summary": report.summary, "trials": [asdict(each) for each in checked]}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def study_path(task: StudyTask) -> Path:
    """Return the JSON file of a study."""
    folder = task.run / CASE_STUDIES_FOLDER
    name = f"{task.agent.id}.json"
    if task.kind is StudyKind.COMPARISON:
        return folder / REPORTS / task.subject.path / name
    trial = task.trials[0]
    first = trial.name.removesuffix(f".{attempt_name(trial.attempt)}")
    later = Path() if trial.attempt == 1 else Path(attempt_name(trial.attempt))
    return folder / LABELS / task.subject.path / first / later / name


def file_study(task: StudyTask, study: str) -> Path:
    """Write the files of a study, and return the one to be read by people. Does blocking I/O.

    Raises:
        JournalError: a file cannot be written; StorageFull is one of these.
    """
    path = study_path(task)
    if task.kind is StudyKind.COMPARISON:
        write_atomically(path.with_suffix(".md"), render_study(json.loads(study)))
    write_atomically(path, study)
    return path.with_suffix(".md") if task.kind is StudyKind.COMPARISON else path


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
    shown = path.with_suffix(".md") if task.kind is StudyKind.COMPARISON else path
    if await to_thread.run_sync(lambda: path.is_file() and shown.is_file()):
        return shown
    return await to_thread.run_sync(file_study, task, await load(result.report))


def render_study(data: Mapping[str, Any]) -> str:
    """Return a comparison as Markdown; the agent's texts are quoted, and its commands are code."""
    origin = data["origin"]
    lines = [
        f"# {origin['instance']}, {'/'.join(filter(None, (origin['track'], origin['mode'])))}",
        "",
        f"Case study by {origin['by']} ({origin['model']}), {origin['finished_at']}, ${origin['cost_usd']}.",
        "A claim is *verified* if its commands were run in the agent's sandbox and printed what is quoted;",
        "whether that proves the claim is for the reader to judge.",
        "",
        *_quoted(data["summary"]),
    ]
    for trial in data["trials"]:
        again = f", attempt {trial['attempt']}" if trial["attempt"] > 1 else ""
        lines += ["", f"## {_one_line(trial['agent'])}{again}", "", *_quoted(trial["text"]), ""]
        for number, claim in enumerate(trial["claims"], 1):
            state = "verified" if _is_verified(claim["evidence"]) else "**not verified**"
            lines += [f"{number}. {_one_line(claim['text'])} ({state})", ""]
            for each in claim["evidence"]:
                lines += [*_code(f"$ {each['command']}\n{each['excerpt']}"), ""]
                lines += [f"    Not verified: {each['problem']}.", ""] if each["problem"] else []
            lines += [] if claim["evidence"] else ["    Not verified: it has no evidence.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _is_verified(evidence: Sequence[Mapping[str, Any]]) -> bool:
    return bool(evidence) and not any(each["problem"] for each in evidence)


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

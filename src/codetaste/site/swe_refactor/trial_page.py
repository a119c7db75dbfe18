"""The page of a trial of SWE-Refactor: task, answer beside the developers' code, judgement, conversation."""

from __future__ import annotations

import json
import posixpath
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from codetaste.core.text import printable
from codetaste.core.units import format_duration, format_usd
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.swe_refactor.addresses import COMPARISON, answer_address
from codetaste.site.swe_refactor.code_diff import CodeDiff, diff_texts
from codetaste.site.trial.transcript.excerpt import excerpts
from codetaste.site.trial.transcript.pieces import transcript_files
from codetaste.site.trial.transcript.timeline import make_timeline
from codetaste.swe_refactor.report.trials_file import trial_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.site.site import Site
    from codetaste.site.swe_refactor.run_files import RecordedAnswer, RunFiles
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.report.trial_row import TrialRow

_MAX_CODE = 20_000
_MAX_LOG = 10_000
_MAX_FILES = 20
_CODEBLEU = {
    "ngram": "words (BLEU)",
    "weighted_ngram": "words, keywords weighted",
    "syntax": "syntax",
    "data_flow": "data flow",
}


class Fact(NamedTuple):
    """A name and a value."""

    name: str
    text: str


class AnswerFile(NamedTuple):
    """A file that the answer changes: its diff if the file before is known, else its whole new text."""

    path: str
    state: str
    diff: CodeDiff | None
    text: str


def answer_file(site: Site, files: RunFiles, row: TrialRow) -> SiteFile:
    """Return the page of a trial, with the data beside it as its parts."""
    address = answer_address(row)
    return SiteFile(address, partial(answer_page, site, files, row), partial(_parts, files, row, address))


def _parts(files: RunFiles, row: TrialRow, address: str) -> Iterator[SiteFile]:
    yield SiteFile(_data_address(address), partial(answer_data, files, row))
    yield from transcript_files(posixpath.dirname(address), files.trial_jobs(row))


def _data_address(address: str) -> str:
    return address.replace("index.html", "trial.json")


def answer_page(site: Site, files: RunFiles, row: TrialRow) -> bytes:
    """Return the page of a trial."""
    answer, instance = files.answer(row), files.instance(row)
    score, jobs = files.score(row), files.trial_jobs(row)
    address = answer_address(row)
    return render_page(
        site,
        "swe_refactor/trial.html",
        address,
        f"{row.type}: {row.strategy}, {row.model_label or row.model}",
        crumbs=[("SWE-Refactor", COMPARISON)],
        data=[("trial (JSON)", _data_address(address))],
        row=row,
        facts=_facts(row),
        instance=instance,
        developers=_developers(instance),
        code={} if instance is None else _code(instance),
        answer=answer,
        prompt=_cut(answer.prompt if answer else "", _MAX_CODE),
        answer_text=_cut(answer.text if answer else "", _MAX_CODE),
        files=[] if answer is None else list(_files(answer, instance)),
        check=_mapping(score.get("check")),
        extra=_texts(_mapping(score.get("check")).get("extra")),
        tests=_mapping(score.get("tests")),
        test_log=_cut(str(_mapping(score.get("tests")).get("log") or ""), _MAX_LOG),
        new_failures=_texts(_mapping(score.get("tests")).get("new_failures")),
        codebleu=_codebleu(score),
        rounds=list(_rounds(answer)),
        folder=posixpath.dirname(address),
        conversations=excerpts(jobs),
        timeline=make_timeline(jobs),
        studies=site.results.studies.of_answer(row, files.root(row)),
        instance_page="",  # it has none
        others=[
            (each, answer_address(each))
            for each in site.results.answers.rows
            if each.instance == row.instance and each is not row
        ],
    )


def answer_data(files: RunFiles, row: TrialRow) -> bytes:
    """Return the row, its score and its answer as JSON."""
    answer = files.answer(row)
    data = {
        **trial_to_json(row),
        "score": files.score(row) or None,
        "answer": None if answer is None else {"text": answer.text, "files": dict(answer.files)},
    }
    return f"{json.dumps(data, indent=1)}\n".encode("ascii")


def _facts(row: TrialRow) -> list[Fact]:
    cost = "not known" if row.cost_usd is None else format_usd(row.cost_usd)
    facts = [
        Fact("Instance", printable(row.instance)),
        Fact("Project", printable(row.project)),
        Fact("Attempt", str(row.attempt)),
        Fact("Compile & test", _verdict(holds=row.compiles_and_passes)),
        Fact("Verified", _verdict(holds=row.verified)),
        Fact("Published check", _verdict(holds=row.published_check)),
        Fact("CodeBLEU", "–" if row.codebleu is None else f"{row.codebleu:.3f}"),
        Fact("Cost", f"{cost}{' (scripted: not real)' if row.scripted else ''}"),
        Fact("Turns", "–" if row.turns is None else str(row.turns)),
        Fact("Time", "–" if row.wall_s is None else format_duration(row.wall_s)),
    ]
    return facts if row.failure is None else [*facts, Fact("Failure", row.failure.value)]


def _verdict(*, holds: bool) -> str:
    return "yes" if holds else "no"


def _developers(instance: RefactoringInstance | None) -> CodeDiff | None:
    if instance is None or instance.file_path_before != instance.file_path_after:
        return None
    return diff_texts(instance.source_code_before_for_whole, instance.source_code_after_for_whole)


def _code(instance: RefactoringInstance) -> Mapping[str, str]:
    return {
        "Before": _cut(instance.source_code_before_refactoring, _MAX_CODE),
        "Developers": _cut(instance.source_code_after_refactoring, _MAX_CODE),
    }


def _files(answer: RecordedAnswer, instance: RefactoringInstance | None) -> Iterator[AnswerFile]:
    for path, text in list(answer.files.items())[:_MAX_FILES]:
        if text is None:
            yield AnswerFile(printable(path), "deleted", None, "")
        elif instance is not None and path == instance.file_path_before:
            diff = diff_texts(instance.source_code_before_for_whole, text)
            yield AnswerFile(printable(path), "changed", diff, "")
        else:
            yield AnswerFile(printable(path), "whole new text", None, _cut(text, _MAX_CODE))


def _codebleu(score: Mapping[str, Any]) -> list[Fact]:
    parts = _mapping(score.get("codebleu"))
    found = [(title, parts.get(name)) for name, title in _CODEBLEU.items()]
    return [
        Fact(title, f"{value:.3f}")
        for title, value in [*found, ("CodeBLEU", parts.get("score"))]
        if isinstance(value, int | float)
    ]


def _rounds(answer: RecordedAnswer | None) -> Iterator[Mapping[str, Any]]:
    """Yield the rounds of developer and reviewer: the findings of tools, verdict and comments."""
    rounds = answer.details.get("rounds") if answer is not None else None
    for each in rounds if isinstance(rounds, list) else ():
        this = _mapping(each)
        review = _mapping(this.get("review"))
        yield {
            "number": str(this.get("round", "")),
            "problem": str(this.get("problem") or "").replace("_", " "),
            "findings": [
                (str(found.get("tool", "")), bool(found.get("good")), str(found.get("text", "")))
                for found in map(_mapping, _list(this.get("findings")))
            ],
            "verdict": _verdict_of(review),
            "comments": [
                text if isinstance(text, str) else json.dumps(text) for text in _list(review.get("comments"))
            ],
        }


def _verdict_of(review: Mapping[str, Any]) -> str:
    if "accepted" not in review:
        return ""
    return "accepted" if review["accepted"] is True else "changes requested"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n… ({len(text):,} characters)"


def _mapping(value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - JSON
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    return value if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:  # noqa: ANN401 - JSON
    return [each if isinstance(each, str) else json.dumps(each) for each in _list(value)][:200]

"""Read the case studies and the failure labels that are filed in a run's folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from codetaste.benchmark.layout import CASE_STUDIES_FOLDER
from codetaste.case_study.config import StudyKind
from codetaste.case_study.study import CaseStudy, TrialLabel
from codetaste.core.text import one_line, printable, replace_surrogates
from codetaste.evaluation.trials.untrusted_files import FileProblem, read_json_object

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA_VERSION = 1
"""Increased by every change that makes earlier files unreadable."""
REPORTS, LABELS = "reports", "labels"
"""The folders of case studies and of labels, in ``case_studies/``."""
_Record = TypeVar("_Record", CaseStudy, TrialLabel)
_CASE_STUDY, _LABEL = TypeAdapter(CaseStudy), TypeAdapter(TrialLabel)


def read_case_studies(run: Path, problems: list[str] | None = None) -> tuple[CaseStudy, ...]:
    """Return the case studies of a run, ordered by their paths; () where it has none. Does blocking I/O.

    A file that is damaged, too large, a link out of the folder, or of a newer version is left out, as is a
    folder that cannot be read, and ``problems`` gets a line for it.
    """
    return _read(run, REPORTS, _CASE_STUDY, ".md", problems)


def read_labels(run: Path, problems: list[str] | None = None) -> tuple[TrialLabel, ...]:
    """Return the failure labels of a run's trials, ordered by their paths; as ``read_case_studies``.

    Several agents may have labelled the same trial.
    """
    return _read(run, LABELS, _LABEL, ".json", problems)


def _read(
    run: Path, name: str, form: TypeAdapter[_Record], suffix: str, problems: list[str] | None
) -> tuple[_Record, ...]:
    folder = run / CASE_STUDIES_FOLDER / name
    found = list[_Record]()
    faults = list[OSError]()
    for path in _json_files(folder, faults):
        try:
            data = read_json_object(path, os.path.realpath(folder))
            found.append(_validated(form, data, path.with_suffix(suffix)))
        except (FileProblem, ValueError, RecursionError) as error:
            if problems is not None:
                what = "is not a case study" if isinstance(error, ValidationError) else one_line(error)
                problems.append(printable(f"{path.relative_to(run)}: {what}"))
    if problems is not None:
        problems += [_named(run, error) for error in faults if not isinstance(error, FileNotFoundError)]
    return tuple(found)


def study_from_json(kind: StudyKind, data: Any, path: Path) -> CaseStudy | TrialLabel:  # noqa: ANN401 - JSON
    """Return a study of the content of its JSON file; ``path`` is its file for people.

    Raises:
        ValueError: it is of another version, or not of the form of this kind.
    """
    if kind is StudyKind.COMPARISON:
        return _validated(_CASE_STUDY, data, path)
    return _validated(_LABEL, data, path)


def _validated(form: TypeAdapter[_Record], data: Any, path: Path) -> _Record:  # noqa: ANN401 - JSON
    data = clean_json(data)
    if (version := data.get("schema_version")) != SCHEMA_VERSION:
        raise ValueError(f"has the version {version!r}; this program reads {SCHEMA_VERSION}")
    return form.validate_python({**data, "path": path})


def _named(run: Path, error: OSError) -> str:
    """Return a line that names the folder that cannot be read, or what is in its place."""
    path = Path(error.filename)
    while not os.path.lexists(path):
        path = path.parent
    return printable(f"{path.relative_to(run)}: cannot be read: {error.strerror}")


def _json_files(folder: Path, faults: list[OSError]) -> Iterator[Path]:
    """Yield the JSON files below a folder, sorted; links to folders are not followed.

    The errors of folders that cannot be read are added to ``faults``.
    """
    for parent, folders, names in os.walk(folder, onerror=faults.append):
        folders.sort()
        yield from (Path(parent, name) for name in sorted(names) if name.endswith(".json"))


def clean_json(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return JSON data without lone surrogates, which no UTF-8 file can have."""
    match value:
        case dict():
            return {replace_surrogates(name): clean_json(each) for name, each in value.items()}
        case list():
            return [clean_json(each) for each in value]
        case _:
            return replace_surrogates(value)

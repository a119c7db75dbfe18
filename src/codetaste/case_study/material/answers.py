"""What trials of SWE-Refactor left, as files: the answer, its judgement, and the conversations.

::

    refactoring.json  before.java  developers.java
    trials/<name>/trial.json, score.json, build_log.txt, answer.txt, answer.json, files/…, prompt.txt,
                  commands.txt, said.txt
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from codetaste.case_study.material.files import is_inside, write_text
from codetaste.case_study.material.transcript_text import write_conversations
from codetaste.core.text import replace_surrogates
from codetaste.errors import JournalError
from codetaste.orchestration.journal.blobs import BLOBS_FOLDER, Blobs
from codetaste.swe_refactor.report.trials_file import trial_to_json
from codetaste.transcripts.conversations import conversations_of

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.case_study.plan import StudiedTrial
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.transcripts.timeline.journal_reader import JournalReader

_MAX_FILES, _MAX_PATH_CHARS, _MAX_NAME_BYTES = 1000, 2000, 255
_NO_ANSWER = "The run has no answer on record."


def write_method(method: RefactoringInstance, into: Path) -> None:
    """Write the task of an instance, and its target before and after the developers' change."""
    task = {
        "type": method.type,
        "description": method.description,
        "target": method.method_name_before,
        "file_before": method.file_path_before,
        "file_after": method.file_path_after,
        "places": [each.model_dump() for each in method.diff_locations],
    }
    write_text(into / "refactoring.json", _as_text(task))
    write_text(into / "before.java", method.source_code_before_refactoring)
    write_text(into / "developers.java", method.source_code_after_refactoring)


def write_answer(trial: StudiedTrial, run: Path, journal: JournalReader, into: Path) -> None:
    """Write the folder of a trial. Does blocking I/O.

    Args:
        trial: the trial.
        run: the folder of its run.
        journal: of the run, polled.
        into: the folder, which is made.
    """
    into.mkdir(parents=True)
    root, blobs = os.path.realpath(run), Blobs(run / BLOBS_FOLDER)
    if trial.row is not None:
        row = trial_to_json(trial.row)
        score = row.pop("score") or {}
        tests = score.get("tests") or {}
        write_text(into / "build_log.txt", tests.pop("log", None) or "")
        write_text(into / "trial.json", _as_text(row))
        write_text(into / "score.json", _as_text(score))
    value = journal.result(trial.job_prefix)
    answer = _object(value)
    files, details = _object(answer.get("files")), _object(answer.get("details"))
    write_text(into / "answer.txt", _text(blobs, answer.get("text")) if answer else _NO_ANSWER)
    if prompt := _text(blobs, details.get("prompt")):
        write_text(into / "prompt.txt", prompt)
    for path, digest in list(files.items())[:_MAX_FILES]:
        inner = _relative(path)
        if inner is not None and digest is not None:
            place = into / "files" / inner
            with suppress(FileExistsError, IsADirectoryError, NotADirectoryError):  # it contradicts itself
                place.parent.mkdir(parents=True, exist_ok=True)
                write_text(place, _text(blobs, digest))
    deleted = [path for path, digest in files.items() if digest is None]
    shown = {"problem": answer.get("problem"), "deleted": deleted, "details": details}
    write_text(into / "answer.json", _as_text(shown))
    found = conversations_of(run, trial.job_prefix, journal)
    write_conversations((each for each in found if is_inside(each.path, root)), into, journal)


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return value if isinstance(value, dict) else {}


def _relative(path: str) -> PurePosixPath | None:
    """Return the path of a file in a project; None for one that leads out of it, or that no file can have."""
    inner = PurePosixPath(replace_surrogates(path))
    bad = inner.is_absolute() or ".." in inner.parts or not inner.parts or "\0" in path
    names_fit = all(len(part.encode()) <= _MAX_NAME_BYTES for part in inner.parts)
    return None if bad or not names_fit or len(path) > _MAX_PATH_CHARS else inner


def _text(blobs: Blobs, digest: object) -> str:
    """Return a stored text, "" if it is missing."""
    if isinstance(digest, str):
        with suppress(JournalError):
            return blobs.read(digest)
    return ""


def _as_text(value: object) -> str:
    return f"{json.dumps(value, indent=1)}\n"

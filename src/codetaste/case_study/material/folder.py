"""The folder that a study's sandbox has mounted: descriptions, the golden patch, and what each trial left.

::

    golden.diff  description.md  open_description.md
    trials/<name>/prediction.diff, rules.txt, test_output.txt, commands.txt, said.txt, …

All of it is untrusted: files are read within size limits, and links are not followed out of the run's folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import (
    DESCRIPTION_FILES,
    EVALUATION_FILES,
    EVALUATION_FOLDER,
    GOLDEN_PATCH_FILE,
    NEGATIVE_SARIF_FILE,
    PLANS_FOLDER,
    POSITIVE_SARIF_FILE,
    TRIAL_FILES,
    TRIAL_LOG_FILES,
    Track,
)
from codetaste.case_study.material.rule_matches import describe_matches
from codetaste.case_study.material.transcript_text import write_conversations
from codetaste.core.files import open_regular_file, storage_error
from codetaste.errors import ConfigError, JournalError
from codetaste.transcripts.conversations import conversations_of, conversations_of_logs

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.case_study.plan import StudiedTrial, StudyTask
    from codetaste.transcripts.event import RecordedConversation

MAX_FILE_BYTES = 8 * 1024**2
"""Of one file; what is longer is cut in the middle."""
_RULES_FILE, _TRIALS = "rules.txt", "trials"
_LEFT_OUT = frozenset({POSITIVE_SARIF_FILE, NEGATIVE_SARIF_FILE})
"""``rules.txt`` says what they say."""


@dataclass(frozen=True, slots=True)
class StudyMaterial:
    """What the folder is made of; ``golden`` is X* as a patch."""

    task: StudyTask
    benchmark: Benchmark
    golden: bytes

    def write(self, into: Path) -> None:
        """Write the folder. Does blocking I/O.

        Raises:
            JournalError: it cannot be written; StorageFull is one of these.
        """
        try:
            into.mkdir(parents=True, mode=0o755)
            (into / GOLDEN_PATCH_FILE).write_bytes(_cut_bytes(self.golden))
            for track in Track:
                if text := self._description(track):
                    (into / DESCRIPTION_FILES[track]).write_text(text, encoding="utf-8")
            for trial in self.task.trials:
                _write_trial(trial, self.task.run, into / _TRIALS / trial.name)
            for path in (into, *into.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)  # a container's user reads it
        except OSError as error:
            raise storage_error(error, into, JournalError) from error

    def _description(self, track: Track) -> str:
        try:
            return self.benchmark.description(self.task.instance, track)
        except ConfigError:
            return ""


def _write_trial(trial: StudiedTrial, run: Path, into: Path) -> None:
    into.mkdir(parents=True)
    root = os.path.realpath(run)
    evaluation = trial.folder / EVALUATION_FOLDER
    for name in (*TRIAL_FILES, *TRIAL_LOG_FILES):
        _copy(trial.folder / name, into / name, root)
    for name in EVALUATION_FILES:
        if name not in _LEFT_OUT:
            _copy(evaluation / name, into / name, root)
    for path in sorted((trial.folder / PLANS_FOLDER).glob("*.md")):
        _copy(path, into / PLANS_FOLDER / path.name, root)
    sarif = ((POSITIVE_SARIF_FILE, False), (NEGATIVE_SARIF_FILE, True))
    texts = [describe_matches(evaluation / name, root, reductive=reductive) for name, reductive in sarif]
    text = "\n".join(texts).encode("utf-8", "replace")
    (into / _RULES_FILE).write_bytes(_cut_bytes(text))
    write_conversations((each for each in _conversations(trial, run) if _is_inside(each.path, root)), into)


def _conversations(trial: StudiedTrial, run: Path) -> tuple[RecordedConversation, ...]:
    """Return the conversations of a trial's steps; without any the logs beside its patch."""
    return conversations_of(run, trial.identity.key) or conversations_of_logs(trial.folder)


def _copy(path: Path, to: Path, root: str) -> None:
    """Copy a file that is there, cut if it is too long."""
    if not _is_inside(path, root):
        return
    try:
        with open_regular_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= MAX_FILE_BYTES:
                content = file.read(MAX_FILE_BYTES)
            else:
                half = MAX_FILE_BYTES // 2
                content = file.read(half)
                file.seek(size - half)
                content += _left_out(size - 2 * half) + file.read(half)
    except OSError:
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(content)


def _cut_bytes(content: bytes) -> bytes:
    if len(content) <= MAX_FILE_BYTES:
        return content
    half = MAX_FILE_BYTES // 2
    return content[:half] + _left_out(len(content) - 2 * half) + content[-half:]


def _left_out(count: int) -> bytes:
    return f"\n[{count:,} bytes are left out]\n".encode()


def _is_inside(path: Path, root: str) -> bool:
    return os.path.commonpath((os.path.realpath(path), root)) == root

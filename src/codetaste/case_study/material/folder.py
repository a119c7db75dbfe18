"""The folder that a study's sandbox has mounted: descriptions, the golden patch, and what each trial left.

::

    golden.diff  description.md  open_description.md
    trials/<name>/prediction.diff, rules.txt, test_output.txt, commands.txt, said.txt, …

``answers.py`` writes that of SWE-Refactor.

All of it is untrusted: files are read within size limits, and links are not followed out of the run's folder.
"""

from __future__ import annotations

import os
from contextlib import suppress
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
from codetaste.case_study.material.answers import write_answer, write_method
from codetaste.case_study.material.files import copy_file, cut_bytes, is_inside, write_text
from codetaste.case_study.material.rule_matches import describe_matches
from codetaste.case_study.material.transcript_text import write_conversations
from codetaste.core.files import storage_error
from codetaste.errors import ConfigError, JournalError
from codetaste.transcripts.conversations import conversations_of, conversations_of_logs

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.case_study.plan import StudiedTrial, StudyTask
    from codetaste.transcripts.timeline.journal_reader import JournalReader

_RULES_FILE, _TRIALS = "rules.txt", "trials"
_LEFT_OUT = frozenset({POSITIVE_SARIF_FILE, NEGATIVE_SARIF_FILE})
"""``rules.txt`` says what they say."""


@dataclass(frozen=True, slots=True)
class StudyMaterial:
    """What the folder is made of; ``golden`` is X* as a patch, ``journal`` that of the run, polled."""

    task: StudyTask
    benchmark: Benchmark
    golden: bytes
    journal: JournalReader

    def write(self, into: Path) -> None:
        """Write the folder. Does blocking I/O.

        Raises:
            JournalError: it cannot be written; StorageFull is one of these.
        """
        subject = self.task.subject
        try:
            into.mkdir(parents=True, mode=0o755)
            (into / GOLDEN_PATCH_FILE).write_bytes(cut_bytes(self.golden))
            if subject.instance is not None:
                self._write_descriptions(subject.instance, into)
            if subject.method is not None:
                write_method(subject.method, into)
            for trial in self.task.trials:
                place = into / _TRIALS / trial.name
                if trial.folder is None:
                    write_answer(trial, self.task.run, self.journal, place)
                else:
                    self._write_trial(trial, trial.folder, place)
            for path in (into, *into.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)  # a container's user reads it
        except OSError as error:
            raise storage_error(error, into, JournalError) from error

    def _write_descriptions(self, instance: Instance, into: Path) -> None:
        for track in Track:
            with suppress(ConfigError):
                text = self.benchmark.description(instance, track)
                (into / DESCRIPTION_FILES[track]).write_text(text, encoding="utf-8")

    def _write_trial(self, trial: StudiedTrial, folder: Path, into: Path) -> None:
        into.mkdir(parents=True)
        run = self.task.run
        root = os.path.realpath(run)
        evaluation = folder / EVALUATION_FOLDER
        for name in (*TRIAL_FILES, *TRIAL_LOG_FILES):
            copy_file(folder / name, into / name, root)
        for name in EVALUATION_FILES:
            if name not in _LEFT_OUT:
                copy_file(evaluation / name, into / name, root)
        for path in sorted((folder / PLANS_FOLDER).glob("*.md")):
            copy_file(path, into / PLANS_FOLDER / path.name, root)
        sarif = ((POSITIVE_SARIF_FILE, False), (NEGATIVE_SARIF_FILE, True))
        texts = [describe_matches(evaluation / name, root, reductive=reductive) for name, reductive in sarif]
        write_text(into / _RULES_FILE, "\n".join(texts))
        found = conversations_of(run, trial.job_prefix, self.journal) or conversations_of_logs(folder)
        write_conversations((each for each in found if is_inside(each.path, root)), into, self.journal)

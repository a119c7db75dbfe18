"""Find the trials in a tree of outputs: the published layout plus attempts, without following links.

::

    outputs/<track>/<mode>/<owner>/<repo>/<hash8>/<agent>/                 the first attempt
    outputs/<track>/<mode>/<owner>/<repo>/<hash8>/<agent>/attempt-<n>/     later ones
    outputs/pseudo_agents/direct/<owner>/<repo>/<hash8>/{golden_agent,null_agent}/
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.benchmark.instances_csv import is_path_name
from codetaste.benchmark.layout import (
    EVALUATION_FOLDER,
    MODES,
    OUTPUTS_FOLDER,
    PLANS_FOLDER,
    PSEUDO_TRACK,
    RUN_CONFIG_FILE,
    TRACKS,
    TRIAL_FILES,
    TRIAL_LOG_FILES,
    parse_attempt,
)
from codetaste.core.text import printable
from codetaste.errors import ConfigError
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem
from codetaste.evaluation.trials.untrusted_files import is_folder
from codetaste.orchestration.journal.journal import JOURNAL_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRIAL_ENTRIES = frozenset({*TRIAL_FILES, *TRIAL_LOG_FILES, EVALUATION_FOLDER, PLANS_FOLDER})
"""A folder that contains any of these is a trial's folder."""
_HASH8 = re.compile(r"[0-9a-f]{8}")
_IGNORED = re.compile(r"\.|__MACOSX")
_MAX_AGENT_DEPTH = 3


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """One trial's folder; ``track`` and ``mode`` are "" if the path does not contain them."""

    folder: Path
    label: str
    track: str
    mode: str
    owner: str
    repo: str
    hash8: str
    agent: str
    attempt: int

    @property
    def pseudo(self) -> bool:
        """Whether it is in the pseudo agents' track."""
        return self.track == PSEUDO_TRACK

    @property
    def instance_path(self) -> str:
        """``owner/repo/hash8``."""
        return f"{self.owner}/{self.repo}/{self.hash8}"

    @property
    def instance_id(self) -> str:
        """The instance's id."""
        return f"{self.owner}__{self.repo}-{self.hash8}".lower()

    @property
    def sort_key(self) -> tuple[object, ...]:
        """The pseudo agents' track is first in an instance: later trials with their names are duplicates."""
        track = TRACKS.index(self.track) if self.track else 0
        return self.instance_path, not self.pseudo, track, self.mode, self.agent, self.attempt


@dataclass(frozen=True, slots=True)
class TrialFolders:
    """The trials below a root, in the order of their instances; ``problems`` are folders that are none, too.

    ``outputs`` is the folder with the tracks, None if the root is below them and its path does not show it.
    """

    outputs: Path | None
    trials: tuple[TrialFolder, ...]
    problems: tuple[ReadProblem, ...]


def find_trials(root: Path) -> TrialFolders:
    """Walk ``root``: a run, its outputs, one track, one mode, or a folder of owners.

    Raises:
        ConfigError: the folder does not exist, or it does not have the published layout.
    """
    if not is_folder(root):
        raise ConfigError(f"{printable(str(root), 300)}: no such folder")
    walk = _Walk(root)
    outputs, starts = _starts(root, walk)
    trials = [trial for folder, track, mode in starts for trial in walk.instances(folder, track, mode)]
    if not trials and not walk.problems:
        walk.problem(root, ProblemKind.INSTANCES, "it contains no trial")
    trials.sort(key=lambda trial: trial.sort_key)
    return TrialFolders(outputs, tuple(trials), tuple(walk.problems))


def _starts(root: Path, walk: _Walk) -> tuple[Path | None, list[tuple[Path, str, str]]]:
    """Return the outputs folder, and each folder of owners with its track and mode."""
    if is_folder(root / OUTPUTS_FOLDER) and not walk.leads_out(root / OUTPUTS_FOLDER):
        root = root / OUTPUTS_FOLDER
    names = {folder.name for folder in walk.folders(root, quiet=True)}
    if names & set(TRACKS):
        tracks = list(walk.expected(root, TRACKS, "track"))
        return root, [start for track in tracks for start in _modes(track, track.name, walk)]
    absolute = Path(os.path.abspath(root))  # noqa: PTH100 - "." and ".." have no name; links keep their name
    if absolute.name in TRACKS and names & set(MODES):
        return absolute.parent, _modes(root, absolute.name, walk)
    if absolute.name in MODES and (parent := absolute.resolve().parent).name in TRACKS:
        return parent.parent, [(root, parent.name, absolute.name)]
    if names & set(MODES):
        return None, _modes(root, "", walk)
    of_run = (root / JOURNAL_FILE).is_file() or (root / RUN_CONFIG_FILE).is_file()
    if (absolute.name == OUTPUTS_FOLDER and not names) or of_run:
        return root, []  # a run without inference, one that has not come to it, or a part of a run
    if any(_HASH8.fullmatch(path.name) for path in walk.third_level(root, quiet=True)):
        return None, [(root, "", "")]
    raise ConfigError(
        f"{printable(str(root), 300)}: contains no trials; expected a run's folder, or outputs in the "
        "published layout (outputs/<track>/<mode>/<owner>/<repo>/<hash8>/<agent>)"
    )


def _modes(folder: Path, track: str, walk: _Walk) -> list[tuple[Path, str, str]]:
    return [(mode, track, mode.name) for mode in walk.expected(folder, MODES, "mode")]


class _Walk:
    """A walk below one root that collects the problems it finds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.real = os.path.realpath(root)
        self.problems: list[ReadProblem] = []

    def label(self, path: Path) -> str:
        return printable(os.path.relpath(path, self.root), 300)

    def problem(self, path: Path, kind: ProblemKind, text: str) -> None:
        self.problems.append(ReadProblem(kind, self.label(path), text))

    def leads_out(self, path: Path) -> bool:
        outside = os.path.commonpath((os.path.realpath(path), self.real)) != self.real
        if outside:
            text = "is a link out of the folder that is read; it is not followed"
            self.problem(path, ProblemKind.LINK, text)
        return outside

    def folders(self, path: Path, *, quiet: bool = False) -> list[Path]:
        """Return the folders in ``path``, sorted; links to folders are not included."""
        try:
            with os.scandir(path) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not quiet:
                self.problem(path, ProblemKind.UNREADABLE, f"cannot be read: {error.strerror}")
            return []
        chosen = []
        for entry in found:
            if _IGNORED.match(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                chosen.append(Path(entry.path))
            elif not quiet and entry.is_symlink() and is_folder(Path(entry.path)):
                self.problem(Path(entry.path), ProblemKind.LINK, "is a link to a folder; it is not followed")
        return chosen

    def expected(self, path: Path, names: tuple[str, ...], what: str) -> Iterator[Path]:
        """Yield the folders in ``path`` with one of ``names``; report the others."""
        for folder in self.folders(path):
            if folder.name in names:
                yield folder
            else:
                self.problem(folder, ProblemKind.LAYOUT, f"is not a {what} ({', '.join(names)}); not read")

    def third_level(self, path: Path, *, quiet: bool = False) -> Iterator[Path]:
        for owner in self.folders(path, quiet=quiet):
            for repo in self.folders(owner, quiet=quiet):
                yield from self.folders(repo, quiet=quiet)

    def instances(self, folder: Path, track: str, mode: str) -> Iterator[TrialFolder]:
        for path in self.third_level(folder):
            owner, repo, hash8 = path.parts[-3:]
            if _HASH8.fullmatch(hash8) and is_path_name(owner) and is_path_name(repo):
                template = TrialFolder(path, "", track, mode, owner, repo, hash8, "", 1)
                for agent in self.folders(path):
                    yield from self._trials_of_agent(agent, agent.name, template, 1)
            else:
                text = "is not <owner>/<repo>/<eight digits of the base commit>; not read"
                self.problem(path, ProblemKind.LAYOUT, text)

    def _trials_of_agent(
        self, folder: Path, name: str, template: TrialFolder, depth: int
    ) -> Iterator[TrialFolder]:
        try:
            names = {entry.name for entry in os.scandir(folder)}
        except OSError as error:
            self.problem(folder, ProblemKind.UNREADABLE, f"cannot be read: {error.strerror}")
            return
        inner = [path for path in self.folders(folder, quiet=True) if path.name not in _TRIAL_ENTRIES]
        attempts = {number: path for path in inner if (number := parse_attempt(path.name))}
        if names & _TRIAL_ENTRIES or not (inner or depth > 1):
            yield self._trial(folder, name, template, 1)
        elif not attempts and inner and depth < _MAX_AGENT_DEPTH:
            text = f"an agent's id with a slash: the folders in {printable(name)} are read as agents"
            self.problem(folder, ProblemKind.NAME, text)
            for path in inner:
                yield from self._trials_of_agent(path, f"{name}/{path.name}", template, depth + 1)
        elif not attempts:
            self.problem(folder, ProblemKind.LAYOUT, "contains no files of a trial; not read")
        for attempt in sorted(attempts):
            yield self._trial(attempts[attempt], name, template, attempt)

    def _trial(self, folder: Path, agent: str, template: TrialFolder, attempt: int) -> TrialFolder:
        return replace(template, folder=folder, label=self.label(folder), agent=agent, attempt=attempt)

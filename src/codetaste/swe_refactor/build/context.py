"""What the jobs of a construction share, and the parameters of these jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.java.jdt.service import JdtService
    from codetaste.mining.clones.clone import Clone
    from codetaste.refactorings.service import RefactoringService
    from codetaste.source.repository import Repository
    from codetaste.swe_refactor.build.commits import HistoryCommit
    from codetaste.swe_refactor.config import BuildConfig
    from codetaste.swe_refactor.verify.settings import VerifyContext


@dataclass(frozen=True, slots=True)
class Project:
    """A Java project: its clone, and the commits of the config, the newest first."""

    clone: Clone
    repository: Repository
    commits: tuple[HistoryCommit, ...]

    @property
    def name(self) -> str:
        """``OWNER/REPO``."""
        return self.clone.repository


@dataclass(frozen=True, slots=True)
class BuildContext:
    """What all jobs share.

    Attributes:
        config: the section.
        projects: by name.
        miner: RefactoringMiner.
        jdt: Eclipse JDT.
        verify: what verifications of a project share, by its name; empty if candidates are not verified.
        unverified: why they are not; "" if they are.
        scratch: folder for source trees; used by this process alone.
        sandbox_memory: of one verification, bytes.
    """

    config: BuildConfig
    projects: Mapping[str, Project]
    miner: RefactoringService
    jdt: JdtService
    verify: Mapping[str, VerifyContext]
    unverified: str
    scratch: Path
    sandbox_memory: int


@dataclass(frozen=True, slots=True)
class CommitTask:
    """A commit of a project, as the parameters of jobs."""

    project: str
    commit: str

    @property
    def detect_key(self) -> str:
        """The key of the job that detects its refactorings."""
        return f"detect/{self.project}/{self.commit}"

    @property
    def enrich_key(self) -> str:
        """The key of the job that makes instances of the pure ones."""
        return f"enrich/{self.project}/{self.commit}"

    @property
    def plan_key(self) -> str:
        """The key of the job that adds a verification of each instance."""
        return f"candidates/{self.project}/{self.commit}"

    def verify_key(self, unique_id: str) -> str:
        """Return the key of the job that verifies an instance."""
        return f"verify/{self.project}/{unique_id}"


@dataclass(frozen=True, slots=True)
class CandidateTask:
    """An instance that is to be verified; ``index`` is its place among the candidates of its commit."""

    task: CommitTask
    index: int
    unique_id: str

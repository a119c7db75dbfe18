"""One task of a benchmark: a human refactoring, named by its base and golden commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Instance:
    """A row of ``instances.csv``. ``commit_hash`` is the base R, ``golden_commit_hash`` R∘X*."""

    owner: str
    repo: str
    commit_hash: str
    golden_commit_hash: str
    combined_score: float | None = None
    category: str = ""
    language: str = ""
    extra: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Columns beyond the published ones, ``origin`` among them."""

    @property
    def hash8(self) -> str:
        """The first eight digits of the base commit."""
        return self.commit_hash[:8]

    @property
    def id(self) -> str:
        """``owner__repo-hash8`` in lower case."""
        return f"{self.owner}__{self.repo}-{self.hash8}".lower()

    @property
    def path(self) -> str:
        """``owner/repo/hash8``: the folder of this instance in the published layout."""
        return f"{self.owner}/{self.repo}/{self.hash8}"

    @property
    def origin(self) -> str:
        """The ``origin`` column: where the trees come from, "" for the usual clone."""
        return self.extra.get("origin", "")

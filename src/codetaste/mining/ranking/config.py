"""The config of stage 1."""

from __future__ import annotations

from pydantic import Field

from codetaste.core.section import FilePath, Section


class RankingConfig(Section):
    """Stage 1: filters and order of all commits (CodeTaste A.1)."""

    min_stars: int = Field(default=90, ge=0)
    """Fewest stars of a repository; one whose stars are unknown passes, and is counted."""

    min_files: int = Field(default=45, ge=0)
    """Fewest changed files of a commit; one whose files are unknown passes, and is counted."""

    keep: int = Field(default=5000, ge=1, le=1_000_000)
    """How many commits are kept, the best first."""

    stars: FilePath | None = None
    """CSV file of stars: a column with `OWNER/REPO` (`repository`, `full_name`, `name_with_owner`, `repo`,
    `repo_name` or `name`) and one with numbers (`stars`, `stargazers`, `stargazers_count`, `stargazer_count`
    or `watchers`). What it says of a repository counts more than what the source says."""

    memory_mb: int = Field(default=600, ge=200)
    """How much memory the query engine may use, in megabytes; above it, disk is used."""

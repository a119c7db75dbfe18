"""The section ``[mine]``: where commits come from, and how many each stage of the funnel takes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from codetaste.core.section import FilePath, Section
from codetaste.mining.archive.config import ArchiveConfig
from codetaste.mining.github.config import GitHubConfig
from codetaste.mining.prefilter.filters import KEEP, MIN_CODE_EDITS
from codetaste.mining.ranking.bigquery.config import BigQueryConfig
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.scoring.config import ScoringConfig

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$"


def _with_zone(value: datetime | None) -> datetime | None:
    return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


class ReleaseConfig(Section):
    """One release of a package."""

    version: str
    """As the package index spells it."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the source distribution."""
    message: str = Field(min_length=1)
    """The message of the commit that the release becomes."""


class PackageConfig(Section):
    """Releases of a Python package that become the commits of a repository."""

    package: str = Field(pattern=NAME_PATTERN)
    """Its name in the package index."""
    releases: tuple[ReleaseConfig, ...] = Field(min_length=2)
    """The releases, the oldest first."""


class ActivityConfig(Section):
    """Exports of the GitHub Activity Data: Parquet files, or JSON files with an object a line."""

    commits: tuple[FilePath, ...] = Field(min_length=1)
    """Files of the table `commits`."""
    licences: tuple[FilePath, ...] = ()
    """Files of the table `licenses`."""


class MiningRunConfig(Section):
    """One pass of the funnel over sources of its own (CodeTaste A.1 has four)."""

    name: str = Field(pattern=NAME_PATTERN)
    """The folder of its files below `mining/` of the run."""
    clones: tuple[FilePath, ...] = ()
    """Local clones, or folders of clones OWNER/REPO: all their commits and merges."""
    pairs: tuple[FilePath, ...] = ()
    """CSV files of commits: repository, base and golden commit."""
    archive: ArchiveConfig | None = None
    """Hour files of GH Archive."""
    activity: ActivityConfig | None = None
    """Exports of the GitHub Activity Data. They are ranked as they are, so no other source may be beside
    them."""
    bigquery: BigQueryConfig | None = None
    """Tables in Google's BigQuery. The price is shown and asked for before the query is run; no other source
    may be beside them."""
    packages: tuple[PackageConfig, ...] = ()
    """Releases of Python packages."""

    @model_validator(mode="after")
    def _check_sources(self) -> MiningRunConfig:
        others = bool(self.clones or self.pairs or self.archive or self.packages)
        alone = [name for name in ("activity", "bigquery") if getattr(self, name) is not None]
        if not (others or alone):
            raise ValueError("it has no source: clones, pairs, archive, activity, bigquery or packages")
        if len(alone) + others > 1:
            raise ValueError(f"{alone[0]} has to be the only source of its run")
        return self


class MineConfig(Section):
    """`[mine]`: commits are found, filtered and scored; the best become the instances of a benchmark."""

    runs: tuple[MiningRunConfig, ...] = Field(min_length=1)
    """Passes of the funnel; each gives its best commits."""
    scoring: ScoringConfig
    """Stage 3: scores of a model, and how many commits are kept."""
    ranking: RankingConfig = RankingConfig()
    """Stage 1: stars, files and keywords, and how many commits are kept."""
    keywords: FilePath | None = None
    """A TOML file of keyword sets in place of ours."""
    code_edits: int = Field(default=MIN_CODE_EDITS, ge=0)
    """Stage 2: the fewest edited lines in files of programming languages."""
    prefiltered: int = Field(default=KEEP, ge=1)
    """Stage 2: how many commits are kept."""
    later_than: Annotated[datetime | None, AfterValidator(_with_zone)] = None
    """Only commits after this time, such as the end of a model's training data."""
    repos: FilePath | None = None
    """A folder of OWNER/REPO clones in which commits of other sources are looked for."""
    fetch: bool = True
    """Whether commits that no clone has are fetched."""
    github: GitHubConfig = GitHubConfig()
    """GitHub's API, which completes pull requests whose texts an archive lacks."""
    instances: int | None = Field(default=None, ge=1)
    """How many instances are wanted; a candidate that fails a later step is replaced by the next. By default
    all candidates are taken."""

    test_share: float | None = Field(default=None, ge=0, le=1)
    """With it the column `split` of the instances has "test" for this share of the repositories, and "train"
    for the others. A repository is always in the same part."""
    check: bool = True
    """Whether an instance whose rules do not tell the golden patch from an empty one leaves the run."""

    @model_validator(mode="after")
    def _check_names(self) -> MineConfig:
        names = [each.name for each in self.runs]
        if len(set(names)) < len(names):
            raise ValueError("two of [[mine.runs]] have the same name")
        return self

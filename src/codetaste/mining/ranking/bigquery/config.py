"""The config of stage 1 in BigQuery."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from codetaste.core.section import Section

_TableName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_$-]+){2}$")]


class BigQueryConfig(Section):
    """Tables that BigQuery searches, and who pays. Nothing is run before its price was accepted."""

    project: str = Field(pattern=r"^[a-z0-9.:-]{4,60}$")
    """The Google Cloud project that pays for the query."""

    events: _TableName | None = None
    """Table of events, such as `githubarchive.year.2023`; without it, the GitHub Activity Data are used."""

    commits: _TableName = "bigquery-public-data.github_repos.commits"
    """The table of commits of the GitHub Activity Data."""

    licences: _TableName = "bigquery-public-data.github_repos.licenses"
    """The table of licences of the GitHub Activity Data."""

    stars: _TableName | None = None
    """Table of stars with the columns `repository` and `stars`; without it stars are those of the events."""

    token_env: str = Field(default="CODETASTE_BIGQUERY_TOKEN", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The environment variable that has the access token; `gcloud auth print-access-token` prints one."""

    location: str | None = None
    """Where the tables are, such as `US`; by default BigQuery finds out."""

    max_usd: Decimal = Field(default=Decimal(50), ge=0)
    """A query with a higher price is not even offered."""

    address: str = Field(default="https://bigquery.googleapis.com", pattern=r"^https?://")
    """The address of the service."""

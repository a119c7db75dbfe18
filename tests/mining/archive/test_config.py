"""The sections of archives and BigQuery take what their pages show, and refuse the rest with a reason."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from codetaste.mining.archive.config import ArchiveConfig
from codetaste.mining.ranking.bigquery.config import BigQueryConfig
from codetaste.mining.ranking.config import RankingConfig


def test_hours_are_whole_hours_of_utc() -> None:
    config = ArchiveConfig.model_validate(
        {"hours": ["archive"], "first_hour": "2023-04-05T06:30:00+02:00", "last_hour": datetime(2023, 4, 6)}  # noqa: DTZ001
    )
    assert config.first_hour == datetime(2023, 4, 5, 4, tzinfo=UTC)
    assert config.last_hour == datetime(2023, 4, 6, tzinfo=UTC)


@pytest.mark.parametrize("values", [{"hours": []}, {"hours": ["a"], "processes": 0}, {"hours": ["a\0"]}, {}])
def test_useless_archives_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ArchiveConfig.model_validate(values)


@pytest.mark.parametrize("name", ["year.2023", "a.b.c.d", "a.b.c; DROP TABLE x", "a.`b`.c", ""])
def test_names_of_tables_have_three_parts(name: str) -> None:
    assert BigQueryConfig(project="made-project", events="githubarchive.year.2023").events
    with pytest.raises(ValidationError):
        BigQueryConfig(project="made-project", events=name)


def test_bounds_are_those_of_the_paper() -> None:
    config = RankingConfig()
    assert (config.min_stars, config.min_files, config.keep) == (90, 45, 5000)

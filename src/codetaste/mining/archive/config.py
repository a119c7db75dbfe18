"""The config of GH Archive as a source."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from codetaste.core.section import FilePath, PathText, Section


def _check_hour(value: datetime | None) -> datetime | None:
    if value is None:
        return None
    moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


_Hour = Annotated[datetime | None, AfterValidator(_check_hour)]


class ArchiveConfig(Section):
    """Hour files of GH Archive as a source of merged pull requests."""

    hours: tuple[PathText, ...] = Field(min_length=1)
    """Hour files (`2023-04-05-6.json.gz`), folders of them, and patterns such as `archive/2023-*.json.gz`."""

    first_hour: _Hour = None
    """Start of the time that the hours should cover, UTC; by default the first hour that there is."""

    last_hour: _Hour = None
    """End of the time that the hours should cover, UTC, included; by default the last hour that there is."""

    folder: FilePath | None = None
    """Folder for what was read of each hour, which later runs use again; by default the folder of the run."""

    processes: Annotated[int, Field(ge=1, le=256)] | None = None
    """How many hours are read at once; by default as many as there are cores."""

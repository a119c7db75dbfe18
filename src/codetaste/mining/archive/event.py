"""One event of a pull request, in the shapes of all three schema eras, as a record.

Before 2015 the actor is a text and the repository stands in ``repository``; from 2015 on both are objects,
the latter in ``repo``; from 2025-10-07 on the pull request has only its number and branches. Which era a
line belongs to is read from the line, not from its date.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from codetaste.benchmark.instances_csv import is_path_name
from codetaste.core.text import replace_surrogates
from codetaste.mining.commit import CommitRecord, PullRequest

_TYPE = "PullRequestEvent"
_REPOSITORY = re.compile(r"([A-Za-z0-9_.-]{1,100})/([A-Za-z0-9_.-]{1,100})")
_HASH = r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$"
_OLD_DATE = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d [+-]\d{4}")
"""As in ``2012/03/10 23:51:24 -0800``, the first form of dates in the archive."""


class UnusableEvent(ValueError):
    """A line is no event that a record can be made of; its text is the reason."""


class ArchivedChange(NamedTuple):
    """A merged pull request.

    Attributes:
        record: without ``golden`` if the event lacks it.
        trimmed: the event has no title, text and sizes.
    """

    record: CommitRecord
    trimmed: bool


def _parse_date(text: Any) -> datetime | None:  # noqa: ANN401 - JSON data
    """Return the time that ``text`` states; None if it states none."""
    if not isinstance(text, str):
        return None
    try:
        if _OLD_DATE.fullmatch(text):
            text = text.replace("/", "-").replace(" ", "T", 1).replace(" ", "")
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_Text = Annotated[str | None, BeforeValidator(replace_surrogates)]
_Count = Annotated[int, Field(strict=True, ge=0, le=2**53)]
_Moment = Annotated[datetime | None, BeforeValidator(_parse_date)]


class _Node(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Licence(_Node):
    spdx_id: _Text = Field(default=None, max_length=100)


class _BaseRepository(_Node):
    full_name: _Text = None
    stargazers_count: _Count | None = None
    watchers: _Count | None = None
    license: _Licence | None = None

    @property
    def stars(self) -> int | None:
        return self.watchers if self.stargazers_count is None else self.stargazers_count


class _Base(_Node):
    repo: _BaseRepository | None = None


class _PullRequest(_Node):
    number: _Count | None = None
    title: _Text = None
    body: _Text = None
    merged: Annotated[bool, Field(strict=True)] | None = None
    merged_at: _Moment = None
    merge_commit_sha: Annotated[str, Field(pattern=_HASH)] | None = None
    changed_files: _Count | None = None
    additions: _Count | None = None
    deletions: _Count | None = None
    base: _Base | None = None


class _Payload(_Node):
    action: str
    number: _Count | None = None
    pull_request: _PullRequest


class _Repository(_Node):
    """``repo`` from 2015 on (``name`` has the owner), or ``repository`` before."""

    name: _Text = None
    owner: _Text = None
    stargazers: _Count | None = None
    watchers: _Count | None = None

    @property
    def full_name(self) -> str:
        name = self.name or ""
        return name if "/" in name else f"{self.owner}/{name}"


class _Event(_Node):
    type: str
    created_at: _Moment = None
    repo: _Repository | None = None
    repository: _Repository | None = None
    payload: _Payload

    @property
    def is_merge(self) -> bool:
        """Whether its flag says so, or else its date or its action; trimmed events have only that."""
        change = self.payload.pull_request
        if change.merged is not None:
            return change.merged
        return change.merged_at is not None or self.payload.action == "merged"


def parse_event(line: bytes, source: str) -> ArchivedChange | None:
    """Return the merged pull request that a line tells of; None if it tells of something else.

    Args:
        line: what is no valid UTF-8 in it becomes U+FFFD.
        source: the hour, for the record.

    Raises:
        UnusableEvent: the line is not JSON, or not what an event looks like.
    """
    try:
        try:
            event = _Event.model_validate_json(line)
        except ValidationError as error:
            if error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
                raise
            event = _Event.model_validate(_decode(line))
    except ValidationError as error:
        raise UnusableEvent(_reason(error)) from None
    return _change(event, source) if event.type == _TYPE and event.is_merge else None


def _decode(line: bytes) -> Any:  # noqa: ANN401 - JSON data
    """Return the JSON data of a line with broken texts, which the fast parser refuses."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        raise UnusableEvent("not valid JSON") from None
    except RecursionError:
        raise UnusableEvent("nested too deeply") from None


def _reason(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}" if place else "not an event"


def _change(event: _Event, source: str) -> ArchivedChange:
    change = event.payload.pull_request
    base = change.base.repo if change.base and change.base.repo else _BaseRepository()
    frame = event.repo or event.repository or _Repository()
    repository = base.full_name or frame.full_name
    number = change.number or event.payload.number
    named = _REPOSITORY.fullmatch(repository)
    if named is None or not all(map(is_path_name, named.groups())):
        raise UnusableEvent("no name of a repository")
    if number is None:
        raise UnusableEvent("a pull request without a number")
    stars = next((each for each in (base.stars, frame.stargazers, frame.watchers) if each is not None), None)
    record = CommitRecord(
        repository=repository,
        golden=change.merge_commit_sha or "",
        pull_request=PullRequest(number, change.title or "", change.body or ""),
        stars=stars,
        files=change.changed_files,
        additions=change.additions,
        deletions=change.deletions,
        date=change.merged_at or event.created_at,
        licence=base.license.spdx_id if base.license else None,
        source=source,
    )
    return ArchivedChange(record, trimmed=change.title is None)

"""The query of stage 1: written once, in DuckDB's dialect, over the relation of commits of a source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.mining.keywords.count import MIN_RATIO
from codetaste.mining.keywords.message import MERGE_LINE, SQUASH_LIST

if TYPE_CHECKING:
    from codetaste.mining.keywords.sets import KeywordSets
    from codetaste.mining.ranking.config import RankingConfig

_SQL_FOLDER = Path(__file__).parent / "sql"

_NO_STARS = "SELECT CAST(NULL AS VARCHAR) AS repository, CAST(NULL AS BIGINT) AS stars LIMIT 0"
_STARS = (
    "SELECT lower(repository) AS repository, max(stars) AS stars FROM star_rows GROUP BY lower(repository)"
)


class Relation(StrEnum):
    """Where the commits come from; the value is the name of the SQL file that makes the relation of them."""

    RECORDS = "records"
    PULL_REQUEST_EVENTS = "pull_request_events"
    ACTIVITY_COMMITS = "activity_commits"


@dataclass(frozen=True, slots=True)
class Stage1Query:
    """The query and the values of its parameters, which are written ``$name`` in it."""

    text: str
    parameters: dict[str, int | str]


def stage1_query(
    relation: Relation, sets: KeywordSets, config: RankingConfig, *, star_rows: bool
) -> Stage1Query:
    """Return the query of stage 1 in DuckDB's dialect.

    Args:
        relation: the source. Its tables are ``records``, ``archive_events``, or ``activity_commits`` and
            ``activity_licenses``.
        sets: the keyword sets.
        config: the bounds.
        star_rows: whether there is a table ``star_rows`` with ``repository`` and ``stars``.
    """
    text = _with_sources(relation, "stage1", star_rows=star_rows)
    parameters: dict[str, int | str] = {
        "strong_plus": sets.strong_plus.pattern,
        "weak_plus": sets.weak_plus.pattern,
        "strong_minus": sets.strong_minus.pattern,
        "weak_minus": sets.weak_minus.pattern,
        "merge_line": MERGE_LINE,
        "squash_list": SQUASH_LIST,
        "min_stars": config.min_stars,
        "min_files": config.min_files,
        "min_ratio": MIN_RATIO,
        "keep": config.keep,
    }
    return Stage1Query(text, parameters)


def incomplete_query(config: RankingConfig, *, star_rows: bool) -> Stage1Query:
    """Return the query for the records that have no hash yet; its table is ``records``."""
    text = _with_sources(Relation.RECORDS, "incomplete", star_rows=star_rows)
    return Stage1Query(text, {"min_stars": config.min_stars})


def _with_sources(relation: Relation, name: str, *, star_rows: bool) -> str:
    stars = _STARS if star_rows else _NO_STARS
    return f"WITH commits AS (\n{_read_sql(relation)}),\nstar_table AS ({stars}),\n{_read_sql(name)}"


@cache
def _read_sql(name: str) -> str:
    return (_SQL_FOLDER / f"{name}.sql").read_text("utf-8")

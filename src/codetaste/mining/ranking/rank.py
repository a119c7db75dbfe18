"""Stage 1 over files: of records, which every source can write, or exports of the GitHub Activity Data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.mining.ranking.engine import literal, run_in_duckdb, select_json, select_parquet
from codetaste.mining.ranking.query import Relation, incomplete_query, stage1_query
from codetaste.mining.ranking.record_file import COLUMNS
from codetaste.mining.ranking.result import ranking_of
from codetaste.mining.ranking.stars import load_stars

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from codetaste.mining.keywords.sets import KeywordSets
    from codetaste.mining.ranking.config import RankingConfig
    from codetaste.mining.ranking.result import Ranking

_ACTIVITY_COLUMNS = {
    "commit": "VARCHAR",
    "message": "VARCHAR",
    "repo_name": "VARCHAR[]",
    "difference": "STRUCT(new_path VARCHAR)[]",
    "committer": "STRUCT(time_sec BIGINT)",
}
_LICENCE_COLUMNS = {"repo_name": "VARCHAR", "license": "VARCHAR"}


async def rank_record_files(
    files: Sequence[Path], sets: KeywordSets, config: RankingConfig, folder: Path
) -> Ranking:
    """Return stage 1 over files of records.

    Args:
        files: what ``write_records`` or ``extract_hours`` wrote.
        sets: the keyword sets.
        config: the bounds.
        folder: where the query engine keeps what does not fit into its memory.

    Raises:
        ConfigError: DuckDB is not installed, or the table of stars cannot be used.
        SourceError: a file cannot be read.
    """
    views = {"records": select_json(files, COLUMNS)}
    return await run_in_duckdb(
        lambda connection: _rank(connection, Relation.RECORDS, views, sets, config), config, folder
    )


async def rank_activity_data(
    commits: Sequence[Path],
    licences: Sequence[Path],
    sets: KeywordSets,
    config: RankingConfig,
    folder: Path,
) -> Ranking:
    """Return stage 1 over exports of the tables ``commits`` and ``licenses`` of the GitHub Activity Data.

    Args:
        commits: Parquet files, or JSON files with an object a line, gzipped or not.
        licences: the same of the other table; there may be none.
        sets: the keyword sets.
        config: the bounds.
        folder: where the query engine keeps what does not fit into its memory.

    Raises:
        ConfigError: DuckDB is not installed, or the table of stars cannot be used.
        SourceError: a file cannot be read or lacks a column.
    """
    views = {
        "activity_commits": _select_export(commits, _ACTIVITY_COLUMNS),
        "activity_licenses": _select_export(licences, _LICENCE_COLUMNS),
    }
    return await run_in_duckdb(
        lambda connection: _rank(connection, Relation.ACTIVITY_COMMITS, views, sets, config), config, folder
    )


async def write_incomplete_records(
    files: Sequence[Path], target: Path, config: RankingConfig, folder: Path
) -> int:
    """Write the records without a hash to ``target``, to be completed elsewhere; return their number.

    Repositories known to have too few stars are left out, those with most stars come first, and a pull
    request is there once.

    Args:
        files: files of records.
        target: a file of records that is made.
        config: the bounds.
        folder: where the query engine keeps what does not fit into its memory.

    Raises:
        ConfigError: DuckDB is not installed, or the table of stars cannot be used.
        SourceError: a file cannot be read or written.
    """

    def write(connection: DuckDBPyConnection) -> int:
        _open_views(connection, {"records": select_json(files, COLUMNS)}, config)
        query = incomplete_query(config, star_rows=config.stars is not None)
        copied = connection.execute(
            f"COPY ({query.text}) TO {literal(str(target))} (FORMAT json)", query.parameters
        ).fetchone()
        return int(copied[0]) if copied else 0

    return await run_in_duckdb(write, config, folder)


def _rank(
    connection: DuckDBPyConnection,
    relation: Relation,
    views: Mapping[str, str],
    sets: KeywordSets,
    config: RankingConfig,
) -> Ranking:
    _open_views(connection, views, config)
    query = stage1_query(relation, sets, config, star_rows=config.stars is not None)
    found = connection.execute(query.text, query.parameters)
    names = [column[0] for column in found.description or ()]
    return ranking_of(dict(zip(names, row, strict=True)) for row in found.fetchall())


def _open_views(connection: DuckDBPyConnection, views: Mapping[str, str], config: RankingConfig) -> None:
    if config.stars is not None:
        load_stars(connection, config.stars)
    for name, select in views.items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {select}")


def _select_export(files: Sequence[Path], columns: Mapping[str, str]) -> str:
    if files and files[0].suffix == ".parquet":
        return select_parquet(files, columns)
    return select_json(files, columns)

"""Stage 1 over files, run by DuckDB in this process: bounded memory, both cores, and disk above the bound."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import ConfigError, SourceError
from codetaste.mining.ranking.query import Relation, stage1_query
from codetaste.mining.ranking.record_file import COLUMNS
from codetaste.mining.ranking.result import ranking_of
from codetaste.mining.ranking.stars import load_stars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from codetaste.mining.ranking.config import RankingConfig
    from codetaste.mining.ranking.query import KeywordPatterns
    from codetaste.mining.ranking.result import Ranking

_MAX_LINE_BYTES = 64 * 1024**2
_ACTIVITY_COLUMNS = {
    "commit": "VARCHAR",
    "message": "VARCHAR",
    "repo_name": "VARCHAR[]",
    "difference": "STRUCT(new_path VARCHAR)[]",
    "committer": "STRUCT(time_sec BIGINT)",
}
_LICENCE_COLUMNS = {"repo_name": "VARCHAR", "license": "VARCHAR"}


async def rank_record_files(
    files: Sequence[Path], patterns: KeywordPatterns, config: RankingConfig, folder: Path
) -> Ranking:
    """Return stage 1 over files of records.

    Args:
        files: what ``write_records`` or ``extract_hours`` wrote.
        patterns: the keyword sets.
        config: the bounds.
        folder: where the query engine keeps what does not fit into its memory.

    Raises:
        ConfigError: DuckDB is not installed, or the table of stars cannot be used.
        SourceError: a file cannot be read.
    """
    views = {"records": _read_json(files, COLUMNS)}
    return await _rank(Relation.RECORDS, views, patterns, config, folder)


async def rank_activity_data(
    commits: Sequence[Path],
    licences: Sequence[Path],
    patterns: KeywordPatterns,
    config: RankingConfig,
    folder: Path,
) -> Ranking:
    """Return stage 1 over exports of the tables ``commits`` and ``licenses`` of the GitHub Activity Data.

    Args:
        commits: Parquet files, or JSON files with an object a line, gzipped or not.
        licences: the same of the other table; there may be none.
        patterns: the keyword sets.
        config: the bounds.
        folder: where the query engine keeps what does not fit into its memory.

    Raises:
        ConfigError: DuckDB is not installed, or the table of stars cannot be used.
        SourceError: a file cannot be read or lacks a column.
    """
    views = {
        "activity_commits": _read_export(commits, _ACTIVITY_COLUMNS),
        "activity_licenses": _read_export(licences, _LICENCE_COLUMNS),
    }
    return await _rank(Relation.ACTIVITY_COMMITS, views, patterns, config, folder)


async def _rank(
    relation: Relation,
    views: dict[str, str],
    patterns: KeywordPatterns,
    config: RankingConfig,
    folder: Path,
) -> Ranking:
    query = stage1_query(relation, patterns, config, star_rows=config.stars is not None)
    connections: list[DuckDBPyConnection] = []

    def run() -> Ranking:
        import duckdb  # noqa: PLC0415 - checked below

        with _connect(config, folder) as connection:
            connections.append(connection)
            if config.stars is not None:
                load_stars(connection, config.stars)
            try:
                for name, select in views.items():
                    connection.execute(f"CREATE TEMP VIEW {name} AS {select}")
                found = connection.execute(query.text, query.parameters)
                names = [column[0] for column in found.description or ()]
                return ranking_of(dict(zip(names, row, strict=True)) for row in found.fetchall())
            except duckdb.Error as error:
                raise SourceError(f"stage 1 failed: {str(error).splitlines()[0]}") from error

    try:
        import duckdb  # noqa: F401, PLC0415 - of the extra "mine"
    except ImportError:
        raise ConfigError("mining needs DuckDB: install codetaste[mine]") from None
    try:
        return await to_thread.run_sync(run, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        for connection in connections:
            connection.interrupt()
        raise


@contextmanager
def _connect(config: RankingConfig, folder: Path) -> Iterator[DuckDBPyConnection]:
    """Open an empty database in memory, bounded as the config says; what does not fit goes to ``folder``."""
    import duckdb  # noqa: PLC0415 - of the extra "mine"

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".duckdb-", dir=folder) as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{config.memory_mb}MB",
            "temp_directory": spill,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection


def _read_export(files: Sequence[Path], columns: dict[str, str]) -> str:
    if not files:
        return (
            "SELECT "
            + ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns.items())
            + " LIMIT 0"
        )
    if files[0].suffix == ".parquet":
        return f"SELECT {', '.join(columns)} FROM read_parquet({_file_list(files)})"  # noqa: S608
    return _read_json(files, columns)


def _read_json(files: Iterable[Path], columns: dict[str, str]) -> str:
    types = ", ".join(f"{_literal(name)}: {_literal(kind)}" for name, kind in columns.items())
    return (
        f"SELECT * FROM read_json({_file_list(files)}, format = 'newline_delimited', columns = {{{types}}}, "  # noqa: S608
        f"maximum_object_size = {_MAX_LINE_BYTES})"
    )


def _file_list(files: Iterable[Path]) -> str:
    return f"[{', '.join(_literal(_escape_pattern(file)) for file in files)}]"


def _escape_pattern(file: Path) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(file.absolute()))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

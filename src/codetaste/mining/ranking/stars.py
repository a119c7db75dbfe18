"""The table of stars that a user names: a CSV file with a repository and its stars in each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.text import quoted
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

_REPOSITORY = ("repository", "full_name", "name_with_owner", "namewithowner", "repo", "repo_name", "name")
_STARS = ("stars", "stargazers", "stargazers_count", "stargazer_count", "stargazercount", "watchers")
_READ = "read_csv(?, all_varchar = true, header = true, ignore_errors = true, strict_mode = false)"


def load_stars(connection: DuckDBPyConnection, path: Path) -> int:
    """Make the table ``star_rows`` of the CSV file ``path``; return how many rows of it cannot be used.

    Raises:
        ConfigError: it cannot be read, or lacks one of the columns.
    """
    import duckdb  # noqa: PLC0415 - of the extra "mine"

    try:
        names = connection.execute(f"SELECT * FROM {_READ} LIMIT 0", [str(path)]).description or []  # noqa: S608
        columns = {name[0].strip().lower(): name[0] for name in names}
        repository = next((columns[name] for name in _REPOSITORY if name in columns), None)
        stars = next((columns[name] for name in _STARS if name in columns), None)
        if repository is None or stars is None:
            raise ConfigError(
                f"{path}: needs a column of names (such as repository) and one of numbers (such as stars); "
                f"it has {', '.join(quoted(name[0]) for name in names) or 'none'}"
            )
        connection.execute(
            "CREATE TEMP TABLE star_rows AS SELECT "  # noqa: S608
            f"regexp_replace(trim({_column(repository)}), '^https://github\\.com/', '') AS repository, "
            f"TRY_CAST({_column(stars)} AS BIGINT) AS stars FROM {_READ}",
            [str(path)],
        )
        usable = "stars >= 0 AND repository LIKE '%_/_%'"
        row = connection.execute(
            f"SELECT count(*) FROM star_rows WHERE NOT coalesce({usable}, FALSE)"  # noqa: S608
        ).fetchone()
        connection.execute(f"DELETE FROM star_rows WHERE NOT coalesce({usable}, FALSE)")  # noqa: S608
    except duckdb.Error as error:
        raise ConfigError(f"{path}: no readable CSV file of stars: {str(error).splitlines()[0]}") from None
    return int(row[0]) if row else 0


def _column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

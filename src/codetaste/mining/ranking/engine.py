"""DuckDB in this process: bounded memory, all cores, disk above the bound, and work that can be cancelled."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import to_thread

from codetaste.core.files import make_locked_folder, remove_abandoned, remove_tree, storage_error
from codetaste.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from codetaste.mining.ranking.config import RankingConfig

_SPILL = "duckdb-"
_INTERRUPT_S = 0.02
_MAX_LINE_BYTES = 64 * 1024**2
_Result = TypeVar("_Result")


async def run_in_duckdb(
    work: Callable[[DuckDBPyConnection], _Result], config: RankingConfig, folder: Path
) -> _Result:
    """Return the result of ``work``, which gets an empty database in memory and runs in a thread.

    Args:
        work: does the queries.
        config: has the bound of memory.
        folder: where the engine keeps what does not fit into its memory.

    Raises:
        ConfigError: DuckDB is not installed; or ``work`` raises it.
        SourceError: a query failed, such as by a file that cannot be read, or ``folder`` cannot be used.
        StorageFull: no space left in ``folder``.
    """
    try:
        import duckdb  # noqa: PLC0415 - of the extra "mine"
    except ImportError:
        raise ConfigError("mining needs DuckDB: install codetaste[mine]") from None
    connections: list[DuckDBPyConnection] = []
    started, cancelled, ended = threading.Event(), threading.Event(), threading.Event()

    def run() -> _Result:
        started.set()
        try:
            if cancelled.is_set():
                raise SourceError("stage 1 was cancelled before it began")
            with _connect(config, folder, duckdb.connect) as connection:
                connections.append(connection)
                return work(connection)
        except duckdb.Error as error:
            raise SourceError(f"stage 1 failed: {str(error).splitlines()[0]}") from error
        finally:
            ended.set()

    try:
        return await to_thread.run_sync(run, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        cancelled.set()
        with anyio.CancelScope(shield=True):
            while (
                started.is_set() and not ended.is_set()
            ):  # only a query that is under way can be interrupted
                with suppress(duckdb.Error):
                    for connection in connections:
                        connection.interrupt()
                await anyio.sleep(_INTERRUPT_S)
        raise


@contextmanager
def _connect(
    config: RankingConfig, folder: Path, connect: Callable[..., DuckDBPyConnection]
) -> Iterator[DuckDBPyConnection]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder, _SPILL)
        spill, lock = make_locked_folder(folder, _SPILL)
    except OSError as error:
        raise storage_error(error, f"{folder}: cannot be used by stage 1", SourceError) from error
    try:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{config.memory_mb}MB",
            "temp_directory": str(spill),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
        }
        with connect(":memory:", config=settings) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
    finally:
        remove_tree(spill)
        os.close(lock)


def select_json(files: Sequence[Path], columns: Mapping[str, str]) -> str:
    """Return the SQL that reads JSON files, an object a line, gzipped or not; ``columns`` have types."""
    if not files:
        nulls = (f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns.items())
        return f"SELECT {', '.join(nulls)} LIMIT 0"
    types = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items())
    return (
        f"SELECT * FROM read_json({_file_list(files)}, format = 'newline_delimited', "  # noqa: S608
        f"columns = {{{types}}}, maximum_object_size = {_MAX_LINE_BYTES})"
    )


def select_parquet(files: Sequence[Path], columns: Mapping[str, str]) -> str:
    """Return the SQL that reads ``columns`` of Parquet files."""
    return f"SELECT {', '.join(columns)} FROM read_parquet({_file_list(files)})"  # noqa: S608


def literal(text: str) -> str:
    """Return ``text`` as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _file_list(files: Sequence[Path]) -> str:
    return f"[{', '.join(literal(_escape_pattern(file)) for file in files)}]"


def _escape_pattern(file: Path) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(file.absolute()))

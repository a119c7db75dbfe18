"""``limits.json``: limit changes requested during a run; written by a command, watched by the run.

This module knows names and values only; ``run/limits.py`` gives them meaning. Each change stores the
configured value that it replaces and is effective while the config still has that value, so that a change
survives the process but does not override a newer config.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.files import read_text_file, write_atomically
from codetaste.errors import ConfigError, JournalError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from codetaste.orchestration.journal.journal import Json

LIMITS_FILE = "limits.json"
POLL_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True)
class LimitChange:
    """A new value, and the configured value that it replaces."""

    value: Json
    replaces: Json


def read_changes(directory: Path) -> dict[str, LimitChange]:
    """Return the changes by name, empty if there is no file.

    Raises:
        ConfigError: the file cannot be read or was not written by ``write_changes``.
    """
    path = directory / LIMITS_FILE
    try:
        data = json.loads(read_text_file(path))
        return {str(name): LimitChange(each["value"], each["replaces"]) for name, each in data.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path}: not written by `codetaste limit`; `codetaste limit RUN --reset` discards it"
        ) from error


def write_changes(directory: Path, changes: Mapping[str, LimitChange]) -> None:
    """Replace all stored changes with ``changes``; without any the file is removed.

    Raises:
        JournalError: the file cannot be written or removed.
    """
    if not changes:
        try:
            (directory / LIMITS_FILE).unlink(missing_ok=True)
        except OSError as error:
            raise JournalError(f"{directory / LIMITS_FILE}: cannot be removed: {error.strerror}") from error
        return
    data = {name: {"value": each.value, "replaces": each.replaces} for name, each in sorted(changes.items())}
    write_atomically(directory / LIMITS_FILE, json.dumps(data, indent=2) + "\n")


async def watch_changes(
    directory: Path,
    on_change: Callable[[dict[str, LimitChange]], Awaitable[None]],
    warn: Callable[[str], None],
) -> None:
    """Call ``on_change`` with the changes now and after every change of the file, until cancelled.

    An invalid file is ignored and reported once, through ``warn``.
    """
    seen: object = ()
    while True:
        stamp = await to_thread.run_sync(_stamp, directory / LIMITS_FILE)
        if stamp != seen:
            seen = stamp
            try:
                await on_change(await to_thread.run_sync(read_changes, directory))
            except ConfigError as error:
                warn(str(error))
        await anyio.sleep(POLL_INTERVAL_S)


def _stamp(path: Path) -> object:
    """Return a value that changes when the file is replaced or edited; None while there is no file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - one call, twice a second
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size

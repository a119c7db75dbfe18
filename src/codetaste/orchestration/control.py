"""Limits that a person changes while a run is under way: the file that says so, and the process that obeys.

Known here are names and values only; what a name means is for whoever obeys it. Each change remembers the
value it was put in the place of: it holds as long as the config says that, so that it is neither lost with
the process nor laid over a newer config.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.atomic import write_atomically
from codetaste.errors import ConfigError, JournalError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from codetaste.orchestration.journal import Json

NAME = "limits.json"
EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Change:
    """A value, and the configured one that it was put in the place of."""

    value: Json
    instead_of: Json


def read_changes(directory: Path) -> dict[str, Change]:
    """Return the changes by name; none where there is no file. Blocks.

    Raises:
        ConfigError: the file is not as ``write_changes`` writes it.
    """
    path = directory / NAME
    try:
        said = json.loads(path.read_text("utf-8"))
        return {str(name): Change(each["value"], each["instead_of"]) for name, each in said.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path}: not what `codetaste limit` writes; "
            "`codetaste limit --reset` with the limits makes it anew"
        ) from error


def write_changes(directory: Path, changes: Mapping[str, Change]) -> None:
    """Put ``changes`` in the place of those there were; no file stands for none. Blocks.

    Raises:
        JournalError: it cannot be written.
    """
    if not changes:
        try:
            (directory / NAME).unlink(missing_ok=True)
        except OSError as error:
            raise JournalError(f"{directory / NAME}: cannot be removed: {error.strerror}") from error
        return
    said = {
        name: {"value": each.value, "instead_of": each.instead_of} for name, each in sorted(changes.items())
    }
    write_atomically(directory / NAME, json.dumps(said, indent=2) + "\n")


async def watch_changes(
    directory: Path, changed: Callable[[dict[str, Change]], Awaitable[None]], warn: Callable[[str], None]
) -> None:
    """Call ``changed`` with the changes at once, and again whenever the file has changed; for ever.

    What is wrong with the file is said once, by ``warn``, and nothing of it is obeyed.
    """
    seen: object = ()
    while True:
        stamp = await to_thread.run_sync(_stamp, directory / NAME)
        if stamp != seen:
            seen = stamp
            try:
                await changed(await to_thread.run_sync(read_changes, directory))
            except ConfigError as error:
                warn(str(error))
        await anyio.sleep(EVERY_S)


def _stamp(path: Path) -> object:
    """Return what changes when the file is replaced or edited; None while there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - one call, twice a second
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size

"""What tells whether the sources of a mining run have changed, so that a continued run reads them again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import ConfigError, SourceError
from codetaste.mining.archive.hour import find_hour_files
from codetaste.mining.clones.clone import find_clones, is_clone, open_clone
from codetaste.mining.clones.history import history_digest
from codetaste.mining.github.config import read_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.flows.mine.context import MiningContext
    from codetaste.flows.mine.plan import MiningRunConfig
    from codetaste.mining.clones.clone import Clone


async def clone_paths(run: MiningRunConfig, context: MiningContext) -> list[tuple[Path, str | None]]:
    """Return the clones that a mining run names, or that are in folders that it names, with their names.

    Raises:
        ConfigError: a path is no clone, and has none.
        SourceError: a folder cannot be read.
    """
    paths: list[tuple[Path, str | None]] = []
    for each in run.clones:
        path = context.path(each)
        if await to_thread.run_sync(is_clone, path):
            paths.append((path, None))
            continue
        clones = await to_thread.run_sync(find_clones, path) if path.is_dir() else {}
        if not clones:
            raise ConfigError(f"mine.runs {run.name}: {path} is no clone, and has no clones OWNER/REPO")
        paths += [(clone, name) for name, clone in clones.items()]
    return paths


async def open_clones(
    run: MiningRunConfig, context: MiningContext
) -> tuple[list[tuple[Clone, Path]], list[str]]:
    """Open the clones that a mining run names, each with its place, and return a line for each left out.

    In a folder of clones one that cannot be opened is left out, and so is a second clone of a repository.

    Raises:
        ConfigError: a path is no clone, and has none.
        SourceError: a folder cannot be read, or a clone that the config itself names cannot be opened.
        ToolMissing: git is not installed.
    """
    opened: dict[str, tuple[Clone, Path]] = {}
    problems: list[str] = []
    for path, name in await clone_paths(run, context):
        try:
            clone = await open_clone(path, name)
        except SourceError as error:
            if name is None:
                raise
            problems.append(f"{error} (skipped)")
            continue
        first, place = opened.setdefault(clone.repository.lower(), (clone, path))
        if first.git_dir != clone.git_dir:
            problems.append(f"{path}: a second clone of {clone.repository}; {place} is read (skipped)")
    return list(opened.values()), problems


async def source_digests(run: MiningRunConfig, context: MiningContext) -> list[str]:
    """Return what tells whether the sources of a run have changed; part of a fingerprint.

    Of a clone these are the commits at the ends of its history, so that commits which it gets are read by the
    next session; of files their sizes and times; of GitHub, whether it can be asked.

    Raises:
        ConfigError: a source is not there.
        SourceError: a clone cannot be read.
        ToolMissing: git is not installed.
    """
    digests = await to_thread.run_sync(partial(_file_digests, run, context))
    for clone, path in (await open_clones(run, context))[0]:
        digests.append(f"{path} {await history_digest(clone)}")
    if context.config.repos is not None:
        digests.append(f"repos {context.path(context.config.repos)}")
    if context.asks_github(run):
        digests.append("GitHub with a token" if read_token(context.config.github) else "GitHub")
    return digests


def _file_digests(run: MiningRunConfig, context: MiningContext) -> list[str]:
    digests = []
    for key, path in _files(run, context):
        try:
            status = path.stat()
        except OSError as error:
            raise ConfigError(f"{key}: {path}: {error.strerror}") from error
        digests.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return digests


def _files(run: MiningRunConfig, context: MiningContext) -> Iterator[tuple[str, Path]]:
    """Yield the files that are read, each with the key of the config that names it."""
    named = {"pairs": run.pairs}
    if run.activity is not None:
        named |= {"activity.commits": run.activity.commits, "activity.licences": run.activity.licences}
    for key, paths in named.items():
        for path in paths:
            yield f"mine.runs[{run.name}].{key}", context.path(path)
    if context.config.ranking.stars is not None:
        yield "mine.ranking.stars", context.path(context.config.ranking.stars)
    if run.archive is not None:
        hours = find_hour_files([context.path(Path(name)) for name in run.archive.hours])
        yield from ((f"mine.runs[{run.name}].archive", file) for file in hours)

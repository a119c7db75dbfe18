"""``codetaste benchmark fetch``: download a published benchmark and print its inventory."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from anyio import to_thread
from cyclopts import Parameter

from codetaste.benchmark.instances_csv import nearest_names_hint
from codetaste.benchmark.release.fetch import RELEASES, fetch_benchmark
from codetaste.cli.options import AsJson, Flag, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.text import printable
from codetaste.core.units import format_size
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from codetaste.benchmark.release.fetch import FetchedBenchmark

_PROGRESS_INTERVAL_S = 2.0
_MAX_LISTED = 5


@command
async def fetch(
    name: str = "codetaste100",
    /,
    *,
    to: OptionalPath = None,
    from_: Annotated[str, Parameter(name="--from")] = "",
    incomplete: Flag = False,
    json_: AsJson = False,
) -> int:
    """Download a benchmark, and print its inventory.

    Args:
        name: The benchmark: codetaste100.
        to: The folder to create; default ./NAME.
        from_: A URL, an archive or a folder to use instead of the published release.
        incomplete: Accept it although files of some instances are missing.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the name is unknown, or the source is not this benchmark.
        SourceError: the source is unavailable or damaged.
        StorageFull: no space left.
    """
    release = RELEASES.get(name)
    if release is None:
        raise ConfigError(
            f"{printable(name, 60)!r} is not a published benchmark{nearest_names_hint(name, RELEASES)} "
            f"(published: {', '.join(RELEASES)})"
        )
    folder = await to_thread.run_sync(Path.expanduser, to or Path(name))
    fetched = await fetch_benchmark(
        release, folder, source=from_, incomplete=incomplete, progress=DownloadProgress(name)
    )
    print_result(json_document(_fetched_to_json(fetched)) if json_ else _format_fetched(fetched))
    return 0


class DownloadProgress:
    """Shows download progress every few seconds: in one line of a terminal, else in a new line each time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._shown_at = 0.0
        self._started: tuple[float, int] | None = None

    def __call__(self, done: int, total: int | None) -> None:
        """Report ``done`` bytes of ``total``, None if unknown."""
        now = time.monotonic()
        if self._started is None:
            self._started = (now, done)
        finished = total is not None and done >= total
        if now - self._shown_at < _PROGRESS_INTERVAL_S and not finished:
            return
        self._shown_at = now
        since, before = self._started
        rate = format_size(int((done - before) / max(now - since, 0.001)))
        of = f" of {format_size(total)} ({done / total:.0%})" if total else ""
        line = f"{self._name}: {format_size(done)}{of}, {rate}/s"
        if sys.stderr.isatty():
            print(f"\r{line:<70}", end="\n" if finished else "", file=sys.stderr, flush=True)  # noqa: T201
        else:
            notify(line)


def _fetched_to_json(fetched: FetchedBenchmark) -> dict[str, Any]:
    inventory = fetched.inventory
    return {
        "folder": str(fetched.folder),
        "created": fetched.new,
        "source": fetched.source,
        "sha256": fetched.sha256,
        "verified": fetched.verified,
        "instances": inventory.instances,
        "missing": list(inventory.missing),
        "missing_for_tests": list(inventory.missing_for_tests),
    }


def _format_fetched(fetched: FetchedBenchmark) -> str:
    inventory = fetched.inventory
    already = "" if fetched.new else "exists already; "
    whole = "" if inventory.missing else ", every task with its descriptions and rules"
    lines = [f"{fetched.folder}: {already}{inventory.instances} instances{whole}"]
    for paths, what in (
        (inventory.missing, "that tasks need"),
        (inventory.missing_for_tests, "that test runs need"),
    ):
        if paths:
            lines.append(f"  {len(paths)} files {what} are missing or wrong, the first of them:")
            lines += [f"    {printable(path)}" for path in paths[:_MAX_LISTED]]
    if fetched.sha256:
        check = (
            "as published"
            if fetched.verified
            else "no published digest is known to compare it with; a later fetch compares with this one"
        )
        lines.append(f"  sha256 {fetched.sha256} ({check})")
    return "\n".join(lines)

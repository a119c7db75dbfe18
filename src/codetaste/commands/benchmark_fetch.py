"""``codetaste benchmark fetch``: a published benchmark brought to this machine, and what it has said."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.fetch import RELEASES, fetch_benchmark
from codetaste.benchmark.table import nearest
from codetaste.command import say, tell
from codetaste.errors import ConfigError
from codetaste.report.progress import printable
from codetaste.units import format_size

if TYPE_CHECKING:
    from codetaste.benchmark.fetch import Fetched

_EVERY_S = 2.0
_SHOWN = 5


async def fetch_release(name: str, to: Path | None, source: str, *, incomplete: bool, as_json: bool) -> int:
    """Put the benchmark ``name`` at ``to``, and say what it has; returns the exit code.

    Raises:
        ConfigError: nothing is known by that name, or what came is no such benchmark.
        SourceError: it cannot be had, or is damaged.
        StorageFull: no space left.
    """
    release = RELEASES.get(name)
    if release is None:
        raise ConfigError(
            f"{printable(name, 60)!r} is no published benchmark{nearest(name, RELEASES)} "
            f"(there is: {', '.join(RELEASES)})"
        )
    place = await to_thread.run_sync(Path.expanduser, to or Path(name))
    fetched = await fetch_benchmark(
        release, place, source=source, incomplete=incomplete, progress=Progress(name)
    )
    say(json.dumps(_told(fetched), indent=2) if as_json else _text(fetched))
    return 0


class Progress:
    """Tells a person now and then how much has come: in one line of a terminal, else in a line each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said = 0.0
        self._started: tuple[float, int] | None = None

    def __call__(self, done: int, total: int | None) -> None:
        """Take note of ``done`` bytes of ``total``."""
        now = time.monotonic()
        if self._started is None:
            self._started = (now, done)
        finished = total is not None and done >= total
        if now - self._said < _EVERY_S and not finished:
            return
        self._said = now
        since, before = self._started
        rate = format_size(int((done - before) / max(now - since, 0.001)))
        of = f" of {format_size(total)} ({done / total:.0%})" if total else ""
        line = f"{self._name}: {format_size(done)}{of}, {rate}/s"
        if sys.stderr.isatty():
            print(f"\r{line:<70}", end="\n" if finished else "", file=sys.stderr, flush=True)  # noqa: T201
        else:
            tell(line)


def _told(fetched: Fetched) -> dict[str, Any]:
    inventory = fetched.inventory
    return {
        "folder": str(fetched.folder),
        "new": fetched.new,
        "source": fetched.source,
        "sha256": fetched.sha256,
        "verified": fetched.verified,
        "instances": inventory.instances,
        "missing": list(inventory.missing),
        "lacking": list(inventory.lacking),
    }


def _text(fetched: Fetched) -> str:
    inventory = fetched.inventory
    already = "" if fetched.new else "is there already; "
    whole = "" if inventory.missing else ", every task with its descriptions and rules"
    lines = [f"{fetched.folder}: {already}{inventory.instances} instances{whole}"]
    for paths, what in ((inventory.missing, "that tasks need"), (inventory.lacking, "that test runs need")):
        if paths:
            lines.append(f"  {len(paths)} files {what} are missing or wrong, the first of them:")
            lines += [f"    {printable(path)}" for path in paths[:_SHOWN]]
    if fetched.sha256:
        vouched = (
            "as published"
            if fetched.verified
            else "no published digest is known to compare it with; a later fetch compares with this one"
        )
        lines.append(f"  sha256 {fetched.sha256} ({vouched})")
    return "\n".join(lines)

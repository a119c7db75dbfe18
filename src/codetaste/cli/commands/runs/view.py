"""``codetaste view``: the pages of a report in a browser, kept current while runs go on."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from codetaste.benchmark.config import BenchmarkConfig
from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.text import printable
from codetaste.errors import ConfigError
from codetaste.orchestration.journal.journal import JOURNAL_FILE
from codetaste.results.roots import run_folders
from codetaste.run.resolve import find_benchmark
from codetaste.site.live.access import MIN_TOKEN_CHARS, Access, is_loopback, new_token
from codetaste.site.live.serve import serve_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

_DEFAULT_PORT = 8765
_TOKEN_VARIABLE = "CODETASTE_VIEW_TOKEN"  # noqa: S105 - its name
_NICENESS = 5
"""Of this process: the runs that are watched come first."""
_NEW_OBJECTS = 50_000
"""So many new objects are looked through for cycles at once. A journal's lines make many and hardly a cycle:
by default the search is a sixth of what their reading costs."""


@command
async def view(
    *runs: Path,
    host: str = "127.0.0.1",
    port: int = _DEFAULT_PORT,
    token: str = "",
    benchmark: str = "",
    json_: AsJson = False,
) -> int:
    """Serve the pages of runs to a browser until Ctrl-C, while the runs go on or after them.

    Args:
        runs: Run folders or their names; those that do not exist yet are waited for.
        host: The address to listen at; another one than the loopback's needs a token, which is made if none
            is given.
        port: The port, 0 for any free one.
        token: What a reader needs; better put into the variable CODETASTE_VIEW_TOKEN, since others on this
            machine can see command lines.
        benchmark: The benchmark's folder, or "quickstart"; default the benchmark of the runs, if it exists.
        json_: Print the address as JSON.

    Raises:
        ConfigError: no run is given, the host or the port cannot be used, or the token is short.
    """
    if not runs:
        raise ConfigError("name a run, as in: codetaste view runs/NAME")
    if not 0 <= port <= 65535:  # noqa: PLR2004 - the highest port
        raise ConfigError(f"--port {port}: expected 0 to 65535")
    token = token or os.environ.get(_TOKEN_VARIABLE, "")
    if token and (len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable()):
        raise ConfigError(f"--token: expected at least {MIN_TOKEN_CHARS} printable ASCII characters")
    if not token and not is_loopback(host):
        token = new_token()
    roots = run_folders(runs)
    opened = find_benchmark(BenchmarkConfig(path=benchmark), Path()) if benchmark else None
    _note_missing(roots)
    os.nice(_NICENESS)
    gc.set_threshold(_NEW_OBJECTS)
    async with serve_runs(roots, opened, Access(host, token), port) as address:
        print_result(json_document({"address": address}) if json_ else address)
        notify("codetaste: serving until Ctrl-C")
        await anyio.sleep_forever()
    return 0


def _note_missing(roots: Sequence[Path]) -> None:
    for root in roots:
        if not root.is_dir():
            notify(f"codetaste: {printable(str(root))}: no run there yet; its page shows it once it begins")
        elif not (root / JOURNAL_FILE).is_file():
            notify(f"codetaste: {printable(str(root))}: has no journal, so that only its results are shown")

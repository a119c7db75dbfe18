"""What several commands open: a benchmark, one instance of it, the rule engine, metadata files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.config import BenchmarkConfig
from codetaste.console.streams import notify
from codetaste.core.files import read_regular_file
from codetaste.core.paths import cache_dir
from codetaste.core.section import check_path
from codetaste.errors import ConfigError
from codetaste.rules.config import RulesConfig
from codetaste.run.resolve import find_benchmark
from codetaste.run.services import open_scan_context

if TYPE_CHECKING:
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.flows.context import ScanContext

_MAX_LISTED = 5
_MAX_METADATA_BYTES = 16 * 1024**2


def resolve_benchmark(name: str, repos: Path | None) -> Benchmark:
    """Open the benchmark ``name``, a folder or "quickstart", with the clones in ``repos``.

    Raises:
        ConfigError: a folder does not exist, or the benchmark is invalid.
    """
    if repos is not None and not repos.is_dir():
        raise ConfigError(f"--repos: {repos} is not a folder")
    try:
        check_path(name)
    except ValueError as error:
        raise ConfigError(f"--benchmark: {error}") from None
    return find_benchmark(BenchmarkConfig(path=name, repos=repos), Path())


def resolve_instance(benchmark: Benchmark, glob: str) -> Instance:
    """Return the one instance whose id matches ``glob``.

    Raises:
        ConfigError: none matches, or several.
    """
    chosen = benchmark.select([glob])
    if len(chosen) > 1:
        ids = ", ".join(
            [*(each.id for each in chosen[:_MAX_LISTED]), *(["…"] if len(chosen) > _MAX_LISTED else [])]
        )
        raise ConfigError(f"{glob!r} matches {len(chosen)} instances ({ids}): name one")
    return chosen[0]


async def open_scan(benchmark: Benchmark) -> ScanContext:
    """Open the rule engine with default settings; a release other than the pinned one is reported.

    Raises:
        ToolMissing: there is no engine.
    """
    cache = await to_thread.run_sync(cache_dir, notify)
    scan = await open_scan_context(benchmark, RulesConfig(), cache)
    if scan.engine.warning:
        notify(scan.engine.warning)
    return scan


def read_metadata(path: Path) -> dict[str, Any] | None:
    """Return a JSON object that is only copied to results; None if it cannot be read, which is reported."""
    try:
        data = json.loads(read_regular_file(path, _MAX_METADATA_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        notify(f"{path}: not read: {error}")
        return None
    return data if isinstance(data, dict) else None

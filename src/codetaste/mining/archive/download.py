"""Hours downloaded from the archive: resumable, and complete or not there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.concurrency import gather
from codetaste.errors import SourceError
from codetaste.mining.archive.hour import hour_name
from codetaste.source.download import Download, discard_download, make_download_client

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    import httpx2

ADDRESS = "https://data.gharchive.org"
_AT_ONCE = 4
_MAX_HOUR_BYTES = 4 * 1024**3


async def download_hours(hours: Iterable[datetime], folder: Path, address: str = ADDRESS) -> dict[str, str]:
    """Download the files of ``hours`` that ``folder`` lacks; return why some could not be had, by their name.

    A download that was broken off continues at the next call.

    Raises:
        StorageFull: no space left.
    """
    limiter = anyio.CapacityLimiter(_AT_ONCE)
    problems: dict[str, str] = {}

    async def download(hour: datetime, http: httpx2.AsyncClient) -> None:
        name = f"{hour_name(hour)}.json.gz"
        target, arriving = folder / name, folder / "partial" / name
        async with limiter:
            if await to_thread.run_sync(target.exists):
                return
            try:
                hint = "the archive has no such hour"
                await Download(
                    f"{address}/{name}", arriving, name, not_found_hint=hint, limit=_MAX_HOUR_BYTES
                ).run(http)
                await to_thread.run_sync(arriving.replace, target)
                await to_thread.run_sync(discard_download, arriving)
            except SourceError as error:
                problems[name] = str(error)

    async with make_download_client() as http:
        await gather([partial(download, hour, http) for hour in hours])
    return problems

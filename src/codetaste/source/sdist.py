"""Source distributions from a package index: found by name, verified by hash, never built."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.files import locked
from codetaste.core.hashing import file_sha256
from codetaste.core.text import one_line
from codetaste.errors import SourceError
from codetaste.source.download import (
    Download,
    check_status,
    discard_download,
    make_download_client,
    pip_setting,
    retried,
)

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2
    from pypi_simple import DistributionPackage, ProjectPage

_TIME_LIMIT_S = 900.0
_PAGE_BYTES = 64 * 1024**2
_ARCHIVE_BYTES = 512 * 1024**2
_NOT_FOUND_HINT = "check the name, and PIP_INDEX_URL where it is set"


async def fetch_sdist(package: str, version: str, sha256: str, cache: Path) -> Path:
    """Return the archive of ``package`` ``version`` whose hash is ``sha256``, from the cache or the index.

    The content is checked against the hash every time, also when it comes from the cache.

    Raises:
        SourceError: the index cannot be reached, has no such archive, or has another one for that version.
        StorageFull: no space left.
    """
    archive = cache / "sdists" / sha256
    async with locked(cache / "locks" / f"archive-{sha256}.lock"):
        if await to_thread.run_sync(_has_sha256, archive, sha256):
            return archive
        partial = archive.with_name(f".{sha256}.partial")
        try:
            with anyio.fail_after(_TIME_LIMIT_S):
                async with await to_thread.run_sync(make_download_client) as http:
                    await _download(http, package, version, sha256, partial)
            await to_thread.run_sync(partial.replace, archive)
        except TimeoutError:
            raise SourceError(
                f"{package} {version}: no answer within {_TIME_LIMIT_S:g} s; try again"
            ) from None
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(discard_download, partial)
    return archive


def _has_sha256(archive: Path, sha256: str) -> bool:
    try:
        return file_sha256(archive) == sha256
    except OSError:
        return False


async def _download(http: httpx2.AsyncClient, package: str, version: str, sha256: str, partial: Path) -> None:
    what = f"{package} {version}"
    page = await fetch_project_page(http, package)
    for found in _candidates(page, package, version, sha256):
        what = f"{package} {version} ({found.filename})"
        got = await Download(found.url, partial, what, _NOT_FOUND_HINT, _ARCHIVE_BYTES).run(http)
        if got.sha256 == sha256:
            return
    raise SourceError(f"{what}: its sha256 is not the recorded {sha256}; it is not used")


async def fetch_project_page(http: httpx2.AsyncClient, package: str) -> ProjectPage:
    """Return the page of a package in the index.

    Raises:
        SourceError: the index cannot be reached, has no such package, or sent something else.
    """
    from pypi_simple import (  # noqa: PLC0415 - heavy
        ACCEPT_JSON_PREFERRED,
        ProjectPage,
        UnsupportedRepoVersionError,
    )

    address = f"{index_url()}{re.sub(r'[-_.]+', '-', package).lower()}/"
    what = f"{package} in the package index"

    async def get() -> ProjectPage:
        async with http.stream("GET", address, headers={"Accept": ACCEPT_JSON_PREFERRED}) as response:
            check_status(response, what, _NOT_FOUND_HINT)
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _PAGE_BYTES:
                    raise SourceError(f"{what}: its page is larger than {_PAGE_BYTES:,} bytes")
        if "json" in response.headers.get("content-type", ""):
            return ProjectPage.from_json_data(json.loads(body), str(response.url))
        return ProjectPage.from_html(package, bytes(body), str(response.url))

    try:
        return await retried(get, what)
    except (ValueError, UnsupportedRepoVersionError) as error:
        raise SourceError(f"{what}: its page cannot be parsed: {one_line(error)}") from error


def _candidates(page: ProjectPage, package: str, version: str, sha256: str) -> list[DistributionPackage]:
    """Return the files that may be the archive: those with that hash, else those without a hash."""
    sources = [found for found in page.packages if found.package_type == "sdist"]
    exact = [found for found in sources if found.digests.get("sha256", "").lower() == sha256]
    if exact:
        return exact
    released = [found for found in sources if found.version == version]
    unknown = [found for found in released if "sha256" not in found.digests]
    if unknown:
        return unknown
    if released:
        seen = ", ".join(f"{found.filename} {found.digests['sha256'][:12]}…" for found in released)
        raise SourceError(f"{package} {version}: no file with the recorded sha256 {sha256[:12]}…, but {seen}")
    raise SourceError(f"{package} {version}: the package index has no source distribution of that version")


def index_url() -> str:
    """Return the address of the simple index (PEP 503), with a trailing slash."""
    address = os.environ.get("PIP_INDEX_URL") or pip_setting("index-url")
    if not address:
        from pypi_simple import PYPI_SIMPLE_ENDPOINT  # noqa: PLC0415 - heavy

        address = PYPI_SIMPLE_ENDPOINT
    if not address.startswith(("https://", "http://")):
        raise SourceError(f"the package index {address!r} is not an http(s) address; correct PIP_INDEX_URL")
    return address.rstrip("/") + "/"

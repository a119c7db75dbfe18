"""Source distributions from a package index: found by name, verified by hash, never built."""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import re
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import anyio
from anyio import to_thread

from codetaste.core.files import locked, storage_error
from codetaste.core.paths import SYSTEM_BUNDLES, trust_store
from codetaste.core.text import one_line
from codetaste.errors import SourceError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    import httpx2
    from pypi_simple import DistributionPackage, ProjectPage


_BACK_OFF_S = (0.5, 2.0, 5.0)

_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})

_TIME_LIMIT_S = 900.0

_PAGE_BYTES = 64 * 1024**2

_ARCHIVE_BYTES = 512 * 1024**2

_CHUNK_BYTES = 1 << 20

_Value = TypeVar("_Value")


class _Transient(Exception):
    """A fault for which the request is retried."""


class _Page(NamedTuple):
    address: str
    content_type: str
    body: bytes


async def fetch_sdist(package: str, version: str, sha256: str, cache: Path) -> Path:
    """Return the archive of ``package`` ``version`` whose hash is ``sha256``, from the cache or the index.

    The content is checked against the hash every time, also when it comes from the cache.

    Raises:
        SourceError: the index cannot be reached, has no such archive, or has another one for that version.
        StorageFull: no space left.
    """
    archive = cache / "sdists" / sha256
    async with locked(cache / "locks" / f"archive-{sha256}.lock"):
        if await to_thread.run_sync(_digest, archive) == sha256:
            return archive
        partial = archive.with_name(f".{sha256}.partial")
        try:
            with anyio.fail_after(_TIME_LIMIT_S):
                async with await to_thread.run_sync(make_index_client) as http:
                    await _download(http, package, version, sha256, partial)
            await to_thread.run_sync(partial.replace, archive)
        except TimeoutError:
            raise SourceError(
                f"{package} {version}: no answer within {_TIME_LIMIT_S:g} s; try again"
            ) from None
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(lambda: partial.unlink(missing_ok=True))
    return archive


async def _download(http: httpx2.AsyncClient, package: str, version: str, sha256: str, partial: Path) -> None:
    what = f"{package} {version}"
    page = await _page(http, package)
    for found in _candidates(page, package, version, sha256):
        what = f"{package} {version} ({found.filename})"

        async def get(address: str = found.url, what: str = what) -> str:
            return await _stream_to(http, address, partial, what)

        got = await _retried(get, what)
        if got == sha256:
            return
    raise SourceError(f"{what}: its sha256 is not the recorded {sha256}; it is not used")


async def _page(http: httpx2.AsyncClient, package: str) -> ProjectPage:
    from pypi_simple import (  # noqa: PLC0415 - heavy
        ACCEPT_JSON_PREFERRED,
        ProjectPage,
        UnsupportedRepoVersionError,
    )

    address = f"{index_url()}{re.sub(r'[-_.]+', '-', package).lower()}/"
    what = f"{package} in the package index"

    async def get() -> _Page:
        async with http.stream("GET", address, headers={"Accept": ACCEPT_JSON_PREFERRED}) as response:
            _check_status(response, what)
            body = bytearray()
            async for chunk in response.aiter_bytes(_CHUNK_BYTES):
                body += chunk
                if len(body) > _PAGE_BYTES:
                    raise SourceError(f"{what}: its page is larger than {_PAGE_BYTES:,} bytes")
            return _Page(str(response.url), response.headers.get("content-type", ""), bytes(body))

    page = await _retried(get, what)
    try:
        if "json" in page.content_type:
            return ProjectPage.from_json_data(json.loads(page.body), page.address)
        return ProjectPage.from_html(package, page.body, page.address)
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


async def _stream_to(http: httpx2.AsyncClient, address: str, partial: Path, what: str) -> str:
    """Download ``address`` to ``partial``; return its sha256."""
    digest = hashlib.sha256()
    size = 0
    # The hash is that of the stored file, so no transfer compression.
    async with http.stream("GET", address, headers={"Accept-Encoding": "identity"}) as response:
        _check_status(response, what)
        try:
            await to_thread.run_sync(lambda: partial.parent.mkdir(parents=True, exist_ok=True))
            async with await anyio.open_file(partial, "wb") as file:
                async for chunk in response.aiter_raw(_CHUNK_BYTES):
                    size += len(chunk)
                    if size > _ARCHIVE_BYTES:
                        raise SourceError(f"{what}: larger than {_ARCHIVE_BYTES:,} bytes")
                    digest.update(chunk)
                    await file.write(chunk)
        except OSError as error:
            raise storage_error(error, f"cannot write {partial}", SourceError) from error
    return digest.hexdigest()


def _check_status(response: httpx2.Response, what: str) -> None:
    status = response.status_code
    if status in _RETRIED:
        raise _Transient(f"the server answered {status}")
    if status == HTTPStatus.NOT_FOUND:
        raise SourceError(f"{what}: not found; check the name, and PIP_INDEX_URL where it is set")
    if not response.is_success:
        raise SourceError(f"{what}: the server answered {status} {response.reason_phrase}")


async def _retried(do: Callable[[], Awaitable[_Value]], what: str) -> _Value:
    """Call ``do``; retry transient faults a limited number of times."""
    import httpx2  # noqa: PLC0415 - heavy

    for pause_s in (*_BACK_OFF_S, None):
        try:
            return await do()
        except (httpx2.TransportError, _Transient) as error:
            if pause_s is None:
                reason = one_line(error) or type(error).__name__
                if "CERTIFICATE_VERIFY_FAILED" in reason:
                    reason += "; name the certificate of your proxy or index in PIP_CERT"
                raise SourceError(
                    f"{what}: no answer after {len(_BACK_OFF_S) + 1} attempts: {reason}"
                ) from error
            await anyio.sleep(pause_s)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise SourceError(f"{what}: {one_line(error)}") from error
    raise AssertionError


def _digest(path: Path) -> str:
    """Return the sha256 of a file, "" if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


_CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def index_url() -> str:
    """Return the address of the simple index (PEP 503), with a trailing slash."""
    address = os.environ.get("PIP_INDEX_URL") or _pip_setting("index-url")
    if not address:
        from pypi_simple import PYPI_SIMPLE_ENDPOINT  # noqa: PLC0415 - heavy

        address = PYPI_SIMPLE_ENDPOINT
    if not address.startswith(("https://", "http://")):
        raise SourceError(f"the package index {address!r} is not an http(s) address; correct PIP_INDEX_URL")
    return address.rstrip("/") + "/"


def index_trust_store() -> ssl.SSLContext:
    """Return the TLS context of downloads, with the certificates that pip and the environment name."""
    named = [os.environ.get(name, "") for name in _CA_VARIABLES]
    return trust_store(*SYSTEM_BUNDLES, *named, _pip_setting("cert") or "")


def make_index_client(timeout_s: float = 60.0) -> httpx2.AsyncClient:
    """Return an HTTP client for the index; it uses the proxies of the environment."""
    import httpx2  # noqa: PLC0415 - heavy

    return httpx2.AsyncClient(
        verify=index_trust_store(), follow_redirects=True, timeout=httpx2.Timeout(timeout_s, connect=20.0)
    )


def _pip_setting(key: str) -> str | None:
    """Return ``key`` from pip's configuration files, user files first."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.expanduser fails for a user without home
    own = os.environ.get("PIP_CONFIG_FILE")
    paths = [
        home / ".config/pip/pip.conf",
        home / ".pip/pip.conf",
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
    ]
    for path in [Path(own), *paths] if own else paths:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue  # pip reports it; try the next file
        for section in ("install", "global"):
            found = parser.get(section, key, fallback="")
            if found:
                return found
    return None

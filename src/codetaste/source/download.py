"""Downloads over http and https: resumable, limited in size, repeated after transient errors."""

from __future__ import annotations

import configparser
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from anyio import to_thread

from codetaste.core.files import storage_error
from codetaste.core.hashing import file_sha256
from codetaste.core.paths import SYSTEM_BUNDLES, trust_store
from codetaste.core.text import one_line
from codetaste.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import httpx2

MAX_DOWNLOAD_BYTES = 16 * 1024**3
_BACK_OFF_S = (0.5, 2.0, 5.0, 10.0)
"""Pauses between attempts that received nothing, seconds."""
_RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_MAX_ATTEMPTS = 50
_MAX_REDIRECTS = 10
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")
_HTML_TYPES = ("text/html", "application/xhtml")
_CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")

_cached_trust_store = cache(trust_store)
"""Cached, as reading all bundles takes a quarter of a second."""

_Value = TypeVar("_Value")


class TransientError(Exception):
    """A failure that may not occur again; the request is retried."""


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """A complete file; ``sha256`` (hex) is of its content, ``url`` is the address after redirections."""

    path: Path
    sha256: str
    url: str


@dataclass(frozen=True, slots=True)
class Download:
    """One file to download.

    Attributes:
        url: an http or https address; redirections are followed, except from https to http.
        path: the target file. A partial file stays after any failure; ``path`` with ``.json`` records its
            address and version.
        what: names the file in messages; by default its address.
        not_found_hint: what to do when the server has no such file.
        limit: maximum size in bytes.
        progress: called with the number of bytes downloaded, and the total if that is known.
    """

    url: str
    path: Path
    what: str = ""
    not_found_hint: str = "check the address"
    limit: int = MAX_DOWNLOAD_BYTES
    progress: Callable[[int, int | None], None] = lambda _done, _total: None

    async def run(self, http: httpx2.AsyncClient) -> DownloadedFile:
        """Download the file, or continue an earlier download; ``http`` is from ``make_download_client``.

        Raises:
            SourceError: the download failed; the message says why and what to do.
            StorageFull: no space left.
        """
        if not self.url.startswith(("https://", "http://")):
            raise SourceError(f"{self.url[:200]!r} is not an http(s) address")
        address = await retried(lambda: self._attempt(http), self._name, lambda: _file_size(self.path))
        digest = await to_thread.run_sync(file_sha256, self.path)
        return DownloadedFile(self.path, digest, address)

    @property
    def _name(self) -> str:
        return self.what or self.url

    async def _attempt(self, http: httpx2.AsyncClient) -> str:
        """Request the missing bytes once; return the final address when the file is complete."""
        have, version = await to_thread.run_sync(_partial, self.url, self.path)
        # The digest is of the stored bytes, so the transfer must not be compressed.
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": version}
        async with http.stream("GET", self.url, headers=headers) as response:
            addresses = [each.url for each in (*response.history, response)]
            if self.url.startswith("https:") and any(each.scheme != "https" for each in addresses):
                raise SourceError(
                    f"{self._name}: redirected to an address without encryption, which is not followed"
                )
            if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
                if _content_range(response) == (None, have):
                    return str(response.url)
                await to_thread.run_sync(discard_download, self.path)
                raise TransientError("the server has another file now")
            check_status(response, self._name, self.not_found_hint)
            if response.headers.get("content-type", "").startswith(_HTML_TYPES):
                raise SourceError(
                    f"{self._name}: the server sent a web page instead of an archive; does a sign-in or a "
                    "proxy intervene?"
                )
            resumed = response.status_code == HTTPStatus.PARTIAL_CONTENT
            length = response.headers.get("content-length", "")
            whole = int(length) if length.isdecimal() else None
            start, total = _content_range(response) if resumed else (0, whole)
            if resumed and start != have:
                await to_thread.run_sync(discard_download, self.path)
                raise TransientError("the server sent another part than requested")
            if total is not None and total > self.limit:
                raise SourceError(f"{self._name}: {total:,} bytes, more than the limit of {self.limit:,}")
            await self._read_body(response, have if resumed else 0, total)
            return str(response.url)

    async def _read_body(self, response: httpx2.Response, have: int, total: int | None) -> None:
        try:
            await to_thread.run_sync(lambda: self.path.parent.mkdir(parents=True, exist_ok=True))
            if not have:
                await to_thread.run_sync(_write_notes, self.url, self.path, _version(response))
            async with await anyio.open_file(self.path, "ab" if have else "wb") as file:
                self.progress(have, total)
                # Chunks as they arrive: an incomplete larger chunk would be lost when the connection breaks.
                async for chunk in response.aiter_raw():
                    have += len(chunk)
                    if have > self.limit:
                        raise SourceError(f"{self._name}: more than the limit of {self.limit:,} bytes")
                    await file.write(chunk)
                    self.progress(have, total)
                await file.flush()
                await to_thread.run_sync(os.fsync, file.wrapped.fileno())
        except OSError as error:
            raise storage_error(error, f"cannot write {self.path}", SourceError) from error
        if total is not None and have != total:
            raise TransientError(f"it ended after {have:,} of {total:,} bytes")


def make_download_client() -> httpx2.AsyncClient:
    """Return an HTTP client with the certificates that pip and the environment name."""
    import httpx2  # noqa: PLC0415 - heavy

    named = [os.environ.get(name, "") for name in _CA_VARIABLES]
    verify = _cached_trust_store(*SYSTEM_BUNDLES, *named, pip_setting("cert"))
    timeout = httpx2.Timeout(60.0, connect=20.0)
    return httpx2.AsyncClient(
        verify=verify, follow_redirects=True, max_redirects=_MAX_REDIRECTS, timeout=timeout
    )


async def retried(
    attempt: Callable[[], Awaitable[_Value]], what: str, received: Callable[[], int] = lambda: 0
) -> _Value:
    """Return the result of ``attempt``, which is repeated after transient errors.

    Args:
        attempt: makes one request.
        what: names the request in messages.
        received: returns the number of bytes that were received so far and stay.

    Raises:
        SourceError: another error, or too many transient ones.
    """
    import httpx2  # noqa: PLC0415 - heavy

    fruitless, stays = 0, ""
    for _ in range(_MAX_ATTEMPTS):
        before = received()
        try:
            return await attempt()
        except (httpx2.TransportError, TransientError) as error:
            fruitless = 0 if received() > before else fruitless + 1
            stays = "; the partial file stays, and the same command continues it" if received() else ""
            if fruitless > len(_BACK_OFF_S):
                reason = one_line(error) or type(error).__name__
                if "CERTIFICATE_VERIFY_FAILED" in reason:
                    reason += "; name the certificate of your proxy or index in PIP_CERT"
                raise SourceError(f"{what}: no answer after {fruitless} attempts: {reason}{stays}") from error
            await anyio.sleep(_BACK_OFF_S[fruitless - 1] if fruitless else 0)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise SourceError(f"{what}: {one_line(error) or type(error).__name__}") from error
    raise SourceError(f"{what}: the connection broke {_MAX_ATTEMPTS} times{stays}")


def check_status(response: httpx2.Response, what: str, not_found_hint: str) -> None:
    """Check that ``response`` has content.

    Raises:
        TransientError: the server may answer another time.
        SourceError: it will not; ``not_found_hint`` is what to do when it has no such file.
    """
    status = response.status_code
    if status in _RETRIED_STATUS:
        raise TransientError(f"the server answered {status}")
    if status == HTTPStatus.NOT_FOUND:
        raise SourceError(f"{what}: not found; {not_found_hint}")
    if status not in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}:
        raise SourceError(f"{what}: the server answered {status} {response.reason_phrase}")


def discard_download(path: Path) -> None:
    """Remove the partial or complete download at ``path`` with its notes."""
    path.unlink(missing_ok=True)
    _notes_path(path).unlink(missing_ok=True)


def pip_setting(key: str) -> str:
    """Return ``key`` from pip's configuration files, user files first; "" if none has it."""
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
            if found := parser.get(section, key, fallback=""):
                return found
    return ""


def _content_range(response: httpx2.Response) -> tuple[int | None, int | None]:
    """Return the first byte of a part, and the size of the whole file."""
    found = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
    return (None, None) if found is None else (int(found[1]) if found[1] else None, int(found[2]))


def _version(response: httpx2.Response) -> str:
    """Return a mark that distinguishes file versions at one address, "" if there is no reliable one."""
    tag = response.headers.get("etag", "")
    if tag and not tag.startswith("W/"):
        return str(tag)
    return str(response.headers.get("last-modified", ""))


def _partial(url: str, path: Path) -> tuple[int, str]:
    """Return the size of a partial download of ``url`` and its version mark; (0, "") if uncertain."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        note: Any = json.loads(_notes_path(path).read_bytes())
        if note["url"] == url and note["version"] and (size := _file_size(path)):
            return size, str(note["version"])
    return 0, ""


def _write_notes(url: str, path: Path, version: str) -> None:
    path.unlink(missing_ok=True)  # it may be of another version
    _notes_path(path).write_text(json.dumps({"url": url, "version": version}), "utf-8")


def _notes_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

"""Resumable, size-limited download of one large file."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.core.files import storage_error
from codetaste.core.text import one_line
from codetaste.errors import SourceError
from codetaste.source.sdist import index_trust_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx2

MAX_DOWNLOAD_BYTES = 16 * 1024**3
_RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_BACK_OFF_S = (0.5, 2.0, 5.0, 10.0)
_MAX_ATTEMPTS = 50
_MAX_REDIRECTS = 10
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")
_HTML_TYPES = ("text/html", "application/xhtml")

_trust_store = cache(index_trust_store)
"""Cached, as reading all bundles takes a quarter of a second."""


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """A complete file; ``sha256`` (hex) is of its content, ``url`` is the address after redirections."""

    path: Path
    bytes: int
    sha256: str
    url: str


class _TransientError(Exception):
    """A failure that may not occur again; the download is retried."""


async def download(
    url: str,
    path: Path,
    *,
    progress: Callable[[int, int | None], None] = lambda _done, _total: None,
    limit: int = MAX_DOWNLOAD_BYTES,
    back_off_s: tuple[float, ...] = _BACK_OFF_S,
) -> DownloadedFile:
    """Download ``url`` to ``path``, continuing a partial download of the same file.

    Args:
        url: an http or https address; redirections are followed, except from https to http.
        path: the target file. A partial file stays after any failure; ``path`` with ``.json`` records its
            address and version.
        progress: called with the number of bytes downloaded, and the total if that is known.
        limit: maximum size in bytes.
        back_off_s: pauses between attempts that received nothing, in seconds.

    Raises:
        SourceError: the download failed; the message says why and what to do.
        StorageFull: no space left.
    """
    import httpx2  # noqa: PLC0415 - heavy

    if not url.startswith(("https://", "http://")):
        raise SourceError(f"{url[:200]!r} is not an http(s) address")
    fruitless = 0
    verify = await to_thread.run_sync(_trust_store)
    timeout = httpx2.Timeout(60.0, connect=20.0)
    async with httpx2.AsyncClient(
        verify=verify, follow_redirects=True, max_redirects=_MAX_REDIRECTS, timeout=timeout
    ) as http:
        for _ in range(_MAX_ATTEMPTS):
            before = _file_size(path)
            try:
                address = await _attempt(http, url, path, progress, limit)
                digest = await to_thread.run_sync(_sha256_of, path)
                return DownloadedFile(path, _file_size(path), digest, address)
            except (httpx2.TransportError, _TransientError) as error:
                fruitless = 0 if _file_size(path) > before else fruitless + 1
                if fruitless > len(back_off_s):
                    reason = one_line(error) or type(error).__name__
                    raise SourceError(
                        f"{url}: no answer after {fruitless} attempts: {reason}; "
                        "the partial file stays, and the same command continues it"
                    ) from error
                await anyio.sleep(back_off_s[fruitless - 1] if fruitless else 0)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise SourceError(f"{url}: {one_line(error) or type(error).__name__}") from error
    raise SourceError(f"{url}: the connection broke {_MAX_ATTEMPTS} times; the partial file stays")


async def _attempt(
    http: httpx2.AsyncClient, url: str, path: Path, progress: Callable[[int, int | None], None], limit: int
) -> str:
    """Request the missing bytes once; return the final address when the file is complete."""
    have, mark = await to_thread.run_sync(_partial, url, path)
    # The digest is of the stored bytes, so the transfer must not be compressed.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": mark}
    async with http.stream("GET", url, headers=headers) as response:
        _check_encryption(response, url)
        if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            if _content_range(response) == (None, have):
                return str(response.url)
            await to_thread.run_sync(discard_download, path)
            raise _TransientError("the server has another file now")
        _check_response(response, url)
        resumed = response.status_code == HTTPStatus.PARTIAL_CONTENT
        start, total = _content_range(response) if resumed else (0, _content_length(response))
        if resumed and start != have:
            await to_thread.run_sync(discard_download, path)
            raise _TransientError("the server sent another part than requested")
        if total is not None and total > limit:
            raise SourceError(f"{url}: {total:,} bytes, more than the limit of {limit:,}")
        await _read_body(response, url, path, have if resumed else 0, total, progress, limit)
        return str(response.url)


async def _read_body(
    response: httpx2.Response,
    url: str,
    path: Path,
    have: int,
    total: int | None,
    progress: Callable[[int, int | None], None],
    limit: int,
) -> None:
    try:
        await to_thread.run_sync(lambda: path.parent.mkdir(parents=True, exist_ok=True))
        if not have:
            await to_thread.run_sync(_write_notes, url, path, _version_mark(response))
        async with await anyio.open_file(path, "ab" if have else "wb") as file:
            progress(have, total)
            # Chunks as they arrive: an incomplete larger chunk would be lost when the connection breaks.
            async for chunk in response.aiter_raw():
                have += len(chunk)
                if have > limit:
                    raise SourceError(f"{url}: more than the limit of {limit:,} bytes")
                await file.write(chunk)
                progress(have, total)
            await file.flush()
            await to_thread.run_sync(os.fsync, file.wrapped.fileno())
    except OSError as error:
        raise storage_error(error, f"cannot write {path}", SourceError) from error
    if total is not None and have != total:
        raise _TransientError(f"it ended after {have:,} of {total:,} bytes")


def _check_encryption(response: httpx2.Response, url: str) -> None:
    if url.startswith("https:") and any(each.url.scheme != "https" for each in (*response.history, response)):
        raise SourceError(f"{url}: redirected to an address without encryption, which is not followed")


def _check_response(response: httpx2.Response, url: str) -> None:
    status = response.status_code
    if status in _RETRIED_STATUS:
        raise _TransientError(f"the server answered {status}")
    if status == HTTPStatus.NOT_FOUND:
        raise SourceError(f"{url}: not found; check the address, or pass a local file with --from")
    if status not in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}:
        raise SourceError(f"{url}: the server answered {status} {response.reason_phrase}")
    if response.headers.get("content-type", "").startswith(_HTML_TYPES):
        raise SourceError(
            f"{url}: the server sent a web page instead of an archive; does a sign-in or a proxy intervene?"
        )


def _content_range(response: httpx2.Response) -> tuple[int | None, int | None]:
    """Return the first byte of a part, and the size of the whole file."""
    found = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
    return (None, None) if found is None else (int(found[1]) if found[1] else None, int(found[2]))


def _content_length(response: httpx2.Response) -> int | None:
    text = response.headers.get("content-length", "")
    return int(text) if text.isdecimal() else None


def _version_mark(response: httpx2.Response) -> str:
    """Return a mark that distinguishes file versions at one address, "" if there is no reliable one."""
    tag = response.headers.get("etag", "")
    if tag and not tag.startswith("W/"):
        return str(tag)
    return str(response.headers.get("last-modified", ""))


def _partial(url: str, path: Path) -> tuple[int, str]:
    """Return the size of a partial download of ``url`` and its version mark; (0, "") if uncertain."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        note: Any = json.loads(_notes_path(path).read_bytes())
        if note["url"] == url and note["mark"] and (size := _file_size(path)):
            return size, str(note["mark"])
    return 0, ""


def _write_notes(url: str, path: Path, mark: str) -> None:
    path.unlink(missing_ok=True)  # it may be of another version
    _notes_path(path).write_text(json.dumps({"url": url, "mark": mark}), "utf-8")


def discard_download(path: Path) -> None:
    """Remove the download at ``path``, which is damaged or of another version."""
    path.unlink(missing_ok=True)
    _notes_path(path).unlink(missing_ok=True)


def _notes_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""A large file from the web: bounded, and in pieces that a later call goes on from."""

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

from codetaste.errors import SourceError
from codetaste.source.index import trust
from codetaste.source.writing import storage_error

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

    import httpx

MOST_BYTES = 16 * 1024**3
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_BACK_OFF_S = (0.5, 2.0, 5.0, 10.0)
_MOST_TRIES = 50
_REDIRECTS = 10
_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")
_PAGES = ("text/html", "application/xhtml")


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A whole file; ``sha256`` (hex) is over its bytes, ``url`` is where it came from in the end."""

    path: Path
    bytes: int
    sha256: str
    url: str


class _Again(Exception):
    """A fault that may be gone the next time."""


async def download(
    url: str,
    path: Path,
    *,
    progress: Callable[[int, int | None], None] = lambda _done, _total: None,
    limit: int = MOST_BYTES,
    back_off_s: tuple[float, ...] = _BACK_OFF_S,
) -> Downloaded:
    """Bring what is at ``url`` to ``path``; what an earlier call got of the same file is not asked for again.

    Args:
        url: an http or https address; redirections are followed, but none from https to http.
        path: where it goes. What is there so far stays on any failure, and ``path`` with ``.json`` says whose
            it is.
        progress: told how many bytes are there, and how many there will be if that is known.
        limit: more bytes are refused.
        back_off_s: pauses between tries that brought nothing.

    Raises:
        SourceError: it cannot be had; the message says why and what to do.
        StorageFull: no space left.
    """
    import httpx  # noqa: PLC0415 - heavy

    if not url.startswith(("https://", "http://")):
        raise SourceError(f"{url[:200]!r} is no http(s) address")
    fruitless = 0
    verify = await to_thread.run_sync(_trust)
    timeout = httpx.Timeout(60.0, connect=20.0)
    async with httpx.AsyncClient(
        verify=verify, follow_redirects=True, max_redirects=_REDIRECTS, timeout=timeout
    ) as http:
        for _ in range(_MOST_TRIES):
            before = _size(path)
            try:
                address = await _try(http, url, path, progress, limit)
                digest = await to_thread.run_sync(_digest, path)
                return Downloaded(path, _size(path), digest, address)
            except (httpx.TransportError, _Again) as error:
                fruitless = 0 if _size(path) > before else fruitless + 1
                if fruitless > len(back_off_s):
                    raise SourceError(
                        f"{url}: no answer after {fruitless} attempts: {_reason(error)}; "
                        "what has come is kept, the same command goes on from there"
                    ) from error
                await anyio.sleep(back_off_s[fruitless - 1] if fruitless else 0)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise SourceError(f"{url}: {_reason(error)}") from error
    raise SourceError(f"{url}: the connection broke {_MOST_TRIES} times; what has come is kept")


async def _try(
    http: httpx.AsyncClient, url: str, path: Path, progress: Callable[[int, int | None], None], limit: int
) -> str:
    """Ask once for what is lacking; returns the final address when all is there."""
    have, mark = await to_thread.run_sync(_kept, url, path)
    # The digest is over what is stored, so no compression on the way.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": mark}
    async with http.stream("GET", url, headers=headers) as response:
        _check_way(response, url)
        if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            if _range(response) == (None, have):
                return str(response.url)
            await to_thread.run_sync(discard, path)
            raise _Again("the server has another file now")
        _check_answer(response, url)
        resumed = response.status_code == HTTPStatus.PARTIAL_CONTENT
        start, total = _range(response) if resumed else (0, _length(response))
        if resumed and start != have:
            await to_thread.run_sync(discard, path)
            raise _Again("the server sent another part than it was asked for")
        if total is not None and total > limit:
            raise SourceError(f"{url}: {total:,} bytes, more than the {limit:,} that are taken")
        await _take(response, url, path, have if resumed else 0, total, progress, limit)
        return str(response.url)


async def _take(
    response: httpx.Response,
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
            await to_thread.run_sync(_note, url, path, _mark(response))
        async with await anyio.open_file(path, "ab" if have else "wb") as file:
            progress(have, total)
            # As it comes: what a larger piece waits for is lost when the connection breaks.
            async for chunk in response.aiter_raw():
                have += len(chunk)
                if have > limit:
                    raise SourceError(f"{url}: more than the {limit:,} bytes that are taken")
                await file.write(chunk)
                progress(have, total)
            await file.flush()
            await to_thread.run_sync(os.fsync, file.wrapped.fileno())
    except OSError as error:
        raise storage_error(error, f"cannot keep {path}") from error
    if total is not None and have != total:
        raise _Again(f"it ended after {have:,} of {total:,} bytes")


def _check_way(response: httpx.Response, url: str) -> None:
    if url.startswith("https:") and any(each.url.scheme != "https" for each in (*response.history, response)):
        raise SourceError(f"{url}: is redirected to an address without encryption; it is not followed")


def _check_answer(response: httpx.Response, url: str) -> None:
    status = response.status_code
    if status in _RETRIED:
        raise _Again(f"the server answered {status}")
    if status == HTTPStatus.NOT_FOUND:
        raise SourceError(f"{url}: not found; check the address, or name a file that you have with --from")
    if status not in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}:
        raise SourceError(f"{url}: the server answered {status} {response.reason_phrase}")
    if response.headers.get("content-type", "").startswith(_PAGES):
        raise SourceError(
            f"{url}: the server sent a web page, no archive; is a sign-in or a proxy in between?"
        )


def _range(response: httpx.Response) -> tuple[int | None, int | None]:
    """Return where a part begins, and how long the whole is."""
    found = _RANGE.fullmatch(response.headers.get("content-range", ""))
    return (None, None) if found is None else (int(found[1]) if found[1] else None, int(found[2]))


def _length(response: httpx.Response) -> int | None:
    text = response.headers.get("content-length", "")
    return int(text) if text.isdecimal() else None


def _mark(response: httpx.Response) -> str:
    """Return what tells this file from a later one at the same address, "" where nothing surely does."""
    tag = response.headers.get("etag", "")
    if tag and not tag.startswith("W/"):
        return str(tag)
    return str(response.headers.get("last-modified", ""))


def _kept(url: str, path: Path) -> tuple[int, str]:
    """Return how much there is of the same file, and its mark; nothing where either is not sure."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        note: Any = json.loads(_notes(path).read_bytes())
        if note["url"] == url and note["mark"] and (size := _size(path)):
            return size, str(note["mark"])
    return 0, ""


def _note(url: str, path: Path, mark: str) -> None:
    path.unlink(missing_ok=True)  # whose it was is not true any more
    _notes(path).write_text(json.dumps({"url": url, "mark": mark}), "utf-8")


def discard(path: Path) -> None:
    """Forget what was downloaded to ``path``: it turned out to be damaged, or another file."""
    path.unlink(missing_ok=True)
    _notes(path).unlink(missing_ok=True)


def _notes(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _trust() -> ssl.SSLContext:
    """Return whom connections may rest upon; reading all bundles takes a quarter of a second."""
    return trust()


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__

"""The answers of ``codetaste view``: files of the site, made when asked for, and pages of live runs."""

from __future__ import annotations

import math
import time
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import anyio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from codetaste.console.streams import notify
from codetaste.core.text import printable
from codetaste.site.html.templates import render_page
from codetaste.site.live.access import HEADERS
from codetaste.site.live.background import Workers
from codetaste.site.live.pages import (
    INDEX,
    index_page,
    job_page,
    run_address,
    run_changes,
    run_page,
    split_version,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

    from starlette.types import Receive, Scope, Send

    from codetaste.site.live.access import Access
    from codetaste.site.live.current_site import CurrentSite
    from codetaste.site.live.followed_run import FollowedRun

_TYPES = {
    ".css": "text/css",
    ".csv": "text/csv",
    ".diff": "text/plain",
    ".gz": "application/gzip",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".md": "text/plain",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
"""Other files are only offered for download."""
_HTML, _JSON = ".html", ".json"
_PATIENCE_S = 2.0
"""A reader waits so long for a new reading of the runs where an earlier one has the page."""
_SITE_THREADS = 4
_LIVE_THREADS = 2
"""Threads that make pages of the site, and those that make what open pages ask for again and again."""
_MAX_DEPTH = 50


class ViewApp:
    """The ASGI application.

    What open pages ask for again and again has threads of its own, so that it does not wait for pages that
    take long to make.
    """

    def __init__(self, access: Access, current: CurrentSite, runs: Sequence[FollowedRun]) -> None:
        self._access, self._current = access, current
        self._runs = {run.name: run for run in runs}
        self._readers = {run.name: Workers(1) for run in runs}
        self._site_makers, self._live_makers = Workers(_SITE_THREADS), Workers(_LIVE_THREADS)
        self._latest: dict[str, tuple[Hashable, bytes]] = {}
        """The last page of each kind, with the state that it shows."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what goes wrong is the answer to this request alone."""
        request = Request(scope, receive)
        try:
            response = self._access.refusal(request) or await self._answer(request)
        except Exception as error:  # noqa: BLE001 - one page cannot be made; the others still can
            notify(printable(f"codetaste: {request.url.path} cannot be made: {error!r}"))
            response = PlainTextResponse("this page cannot be made; codetaste view says why\n", 500)
        response.headers.update(HEADERS)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        address = request.url.path.removeprefix("/")
        if address == "favicon.ico":
            return Response(status_code=204)
        if address == "":
            return RedirectResponse(f"/{INDEX}", 303)
        if address.endswith("/"):
            address += "index.html"
        folder, _, rest = address.partition("/")
        if folder == "live":
            return await self._live(rest, request)
        if folder == "assets":
            content = await self._content(self._live_makers, address)
        else:
            await self._refresh(address)
            content = await _while_connected(request, partial(self._content, self._site_makers, address))
        if content is None:
            return self._missing(request)
        return _response(content, PurePosixPath(address).suffix)

    async def _content(self, makers: Workers, address: str) -> bytes | None:
        pages = self._current.pages
        return await makers.run((address, pages.reading), partial(pages.files.content, address))

    async def _refresh(self, address: str) -> None:
        """Read the runs on for a reader of a page; one that is not there yet may be new."""
        ended = self._ended_jobs()
        await self._current.refresh(ended, _PATIENCE_S if address in self._current.pages.files else math.inf)
        if address not in self._current.pages.files:
            await self._current.refresh(ended, math.inf)  # the first one may have begun too early

    async def _live(self, address: str, request: Request) -> Response:
        if address == "index.html":
            return await self._index()
        name, _, page = address.partition("/")
        answer = {"index.html": self._run, "changes.json": self._changes, "job.html": self._job}.get(page)
        if answer is None or name not in self._runs:
            return self._missing(request)
        run = self._runs[name]
        await self._poll(run)
        return await answer(run, request)

    async def _poll(self, run: FollowedRun) -> None:
        if run.is_due:
            await self._readers[run.name].run("poll", run.poll)

    async def _index(self) -> Response:
        runs = list(self._runs.values())
        for run in runs:
            await self._poll(run)
        state = (*(run.version for run in runs), self._current.pages.reading)
        body = await self._made(
            INDEX, state, lambda: index_page(self._current, [(run, run.view()) for run in runs])
        )
        return _response(body, _HTML)

    async def _run(self, run: FollowedRun, _: Request) -> Response:
        await self._current.refresh(self._ended_jobs())
        state = (run.version, self._current.pages.reading)
        body = await self._made(run_address(run), state, lambda: run_page(self._current, run, run.view()))
        return _response(body, _HTML)

    async def _changes(self, run: FollowedRun, request: Request) -> Response:
        since = request.query_params.get("since", "")
        version, reading = split_version(since)
        await self._current.refresh(self._ended_jobs())
        state = (since, run.version, self._current.pages.reading)
        body = await self._made(
            f"changes of {run.name}",
            state,
            lambda: run_changes(self._current, run, run.view(version), reading),
        )
        return _response(body, _JSON)

    async def _job(self, run: FollowedRun, request: Request) -> Response:
        key = request.query_params.get("key", "")

        def make() -> bytes | None:
            detail = run.detail(key)
            return None if detail is None else job_page(self._current, run, detail, time.time())

        body = await self._site_makers.run((run.name, key), make)
        return self._missing(request) if body is None else _response(body, _HTML)

    async def _made(self, page: str, state: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return a page in one state, which is made once for all who ask for it."""

        def make_once() -> bytes:
            # Asked again here: who asked a moment ago may have it made meanwhile.
            latest = self._latest.get(page)
            if latest is None or latest[0] != state:
                latest = self._latest[page] = (state, make())
            return latest[1]

        latest = self._latest.get(page)
        if latest is not None and latest[0] == state:
            return latest[1]
        return await self._live_makers.run((page, state), make_once)

    def _ended_jobs(self) -> int:
        return sum(run.ended_jobs for run in self._runs.values())

    def _missing(self, request: Request) -> Response:
        # Links are relative: the page stands as deep as the address that was asked for.
        depth = min(request.url.path.count("/") - 1, _MAX_DEPTH)
        address = "_/" * depth + "missing.html"
        page = render_page(self._current.pages.site, "live/missing.html", address, "There is no such page")
        return _response(page, _HTML, 404)


async def _while_connected(request: Request, make: Callable[[], Awaitable[bytes | None]]) -> bytes | None:
    """Return what ``make`` returns; give it up, and return None, when the reader has gone away."""
    made: bytes | None = None
    error: Exception | None = None
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            made = await make()
        except Exception as raised:  # noqa: BLE001 - raised again below, not wrapped into a group
            error = raised
        tasks.cancel_scope.cancel()
    if error is not None:
        raise error
    return made


def _response(body: bytes, suffix: str, status: int = 200) -> Response:
    """Return an answer; a browser interprets nothing but the kinds of files that the site has."""
    kind = _TYPES.get(suffix)
    headers = {} if kind is not None else {"Content-Disposition": "attachment"}
    return Response(body, status, headers, kind or "application/octet-stream")

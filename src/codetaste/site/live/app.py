"""The answers of ``codetaste view``: files of the site, made when asked for, and pages of live runs."""

from __future__ import annotations

import time
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from codetaste.console.streams import notify
from codetaste.core.text import printable
from codetaste.site.html.templates import render_page
from codetaste.site.live.access import HEADERS
from codetaste.site.live.background import run_in_background
from codetaste.site.live.pages import INDEX, index_page, job_page, run_changes, run_page, split_version

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class ViewApp:
    """The ASGI application."""

    def __init__(self, access: Access, current: CurrentSite, runs: Sequence[FollowedRun]) -> None:
        self._access, self._current = access, current
        self._runs = {run.name: run for run in runs}

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
        await self._current.refresh(self._ended_jobs(), eager=True)
        content = await run_in_background(partial(self._current.pages.files.content, address))
        if content is None:
            return self._missing(request)
        return _response(content, PurePosixPath(address).suffix)

    async def _live(self, address: str, request: Request) -> Response:
        if address == "index.html":
            views = [(run, await run_in_background(run.look)) for run in self._runs.values()]
            return _response(await run_in_background(partial(index_page, self._current, views)), _HTML)
        name, _, page = address.partition("/")
        answer = {"index.html": self._run, "changes.json": self._changes, "job.html": self._job}.get(page)
        if answer is None or name not in self._runs:
            return self._missing(request)
        return await answer(self._runs[name], request)

    async def _run(self, run: FollowedRun, _: Request) -> Response:
        view = await run_in_background(run.look)
        await self._current.refresh(self._ended_jobs(), eager=True)
        return _response(await run_in_background(partial(run_page, self._current, run, view)), _HTML)

    async def _changes(self, run: FollowedRun, request: Request) -> Response:
        version, reading = split_version(request.query_params.get("since", ""))
        view = await run_in_background(partial(run.look, version))
        await self._current.refresh(self._ended_jobs())
        return _response(
            await run_in_background(partial(run_changes, self._current, run, view, reading)), _JSON
        )

    async def _job(self, run: FollowedRun, request: Request) -> Response:
        detail = await run_in_background(partial(run.detail, request.query_params.get("key", "")))
        if detail is None:
            return self._missing(request)
        body = await run_in_background(partial(job_page, self._current, run, detail, time.time()))
        return _response(body, _HTML)

    def _ended_jobs(self) -> int:
        return sum(run.ended_jobs for run in self._runs.values())

    def _missing(self, request: Request) -> Response:
        # Links are relative: the page stands as deep as the address that was asked for.
        address = "_/" * (request.url.path.count("/") - 1) + "missing.html"
        page = render_page(self._current.pages.site, "live/missing.html", address, "There is no such page")
        return _response(page, _HTML, 404)


def _response(body: bytes, suffix: str, status: int = 200) -> Response:
    """Return an answer; a browser interprets nothing but the kinds of files that the site has."""
    kind = _TYPES.get(suffix)
    headers = {} if kind is not None else {"Content-Disposition": "attachment"}
    return Response(body, status, headers, kind or "application/octet-stream")

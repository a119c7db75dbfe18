"""Many requests at once: equal ones are one piece of work, and no page holds up the others."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from starlette.types import Receive, Scope, Send

from codetaste.site.live import app as app_module
from codetaste.site.live.access import Access
from codetaste.site.live.app import ViewApp
from codetaste.site.live.background import Workers
from codetaste.site.live.current_site import CurrentSite
from codetaste.site.live.serve import followed_runs
from codetaste.site.live.site_parts import SiteFiles
from support.site.journals import SESSION, job, started, write_journal
from support.site.requests import connected

MANY = 200
PAGE, CHANGES = "/live/run/index.html", "/live/run/changes.json"


class Arrivals:
    """The application, which tells when so many requests have arrived."""

    def __init__(self, app: ViewApp, count: int) -> None:
        self.all_there = threading.Event()
        self._app, self._missing = app, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._missing -= 1
        if self._missing == 0:
            self.all_there.set()
        await self._app(scope, receive, send)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "run", [SESSION, job("a"), started("a"), job("b")])


@pytest.fixture
def current(root: Path) -> CurrentSite:
    return CurrentSite([root], None, "runs")


@pytest.fixture
def app(root: Path, current: CurrentSite) -> ViewApp:
    return ViewApp(Access("127.0.0.1"), current, followed_runs([root]))


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What pages that are being made wait for; it is open after the test."""
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.mark.parametrize(("path", "maker"), [(PAGE, "run_page"), (CHANGES, "run_changes")])
def test_equal_requests_at_once_are_one_piece_of_work(
    app: ViewApp, current: CurrentSite, monkeypatch: pytest.MonkeyPatch, path: str, maker: str
) -> None:
    arrivals, made = Arrivals(app, MANY), Counter[str]()
    make: Callable[..., bytes] = getattr(app_module, maker)

    def make_late(*arguments: object) -> bytes:
        assert arrivals.all_there.wait(60)
        made[maker] += 1
        return make(*arguments)

    monkeypatch.setattr(app_module, maker, make_late)
    with connected(arrivals) as client:
        client.portal.call(current.refresh, 0, math.inf)
        answers = client.get_at_once([path] * MANY)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert made[maker] == 1


def test_page_of_a_state_is_made_once_also_for_later_requests(
    app: ViewApp, current: CurrentSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    make = app_module.run_page

    def make_counted(*given: Any) -> bytes:
        calls.append(given)
        return make(*given)

    monkeypatch.setattr(app_module, "run_page", make_counted)
    with connected(app) as client:
        client.portal.call(current.refresh, 0, math.inf)
        assert len({client.get(PAGE).content for _ in range(5)}) == 1
    assert len(calls) == 1


def test_error_is_the_answer_to_all_who_wait_and_to_no_later_request(
    app: ViewApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrivals = Arrivals(app, 5)
    make = app_module.run_page

    def fail(*_: object) -> bytes:
        assert arrivals.all_there.wait(60)
        raise ValueError("for a moment")

    monkeypatch.setattr(app_module, "run_page", fail)
    with connected(arrivals) as client:
        assert {answer.status_code for answer in client.get_at_once([PAGE] * 5)} == {500}
        monkeypatch.setattr(app_module, "run_page", make)
        assert client.get(PAGE).status_code == 200


def test_pages_that_take_long_hold_up_neither_live_pages_nor_style(
    app: ViewApp, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    content, going = SiteFiles.content, threading.Semaphore(0)

    def wait_with_content(files: SiteFiles, address: str) -> bytes | None:
        if not address.startswith("assets/"):
            going.release()
            assert gate.wait(60)
        return content(files, address)

    monkeypatch.setattr(SiteFiles, "content", wait_with_content)
    slow = [f"/trials/{number}.html" for number in range(MANY)]
    with connected(app) as client:
        answers = client.portal.start_task_soon(client.requests_at_once, slow)
        for _ in range(app_module._SITE_THREADS):
            assert going.acquire(timeout=60)
        for path in (PAGE, CHANGES, "/live/index.html", "/assets/site.css", "/assets/live.js"):
            assert client.get(path).status_code == 200
        # No more pages are being made than there are threads for them.
        assert not going.acquire(blocking=False)
        assert not answers.done()
        gate.set()
        assert {answer.status_code for answer in answers.result(60)} == {404}


def test_pages_that_no_reader_waits_for_any_more_are_not_made(
    app: ViewApp, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    made: list[str] = []
    going = threading.Semaphore(0)

    def content(_: SiteFiles, address: str) -> bytes | None:
        made.append(address)
        going.release()
        assert gate.wait(60)
        return b"page"

    monkeypatch.setattr(SiteFiles, "content", content)
    with connected(app) as client:
        busy = [f"/busy/{number}.html" for number in range(app_module._SITE_THREADS)]
        answers = client.portal.start_task_soon(client.requests_at_once, busy)
        for _ in busy:
            assert going.acquire(timeout=60)
        # Whoever reads these goes away before there is a thread for them.
        for number in range(20):
            assert client.leave(f"/left/{number}.html") == 404
        gate.set()
        assert {answer.content for answer in answers.result(60)} == {b"page"}
        assert client.get("/wanted.html").content == b"page"
    assert sorted(made) == sorted([*(path.removeprefix("/") for path in busy), "wanted.html"])


def test_workers_make_at_most_so_many_calls_at_once() -> None:
    workers, together, lock = Workers(3), Counter[str](), threading.Lock()
    barrier = threading.Barrier(3)

    def call() -> int:
        with lock:
            together["now"] += 1
            together["most"] = max(together["most"], together["now"])
        barrier.wait(60)
        with lock:
            together["now"] -= 1
        return threading.get_ident()

    async def start() -> set[int]:
        calls = [workers.start(number, call) for number in range(9)]
        return {await each.result() for each in calls}

    with start_blocking_portal() as portal:
        threads = portal.call(start)
    assert len(threads) == 3
    assert together["most"] == 3

"""A browser for tests of pages: the system's Chromium, driven by Playwright, which downloads nothing.

While a page of ``watched_page`` is open, every console error, every violation of the content security policy,
every exception of a script, every dialog and every request that leaves files and loopback is a failure of the
test. Playwright's event loop belongs to the thread that starts it: what runs another one, such as
``anyio.run``, needs a thread of its own there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
LOCAL_SCHEMES = {"file", "data", "blob", "about"}
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
GUARD_MS = 200_000.0
"""Tests wait for what happens in a page; only what never happens takes so long."""
SERIOUS = {"serious", "critical"}


def chromium_path() -> str | None:
    """Return the path of the system's Chromium; None if there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start Chromium without a window."""
    path = chromium_path()
    assert path is not None, "no chromium on PATH: apt-get install chromium"
    # Chromium's own sandbox refuses to run as root.
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched_page(
    browser: Browser, *, dark: bool = False, width: int = 1280, height: int = 900, javascript: bool = True
) -> Iterator[Page]:
    """Open a page that must do nothing wrong until it is closed."""
    context = browser.new_context(
        color_scheme="dark" if dark else "light",
        viewport={"width": width, "height": height},
        java_script_enabled=javascript,
        reduced_motion="reduce",
        accept_downloads=False,
    )
    context.set_default_timeout(GUARD_MS)
    page = context.new_page()
    faults: list[str] = []

    def watch_console(message: ConsoleMessage) -> None:
        if message.type == "error" or "Content Security Policy" in message.text:
            faults.append(f"console: {message.text}")

    def watch_request(request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in LOCAL_SCHEMES and address.hostname not in LOOPBACK:
            faults.append(f"request: {request.url}")

    context.on("console", watch_console)
    context.on("weberror", lambda error: faults.append(f"exception: {error.error}"))
    context.on("request", watch_request)

    def watch_failure(request: Request) -> None:
        # A reader who goes on before all has arrived aborts what is under way.
        if request.failure != "net::ERR_ABORTED":
            faults.append(f"failed: {request.url} {request.failure}")

    context.on("requestfailed", watch_failure)
    context.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
    context.on("page", lambda opened: faults.append(f"window: {opened.url}"))
    try:
        yield page
        page.wait_for_timeout(0)  # events that are on their way
    finally:
        context.close()
    assert not faults, "\n".join(faults)


def axe_findings(page: Page) -> list[str]:
    """Return the serious findings of axe on the page, one line each."""
    # Its preload reads style sheets through a connection, which our policy forbids.
    response = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]}).response
    return [
        f"{finding['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for finding in response["violations"]
        if finding["impact"] in SERIOUS
        for node in finding["nodes"]
    ]

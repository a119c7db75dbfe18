"""A page that changes while its reader works with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.site.browser import watched_page
from support.site.journals import (
    SESSION,
    append_journal,
    ended,
    job,
    reserved,
    settled,
    started,
    write_journal,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response, Route

pytestmark = pytest.mark.heavy
PAGE = "/live/run/index.html"


def has_changes(text: str) -> Callable[[Response], bool]:
    """Return what recognises changes of a page that have this text."""
    return lambda answer: "changes.json" in answer.url and text in answer.text()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "run", [SESSION, job("first"), job("second")])


def press(page: Page, link: str) -> None:
    """Move to a link and press the button without releasing it."""
    page.hover(link)
    page.mouse.down()


def test_click_is_not_lost_when_its_row_changes_before_the_button_is_released(
    root: Path, serve: Callable[[Path], str], browser: Browser
) -> None:
    address = serve(root)
    requests: list[Route] = []  # the page asks for no more while the button is pressed
    with watched_page(browser) as page:
        page.route("**/changes.json*", lambda route: requests.append(route))  # noqa: PLW0108 - it gets an attribute
        with page.expect_request("**/changes.json*"):
            page.goto(address + PAGE)
        press(page, "#live-jobs a:has-text('second')")
        append_journal(root, [started("second"), ended("second", "failed", error="why")])
        with page.expect_response(has_changes("failed")):
            requests[0].continue_()
        page.evaluate("() => new Promise((resolve) => requestAnimationFrame(resolve))")
        page.mouse.up()
        page.wait_for_url("**/live/run/job.html?key=second")
        assert "why" in page.inner_text("main")


def test_changed_row_keeps_its_focused_link_and_its_selected_text(
    root: Path, serve: Callable[[Path], str], browser: Browser
) -> None:
    address = serve(root)
    with watched_page(browser) as page:
        page.goto(address + PAGE)
        page.focus("#live-jobs a:has-text('second')")
        page.evaluate("getSelection().selectAllChildren(document.activeElement)")
        append_journal(root, [reserved("second", "c", "0.5"), settled("c", "0.25")])
        page.wait_for_selector("#live-jobs tr:has-text('second'):has-text('$0.25')")
        assert page.evaluate("getSelection().toString()") == "second"
        assert page.evaluate("document.activeElement.textContent") == "second"
        append_journal(root, [ended("second", "failed", error="why")])
        page.wait_for_selector("#live-jobs tr:first-child:has-text('second'):has-text('why')")
        assert page.evaluate("document.activeElement.textContent") == "second"
        page.keyboard.press("Enter")
        page.wait_for_url("**/live/run/job.html?key=second")


def test_rows_are_in_the_order_of_the_page_made_anew(
    root: Path, serve: Callable[[Path], str], browser: Browser
) -> None:
    address = serve(root)
    with watched_page(browser) as page:
        page.goto(address + PAGE)
        append_journal(root, [started("first"), job("third"), ended("first"), started("second")])
        page.wait_for_selector("#live-jobs tr:has-text('third')")
        keys = "[...document.querySelectorAll('#live-jobs tbody th')].map((cell) => cell.textContent)"
        changed = page.evaluate(keys)
        page.goto(address + PAGE)
        assert page.evaluate(keys) == changed

"""The page of a pass of discovery in a browser: rejected candidates, its conversation, keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from codetaste.site.build import site_files
from support.site.browser import axe_findings, watched_page
from support.site.passes import KEY, PAGE, REJECTED, record, write_conversation
from support.site.results import make_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy
NASTY = "<img src=x onerror=alert(1)><script>alert(1)</script>"


@pytest.fixture(scope="module")
def page_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    run, folder = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("site")
    replies = [f"reply {number} {NASTY}" for number in range(1, 301)]
    write_conversation(run, "find rules", "the task", *replies, "the needle")
    site = make_site([run], passes=(record(rejected=(REJECTED,), run=run, key=KEY),))
    for whole in site_files(site):
        for file in whole.with_parts():
            path = folder / file.address
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.make())
    return (folder / PAGE).as_uri()


def test_a_rejected_candidate_opens_by_keyboard(page_address: str, browser: Browser) -> None:
    with watched_page(browser) as page:
        page.goto(f"{page_address}#rejected-1")
        card = page.locator("#rejected-1")
        card.get_by_text("Matches in the base code").focus()
        page.keyboard.press("Enter")
        assert card.get_by_text("old(1)").is_visible()
        card.get_by_text("Rule", exact=True).focus()
        page.keyboard.press("Enter")
        assert card.get_by_text("- id: too-wide").is_visible()


def test_the_conversation_is_searched_to_its_end(page_address: str, browser: Browser) -> None:
    with watched_page(browser) as page:
        page.goto(f"{page_address}?q=needle")
        page.locator(".hits li").first.wait_for()
        assert page.locator(".hits li").count() == 1
        page.locator(".event.current", has_text="the needle").wait_for()
        assert page.locator(".event").count() < 300


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 400)])
def test_axe_finds_nothing_serious(page_address: str, browser: Browser, dark: bool, width: int) -> None:
    with watched_page(browser, dark=dark, width=width) as page:
        page.goto(page_address)
        for fold in page.locator("details > summary").all():
            fold.click()
        page.locator("#transcript-view .event").first.scroll_into_view_if_needed()
        assert axe_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

"""The page of a trial in a browser: marked lines, rules, the transcript, keys, attacks that do nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codetaste.results.read import read_results
from codetaste.site.build import open_site, site_files
from codetaste.site.site import Site, trial_address
from support.site.browser import axe_findings, watched_page
from support.site.hostile import write_hostile_run
from support.site.synthetic import Size, write_results

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy


class Written:
    """A site on disk, and the trial that the tests look at: the one with the most marked lines."""

    def __init__(self, site: Site, folder: Path) -> None:
        for whole in site_files(site):
            for file in whole.with_parts():
                path = folder / file.address
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.make())
        self.trial = max(site.trials, key=lambda each: (each.scores.prec or 0) * (each.scores.added or 0))
        self.page = (folder / trial_address(self.trial)).as_uri()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("made")
    _, run = write_results(folder, Size(instances=1, agents=2, settings=4))
    return Written(open_site(read_results([run]), "made"), folder / "site")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("hostile")
    run = write_hostile_run(folder)
    return Written(open_site(read_results([run]), "<i>hostile</i>"), folder / "site")


def test_keys_go_from_marked_line_to_marked_line_and_to_the_rule(written: Written, browser: Browser) -> None:
    with watched_page(browser) as page:
        page.goto(written.page)
        page.wait_for_selector(".lines .row")
        page.keyboard.press("n")
        first = page.locator(".row.current")
        first.wait_for()
        assert "marked" in (first.get_attribute("class") or "")
        assert re.search("additive|reductive|left", first.inner_text())
        line = page.evaluate("location.hash")
        page.keyboard.press("n")
        page.wait_for_function("before => location.hash !== before", arg=line)
        page.keyboard.press("p")
        page.wait_for_function("before => location.hash === before", arg=line)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_function("() => location.hash.startsWith('#rule-')")
        rule = page.evaluate("location.hash").removeprefix("#")
        assert page.locator(f"[id='{rule}']").is_visible()
        page.go_back()
        page.wait_for_function("before => location.hash === before", arg=line)


def test_an_address_of_a_line_shows_the_line(written: Written, browser: Browser) -> None:
    with watched_page(browser) as page:
        page.goto(written.page)
        page.wait_for_selector(".lines .row")
        page.keyboard.press("n")
        page.wait_for_selector(".row.current")
        address, text = page.url, page.locator(".row.current").inner_text()
    with watched_page(browser) as page:
        page.goto(address)
        page.wait_for_selector(".row.current")
        assert page.locator(".row.current").inner_text() == text
        assert page.locator(".row.current").is_visible()


def test_the_golden_patch_is_beside_it(written: Written, browser: Browser) -> None:
    with watched_page(browser) as page:
        page.goto(f"{written.page}?patch=pair")
        page.wait_for_selector(".pair")
        assert page.locator(".pair > div").count() % 2 == 0
        page.get_by_role("button", name="Golden patch", exact=True).click()
        page.wait_for_url("**patch=golden**")
        page.wait_for_selector(".file .lines .row")


def test_words_are_found_in_the_transcript_and_events_have_addresses(
    written: Written, browser: Browser
) -> None:
    with watched_page(browser) as page:
        page.goto(f"{written.page}#event-3")
        page.wait_for_selector(".event.current")
        word = re.findall(r"[a-z]{5,}", page.locator(".event.current").inner_text())[-1]
    with watched_page(browser) as page:
        page.goto(f"{written.page}?q={word}")
        page.wait_for_selector(".hits li")
        page.wait_for_selector("#transcript progress", state="detached")
        page.locator(".hits li a").first.click()
        page.wait_for_function("() => location.hash.startsWith('#event-')")
        page.wait_for_selector(".event.current")
        assert word in page.locator(".event.current").inner_text().lower()
        page.get_by_role("button", name="tool results").click()
        page.locator(".event.result:visible").wait_for(state="hidden")


def test_attacks_are_text(hostile: Written, browser: Browser) -> None:
    with watched_page(browser) as page:
        page.goto(hostile.page)
        page.wait_for_selector(".lines .row.add")
        assert "onerror=alert(2)" in page.locator(".lines .row.add").first.inner_text()
        assert "⟨U+202E⟩" in page.locator(".lines .row.add").first.inner_text()
        page.keyboard.press("t")
        page.wait_for_selector(".event.call summary")
        page.locator(".event.call summary").first.click()
        assert "alert(1)" in page.locator(".event.call pre").first.inner_text()
        page.locator("#rule-table button.button").first.click()
        page.wait_for_selector(".rule-more pre")
        page.locator("#transcript input[type=search]").fill("<img")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hits li mark")


def test_it_can_be_read_without_scripts(written: Written, browser: Browser) -> None:
    with watched_page(browser, javascript=False) as page:
        page.goto(written.page)
        assert page.locator("#patch-excerpt tr.marked").count()
        assert page.locator("#rule-table tbody tr").count()
        assert page.locator("#transcript-excerpt .event").count()
        target = page.locator("#patch-excerpt tr.marked td.mark a").first.get_attribute("href")
        assert target is not None
        assert page.locator(f"[id='{target.removeprefix('#')}']").count() == 1


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 380)])
def test_axe_finds_nothing_serious(written: Written, browser: Browser, *, dark: bool, width: int) -> None:
    with watched_page(browser, dark=dark, width=width) as page:
        page.goto(written.page)
        page.wait_for_selector(".lines .row")
        page.keyboard.press("t")
        page.wait_for_selector(".events .event")
        assert axe_findings(page) == []

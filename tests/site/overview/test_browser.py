"""The overview pages in Chromium: by keyboard alone, without scripts, beside attacks, for screen readers."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codetaste.results.read import read_results
from codetaste.site.output.write import write_site
from support.site.browser import axe_findings, watched_page
from support.site.studies import write_studies
from support.site.synthetic import Size, write_results

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy

ATTACK = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
TEXT = f"javascript:alert(1) \u202e\x1b[31m{ATTACK}"
PAGES = ("index.html", "compare/index.html", "instances/index.html", "rules/index.html", "search/index.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of made-up results, unpacked from its archive in another place."""
    size = Size(instances=3, agents=2, settings=2, lines=0.02, turns=3, rules=3)
    folder = tmp_path_factory.mktemp("browser")
    _, run = write_results(folder, size)
    trial = read_results([run]).trials.agents[0]
    write_studies(run, trial.instance, trial.agent)
    written = write_site(read_results([run]), folder / "report.zip", "a report")
    with zipfile.ZipFile(written.index) as archive:
        archive.extractall(folder / "elsewhere")
    return folder / "elsewhere/report"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of results in which every text attacks."""
    size = Size(instances=1, agents=2, settings=1, lines=0.02, turns=1, rules=2)
    folder = tmp_path_factory.mktemp("hostile")
    benchmark, run = write_results(folder, size)
    for path in run.rglob("qwen3/agent_config.json"):
        path.unlink()
    for path in run.rglob("agent_config.json"):
        config = json.loads(path.read_text()) | {"id": f"{path.parent.name}{TEXT}"}
        path.write_text(json.dumps(config))
    for path in run.rglob("inference_metadata.json"):
        metadata = json.loads(path.read_text())
        metadata["additional"]["message"] = TEXT
        path.write_text(json.dumps(metadata | {"message": TEXT}))
    for path in run.rglob("inference.out"):
        event = {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}
        path.write_text(f"{path.read_text()}{json.dumps(event)}\n")
    for path in run.rglob("*.sarif"):
        path.write_text(path.read_text().replace("The new interface", json.dumps(TEXT)[1:-1]))
    for path in benchmark.rglob("*.md"):
        path.write_text(TEXT)
    for path in benchmark.rglob("rules_*.yml"):
        path.write_text(path.read_text().replace("message: The", f"message: {json.dumps(TEXT)} #"))
    return write_site(read_results([run]), folder / "report", TEXT).index.parent


def test_from_the_leaderboard_to_a_marked_line_and_back_by_keyboard(browser: Browser, site: Path) -> None:
    with watched_page(browser) as page:
        page.goto((site / "index.html").as_uri())
        for key in ("g", "t"):
            page.keyboard.press(key)
        page.wait_for_url("**/trials/index.html")
        page.keyboard.press("/")
        page.keyboard.type("instructed")
        page.wait_for_function("document.querySelector('.count').textContent.startsWith('6 of')")
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/trials/synthetic/**")
        page.wait_for_selector(".lines .row")
        page.keyboard.press("n")
        page.wait_for_selector(".row.current")
        page.wait_for_function("() => location.hash.startsWith('#L')")
        current = page.locator(".row.current")
        assert "marked" in str(current.get_attribute("class")).split()
        assert page.url.endswith(f"#{current.get_attribute('id')}")
        assert current.locator(".mark a").count() > 0, "the rule is named beside the line"
        page.keyboard.press("g")
        page.keyboard.press("h")
        page.wait_for_selector("h1:text-is('Leaderboard')")
        assert page.url == (site / "index.html").as_uri()


def test_a_table_is_sorted_and_filtered_by_its_address(browser: Browser, site: Path) -> None:
    with watched_page(browser) as page:
        page.goto(f"{(site / 'trials/index.html').as_uri()}?agent=sonnet-4.5&trials.sort=7.descending")
        rows = page.locator("#trials tbody tr:visible")
        assert rows.count() == 6
        values = [float(each) for each in rows.locator("td:nth-child(8)").all_inner_texts() if each != "–"]
        assert values == sorted(values, reverse=True)


def test_trials_are_filtered_by_failure_label(browser: Browser, site: Path) -> None:
    with watched_page(browser) as page:
        page.goto((site / "trials/index.html").as_uri())
        page.get_by_label("Mark").select_option("shim instead of the change")
        assert page.locator("#trials tbody tr:visible").count() == 1
        assert "mark=shim" in page.url
        page.get_by_label("Outcome").select_option("all")
        page.get_by_label("Mark").select_option("all")
        assert page.locator("#trials tbody tr:visible").count() == 12


def test_a_long_table_is_complete_to_who_scrolls_sorts_filters_or_follows_an_address(
    browser: Browser, site: Path
) -> None:
    rows = "".join(
        f"<tr><td id='row-{n}'>{n}</td><td>{'even' if n % 2 == 0 else 'odd'}</td></tr>" for n in range(1000)
    )
    head = "<thead><tr><th class='num'>Number</th><th data-filter='kind'>Kind</th></tr></thead>"
    table = f"<table class='data' id='long' data-sortable data-filters>{head}{rows}</table>"
    links = "<link rel='stylesheet' href='assets/site.css'><script src='assets/site.js' defer></script>"
    (site / "long.html").write_text(
        f"<!doctype html>{links}<body data-root='.'><main><div class='scroll tall'>{table}</div>"
    )
    address = (site / "long.html").as_uri()
    with watched_page(browser) as page:
        page.goto(address)
        visible = page.locator("#long tbody tr:visible")
        assert page.locator(".count").inner_text() == "1,000 of 1,000 rows"
        assert 100 < visible.count() < 500
        while visible.count() < 1000:
            shown = visible.count()
            visible.last.scroll_into_view_if_needed()
            page.wait_for_function(
                "n => document.querySelectorAll('#long tbody tr:not(.later)').length > n", arg=shown
            )
        page.get_by_role("button", name="Number").click()
        assert visible.first.inner_text().startswith("999")
        page.get_by_label("Kind").select_option("even")
        assert visible.first.inner_text().startswith("998")
        assert page.locator(".count").inner_text() == "500 of 1,000 rows"
        page.goto(f"{address}#row-900")
        page.reload()
        page.locator("#row-900").wait_for(state="visible")


def test_any_two_systems_are_compared(browser: Browser, site: Path) -> None:
    with watched_page(browser) as page:
        page.goto((site / "compare/index.html").as_uri())
        page.select_option("#system-b", index=3)
        page.wait_for_selector("#chosen table tbody tr")
        assert page.locator("#chosen tbody tr").count() == 3
        assert "differ in agent and in track and mode" in page.locator("#chosen").inner_text()
        assert "b=" in page.url
        page.select_option("#system-b", index=0)
        assert "Both are the same." in page.locator("#chosen").inner_text()
        page.evaluate("codetaste.data.systems.pairs = {}")
        page.select_option("#system-b", index=1)
        assert "--table differences has the test" in page.locator("#chosen").inner_text()
        page.select_option("#system-b", index=3)
        page.reload()
        page.wait_for_selector("#chosen table tbody tr")
        page.get_by_role("link", name="second patch").first.click()
        page.wait_for_url("**/trials/synthetic/**")


def test_words_lead_to_transcripts(browser: Browser, site: Path) -> None:
    with watched_page(browser) as page:
        page.goto(f"{(site / 'search/index.html').as_uri()}?q=engineer&kind=trial")
        page.wait_for_selector("#results li")
        assert page.locator("#results li").count() == 12


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_has_no_serious_finding(browser: Browser, site: Path, dark: bool, width: int) -> None:
    pages = [*PAGES, *(next(iter(sorted(site.glob(each)))).relative_to(site) for each in _KINDS)]
    with watched_page(browser, dark=dark, width=width) as page:
        for name in pages:
            page.goto((site / name).as_uri())
            assert axe_findings(page) == [], name
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


_KINDS = (
    "compare/*/index.html",
    "instances/*/index.html",
    "agents/*/index.html",
    "settings/*/index.html",
    "groups/language.html",
    "figures/index.html",
    "trials/index.html",
)


def test_pages_are_complete_without_scripts(browser: Browser, site: Path) -> None:
    with watched_page(browser, javascript=False) as page:
        page.goto((site / "index.html").as_uri())
        assert page.locator("#board tbody tr").count() == 4
        page.get_by_role("link", name="Trials").click()
        page.locator("#trials tbody th a").first.click()
        assert page.locator("table.diff tr").count() > 0


def test_attacks_run_nothing_and_change_no_page(browser: Browser, hostile: Path) -> None:
    pages = sorted(hostile.rglob("*.html"))
    assert len(pages) > 10
    with watched_page(browser) as page:
        for path in pages:
            page.goto(path.as_uri())
            page.wait_for_load_state("networkidle")  # a picture that an attack loads has failed by then
            assert page.evaluate("document.title") != "owned"
            assert page.locator("img[src=x]").count() == 0
            assert page.locator("a[href^='javascript:' i]").count() == 0
            assert "\u202e" not in page.locator("body").inner_text()
            assert page.locator("footer").count() == 1


@pytest.mark.parametrize("width", [320, 400, 769, 1280])
def test_texts_of_the_drawing_of_costs_are_readable_at_every_width(
    browser: Browser, site: Path, width: int
) -> None:
    with watched_page(browser, width=width) as page:
        page.goto((site / "index.html").as_uri())
        heights = page.evaluate(
            """[...document.querySelectorAll("#cost + figure svg text")]
                .filter((text) => text.checkVisibility())
                .map((text) => [text, text.ownerSVGElement.getScreenCTM().a])
                .map(([text, scale]) => scale * parseFloat(getComputedStyle(text).fontSize))"""
        )
        assert min(heights) >= 11
        assert page.evaluate("document.documentElement.scrollWidth") == width

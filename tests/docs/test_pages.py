"""The pages have short lines, and their links and the files that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codetaste.harness.adapter import adapter_names, load_adapter

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [path for folder in (CHECKOUT, CHECKOUT / "perf") for path in sorted(folder.glob("*.md"))]
PAGES += sorted((CHECKOUT / "docs").rglob("*.md"))
MAX_COLUMNS = 120
each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(CHECKOUT).as_posix())


def prose(text: str) -> str:
    """Return the page with empty lines in place of fenced code."""
    return re.sub(r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_no_line_outside_tables_and_code_is_longer_than_120_columns(path: Path) -> None:
    lines = enumerate(prose(path.read_text("utf-8")).splitlines(), 1)
    long = [number for number, line in lines if len(line) > MAX_COLUMNS and not line.startswith("|")]
    assert long == []


@each_page
def test_every_link_resolves(path: Path) -> None:
    text = path.read_text("utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", prose(text)):
        page = path.parent / target if target else path
        assert page.exists(), target
        if anchor:
            assert anchor in anchors(page.read_text("utf-8")), f"{target}#{anchor}"


@each_page
def test_every_named_file_of_the_checkout_exists(path: Path) -> None:
    if path.name == "CHANGELOG.md":
        return  # it also names what was removed
    pattern = r"`((?:src|tests|docs|\.ci|examples|prompts|agents|perf)/[\w./-]+)(?::\w+)?`"
    named = re.findall(pattern, prose(path.read_text("utf-8")))
    assert [name for name in named if not (CHECKOUT / name).exists()] == []


@pytest.mark.parametrize("name", adapter_names())
def test_page_of_requests_has_every_tested_release(name: str) -> None:
    page = (CHECKOUT / "docs/agent-requests.md").read_text("utf-8")
    versions = load_adapter(name, CHECKOUT).manifest.versions
    assert f"## {name}\n" in page
    assert f"| sent | {' | '.join(versions)} |" in page, "tests/support/harness/record_requests.py makes it"
    assert "(refused)" not in page


def test_the_index_lists_every_page() -> None:
    index = CHECKOUT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^):#]+)\)", index.read_text())}
    assert {page for page in (CHECKOUT / "docs").rglob("*.md") if page != index} <= linked

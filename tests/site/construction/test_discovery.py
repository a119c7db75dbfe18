"""Pages of discovery: numbers of the report's tables, rules with their places, nothing executed."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from codetaste.orchestration.job import Status
from codetaste.report.discovery.passes import PassRecord
from codetaste.report.discovery.tables import DISCOVERY_TABLES, discovery_tables
from codetaste.report.ending import ending_of
from codetaste.report.render.csv import render_csv
from codetaste.rules.registration import Direction, RegisteredRule
from support.site.results import make_site, site_texts

NASTY = "<script>alert(1)</script>\u202e\x1b[31m"
GOLDEN = """diff --git a/pack/a.py b/pack/a.py
--- a/pack/a.py
+++ b/pack/a.py
@@ -1,2 +1,3 @@
 same
-old
+new one
+new two
"""


def rule(name: str, *lines: tuple[str, int], message: str = "says why") -> RegisteredRule:
    body = {"id": name, "message": message, "severity": "INFO", "languages": ["python"], "pattern": "f(...)"}
    return RegisteredRule(name, body, 0, len(lines), frozenset(lines))


def record(direction: Direction = Direction.ADDITIVE, **changes: Any) -> PassRecord:
    known = {
        "system": "m",
        "instance": "o__r-12345678",
        "direction": direction,
        "ending": ending_of(Status.DONE, None, ""),
        "turns": 3,
        "tool_calls": 4,
        "usd": Decimal("0.25"),
        "rules": (rule("new-names", ("pack/a.py", 2), ("pack/a.py", 3), ("pack/b.py", 9)),),
        "rejections": Counter({"overlaps": 2}),
    }
    return PassRecord(**{**known, **changes})


def benchmark(folder: Path, patch: str = GOLDEN) -> Any:
    (folder / "golden.diff").write_text(patch)
    instance = SimpleNamespace(id="o__r-12345678")
    return SimpleNamespace(instances=[instance], golden_path=lambda _: folder / "golden.diff")


def test_overview_has_the_tables_of_the_report() -> None:
    passes = (record(), record(Direction.REDUCTIVE), record(system="other"))
    made = site_texts(make_site(passes=passes))
    assert made["discovery/tables.csv"] == render_csv(discovery_tables(passes, DISCOVERY_TABLES))
    page = made["discovery/index.html"]
    for address in made:
        if address.endswith("index.html") and address.startswith("discovery/") and address.count("/") > 1:
            assert f'href="{address.removeprefix("discovery/")}"' in page


def test_page_of_a_pass_has_its_rules_and_the_golden_lines_that_they_cover(tmp_path: Path) -> None:
    made = site_texts(make_site(passes=(record(),), benchmark=benchmark(tmp_path)))
    page = made["discovery/m/o__r-12345678/additive/index.html"]
    assert 'id="rule-new-names"' in page
    assert "pattern: f(...)" in page
    assert "covers 3 lines, 2 of which the golden patch changes" in page
    assert "2 overlaps" in page
    assert "2, of which rules cover 2" in page
    assert page.count('class="add marked"') == 2
    [stored] = json.loads(made["discovery/m/o__r-12345678/additive/rules.json"])["rules"]
    assert RegisteredRule.from_json(stored) == record().rules[0]


def test_reductive_rules_are_compared_with_removed_lines(tmp_path: Path) -> None:
    old = record(Direction.REDUCTIVE, rules=(rule("old-name", ("pack/a.py", 2)),))
    made = site_texts(make_site(passes=(old,), benchmark=benchmark(tmp_path)))
    page = made["discovery/m/o__r-12345678/reductive/index.html"]
    assert "1, of which rules cover 1" in page
    assert page.count('class="del marked"') == 1


def test_without_a_golden_patch_the_page_says_so() -> None:
    page = site_texts(make_site(passes=(record(),)))["discovery/m/o__r-12345678/additive/index.html"]
    assert "the benchmark has no golden patch of this instance" in page


def test_untrusted_texts_are_text() -> None:
    bad = record(
        system=NASTY,
        instance=NASTY,
        rules=(rule(NASTY, (NASTY, 1), message=NASTY),),
        rejections=Counter({NASTY: 1}),
        ending=ending_of(Status.FAILED, None, NASTY),
    )
    for address, text in site_texts(make_site(passes=(bad,))).items():
        assert address.isascii()
        assert ".." not in address
        assert "\x1b" not in text
        if address.endswith(".html"):
            assert "<script>alert" not in text
            assert "\u202e" not in text


def test_a_pass_without_rules_has_a_page() -> None:
    page = site_texts(make_site(passes=(record(rules=(), rejections=Counter()),)))
    assert "No rule was registered" in page["discovery/m/o__r-12345678/additive/index.html"]

"""Pages of discovery: numbers of the report's tables, rules with their places, nothing executed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from codetaste.agent.rejected_rule import RejectedMatch, RejectedRule
from codetaste.orchestration.job import Status
from codetaste.report.discovery.tables import DISCOVERY_TABLES, discovery_tables
from codetaste.report.ending import ending_of
from codetaste.report.render.csv import render_csv
from codetaste.results.benchmarks import RunBenchmarks
from codetaste.rules.registration import Direction, RegisteredRule
from support.site.passes import KEY, PAGE, REJECTED, record, rule, write_conversation
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


def benchmarks(folder: Path, patch: str = GOLDEN) -> RunBenchmarks:
    (folder / "golden.diff").write_text(patch)
    instance = SimpleNamespace(id="o__r-12345678")
    opened: Any = SimpleNamespace(
        root=folder, instances=[instance], golden_path=lambda _: folder / "golden.diff"
    )
    return RunBenchmarks({folder: opened})


def test_the_search_has_the_rules_of_passes() -> None:
    each = record()
    documents = site_texts(make_site(passes=(each,)))["search/documents.js"]
    address = f"discovery/{each.system}/{each.instance}/{each.direction}/index.html#rule-{each.rules[0].id}"
    assert f'"{address}"' in documents


def test_overview_has_the_tables_of_the_report() -> None:
    passes = (record(), record(Direction.REDUCTIVE), record(system="other"))
    made = site_texts(make_site(passes=passes))
    assert made["discovery/tables.csv"] == render_csv(discovery_tables(passes, DISCOVERY_TABLES))
    page = made["discovery/index.html"]
    for address in made:
        if address.endswith("index.html") and address.startswith("discovery/") and address.count("/") > 1:
            assert f'href="{address.removeprefix("discovery/")}"' in page


def test_page_of_a_pass_has_its_rules_and_the_golden_lines_that_they_cover(tmp_path: Path) -> None:
    made = site_texts(make_site(passes=(record(),), benchmarks=benchmarks(tmp_path)))
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
    made = site_texts(make_site(passes=(old,), benchmarks=benchmarks(tmp_path)))
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
        rejected=(
            RejectedRule(
                *(NASTY, NASTY, NASTY, NASTY, NASTY, 1, 2),
                matches=(RejectedMatch(NASTY, NASTY, 1, 1, NASTY),),
                detailed=True,
            ),
        ),
        ending=ending_of(Status.FAILED, None, NASTY),
    )
    for address, text in site_texts(make_site(passes=(bad,))).items():
        assert address.isascii()
        assert ".." not in address
        assert "\x1b" not in text
        if address.endswith(".html"):
            assert "<script>alert" not in text
            assert "\u202e" not in text


def test_long_messages_and_reasons_are_cut_on_the_page_and_say_so() -> None:
    long = "x" * 300_000
    rejected = RejectedRule("id", "unreadable", long, long, long, 1, 2, matches=(), detailed=True)
    bad = record(rules=(rule("a", ("src/a.py", 1), message=long),), rejected=(rejected,))
    pages = site_texts(make_site(passes=(bad,)))
    for address, text in pages.items():
        assert not address.endswith("index.html") or len(text) < 100_000
    assert any("… (300,000 characters)" in text for text in pages.values())
    assert any(long in text for address, text in pages.items() if address.endswith("rules.json"))


def test_a_pass_without_rules_has_a_page() -> None:
    page = site_texts(make_site(passes=(record(rules=(), rejected=()),)))
    assert "No rule was registered" in page["discovery/m/o__r-12345678/additive/index.html"]


def test_a_rejected_rule_has_its_text_the_reason_and_the_matches_that_led_to_it() -> None:
    made = site_texts(make_site(passes=(record(rejected=(REJECTED, RejectedRule("later", "overlaps"))),)))
    page = made[PAGE]
    assert "1 matches wrong tree" in page
    assert "It must not match in the base code, where it has 2 matches." in page
    assert "2 matches before the refactoring, 30 matches after it." in page
    assert "- id: too-wide" in page
    assert "Matches in the base code" in page
    assert "pack/a.py:7 (2 lines)" in page
    assert "old(1)\nold(2)" in page
    assert page.count("Details are not recorded.") == 1
    stored = json.loads(made[PAGE.replace("index.html", "rules.json")])
    assert RejectedRule.from_json(stored["rejected"][0]) == REJECTED
    assert stored["rejections"] == {"matches_wrong_tree": 1, "overlaps": 1}


def test_runs_that_have_recorded_kinds_only_are_shown() -> None:
    page = site_texts(make_site(passes=(record(),)))[PAGE]
    assert "2 overlaps" in page
    assert "rules, reasons and matches of these candidates are not recorded" in page


def test_the_conversation_of_a_pass_is_on_its_page(tmp_path: Path) -> None:
    write_conversation(tmp_path, "find rules", f"the task {NASTY}", "I look at the code")
    made = site_texts(make_site(passes=(record(run=tmp_path, key=KEY),)))
    page, folder = made[PAGE], PAGE.removesuffix("/index.html")
    assert "I look at the code" in page
    assert 'id="event-additive-3"' in page
    assert "<script>alert" not in page
    assert f'data-folder="{folder}"' in page
    assert '"turns":1' in made[f"{folder}/transcript.js"]
    assert f"{folder}/transcript-0-0.js" in made


def test_a_pass_whose_run_is_gone_says_that_nothing_is_recorded(tmp_path: Path) -> None:
    page = site_texts(make_site(passes=(record(run=tmp_path / "gone", key=KEY),)))[PAGE]
    assert "No conversation is recorded." in page

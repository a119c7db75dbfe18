"""Tables in all four formats: the paper's layout, and escaping of any name."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.benchmark.layout import GOLDEN, NULL
from codetaste.core.text import printable
from codetaste.core.units import format_usd
from codetaste.report.render.csv import HEADER, render_csv, spreadsheet_safe
from codetaste.report.render.latex.escape import escape as latex_escape
from codetaste.report.render.latex.render import render_latex
from codetaste.report.render.markdown import escape as markdown_escape
from codetaste.report.render.markdown import render_markdown
from codetaste.report.render.text import render_text
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.intervals import mean_interval
from codetaste.report.statistics.measures import Unit
from codetaste.report.statistics.merge import merge_runs
from codetaste.report.statistics.view import AggregatedTrials, aggregate_trials
from codetaste.report.table import Column, Row, Table, format_cell
from codetaste.report.tables.groups import GroupBy
from codetaste.report.tables.report import TABLE_NAMES, make_report
from codetaste.report.tables.scores import table_3, table_4, table_5
from support.evaluation.records import several, trial

ODD_NAMES = [
    "a/b|c",
    "<b>bold</b> & $x$ # 100% ~ ^ _under_ {brace} \\cmd",
    "new\nline\r\n\ttab\x1b[31mred\x1b[0m\x07",
    "=1+1",
    "[x](http://example.org) www.example.org @someone `code` *star*",
    "漢字かな交じり文 é ĸ 🙂",
    "\u202eright-to-left\u200b",
    "",
]


def hundred_trials(agent: str, *, lane: str, passed: int, ifr: float) -> list:
    """Return as many trials as the paper has; ``passed`` of them pass, IFR is spread evenly about ``ifr``."""
    return [
        trial(
            agent,
            f"o__r{place}-1",
            ifr + (place % 5 - 2) * 0.02,
            lane=lane,
            passed=place < passed,
            prec=0.5,
            added=10,
            removed=5,
        )
        for place in range(100)
    ]


@pytest.fixture
def aggregated() -> AggregatedTrials:
    records = [
        *hundred_trials("GPT-5.2", lane="instructed/direct", passed=76, ifr=0.9),
        *hundred_trials("GPT-5.2", lane="open/plan", passed=87, ifr=0.1),
        *hundred_trials("Qwen3", lane="instructed/direct", passed=30, ifr=0.4),
        *several(GOLDEN, [1.0] * 3, lane="/direct", passed=True, prec=0.575),
        *several(NULL, [0.0] * 3, lane="/direct", passed=True, prec=0.0),
    ]
    return aggregate_trials(merge_runs(records), Aggregation.STRICT)


def test_table_4_is_laid_out_as_in_the_paper(aggregated: AggregatedTrials) -> None:
    text = render_text(table_4(aggregated))
    assert [line.split()[0] for line in text.splitlines()[2:11]] == [
        "Mode",
        "GPT-5.2",
        "Instructed",
        "Open",
        "Qwen3",
        "Instructed",
        "References",
        "Golden",
        "Base",
    ]
    assert re.search(
        r"Mode +PASS \(%\) +A \(%\) +A⁺ \(%\) +A⁻ \(%\) +IFR \(%\) +IFR⁺ \(%\) +IFR⁻ \(%\)", text
    )
    assert re.search(r"Instructed +76\.0 ± 8\.5 +68\.\d ± \d\.\d", text)
    assert re.search(r"Instructed +30\.0 ± 9\.1", text)
    assert re.search(r"Golden Patch +100\.0 +100\.0", text)
    assert re.search(r"Base Commit +100\.0 +0\.0", text)


def test_table_4_in_latex_has_a_column_for_each_half_of_an_interval(aggregated: AggregatedTrials) -> None:
    latex = render_latex(table_4(aggregated))
    assert r"\begin{tabular}{@{}lr@{}lr@{}lr@{}lr@{}lr@{}lr@{}lr@{}lr@{}}" in latex
    assert r"\multicolumn{2}{c}{$\mathcal{A}^{+}$ (\%)}" in latex
    assert r"\quad Instructed & 76.0 & \,$\pm$\,8.5 &" in latex


def test_table_3_has_three_columns_per_agent_and_table_5_no_intervals(
    aggregated: AggregatedTrials,
) -> None:
    three = render_markdown(table_3(aggregated)).splitlines()
    assert three[2].count("PASS") == 2
    assert three[4].startswith("| Instructed | 90.0 | 90.0 | 76.0 |")
    five = render_markdown(table_5(aggregated))
    assert "| 50.0 [48.2, 51.8] |" not in five
    assert re.search(r"\| 15\.0 \| 10\.0 \| 5\.0 \| 100 \|", five)


def test_asymmetric_interval_is_written_by_its_ends() -> None:
    column = Column("ifr", "IFR", Unit.FRACTION)
    table = Table("t", "x", (Column("a", "A"), column), (Row(("b", mean_interval([1.0] * 3))),))
    assert "100.0 [43.9, 100.0]" in render_text(table)
    assert r"100.0 & \,{[}43.9, 100.0{]}" in render_latex(table)


def width_of(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_text_fits_width_and_repeats_row_titles(aggregated: AggregatedTrials, width: int) -> None:
    wide = render_text(table_4(aggregated))
    narrow = render_text(table_4(aggregated), width)
    assert all(width_of(line) <= width for line in narrow.splitlines())
    assert narrow.count("Golden Patch") >= (2 if width < max(map(len, wide.splitlines())) else 1)
    numbers = re.compile(r"\d+\.\d")
    in_wide, in_narrow = (
        sorted(numbers.findall(text.split("·")[0].replace("GPT-5.2", ""))) for text in (wide, narrow)
    )
    assert in_wide == in_narrow


def test_text_table_is_aligned_for_any_names() -> None:
    column = Column("n", "n", Unit.COUNT)
    table = Table("t", "x", (Column("a", "A"), column), tuple(Row((name, 7)) for name in ODD_NAMES))
    lines = render_text(table).splitlines()[2:]
    assert len(lines) == len(ODD_NAMES) + 1
    assert len({width_of(line) for line in lines}) == 1


ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=40) | st.sampled_from(ODD_NAMES)


@given(ANY_TEXT)
@settings(max_examples=80, deadline=None)
def test_text_table_stays_printable_for_any_text(text: str) -> None:
    table = Table("t", text, (Column("a", text, heading=text),), (Row((text,), text),), (text,), "", "agent")
    rendered = render_text(table, 60)
    assert all(char.isprintable() or char == "\n" for char in rendered)
    assert len(rendered.splitlines()) < 30


@given(ANY_TEXT)
@settings(max_examples=80, deadline=None)
def test_markdown_row_stays_one_row_for_any_text(text: str) -> None:
    table = Table("t", text, (Column("a", "A"), Column("n", "n")), (Row((text, "end")),))
    row = render_markdown(table).split("\n")[4]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3
    assert row.endswith(" | end |")


def test_markdown_escapes_names() -> None:
    from markdown_it import MarkdownIt

    for name in ODD_NAMES:
        tokens = MarkdownIt("commonmark").enable("strikethrough").parseInline(f"x {markdown_escape(name)} x")
        kinds = {child.type for token in tokens for child in token.children or []}
        assert kinds <= {"text", "text_special"}, name
        shown = "".join(child.content for token in tokens for child in token.children or [])
        assert shown == f"x {printable(name)} x"
    for link in ("www.example.org", "https://example.org", "@someone"):
        assert link not in markdown_escape(link)


def braces_balance(text: str) -> bool:
    depth = 0
    for char in re.sub(r"\\[\\{}]", "", text):
        depth += (char == "{") - (char == "}")
        if depth < 0:
            return False
    return depth == 0


@given(ANY_TEXT)
@settings(max_examples=120, deadline=None)
def test_latex_escapes_any_text(text: str) -> None:
    escaped = latex_escape(text)
    assert braces_balance(escaped)
    bare = re.sub(
        r"\\(text[a-z]+|ldots)\{\}|\{\\char34\}|\\[{}$&#%_]|\$\^\{[+-]\}\$|\$\\[a-z]+\$", "", escaped
    )
    assert not set(bare) & set("\\$&#%_^~<>|")
    assert not re.search(r"--|(?<!\{)[\[*`]", bare)
    assert all(ord(char) < 0x100 for char in bare)


def cells_in(line: str) -> int:
    spans = [int(span) for span in re.findall(r"\\multicolumn\{(\d+)\}", line)]
    return len(re.findall(r"(?<!\\)&", line)) + 1 + sum(span - 1 for span in spans)


def odd_report() -> tuple[Table, ...]:
    records = [
        trial(name or "nameless", f"o__r{place}-1", 0.1 * place, passed=place > 2, language=name, lane=lane)
        for name in ODD_NAMES
        for place in range(4)
        for lane in ("instructed/direct", "open/plan")
    ]
    groups = [GroupBy.LANGUAGE, GroupBy.TRACK, GroupBy.AGENT]
    return make_report(merge_runs(records), None, TABLE_NAMES, groups, list(Aggregation)).tables


def test_latex_tables_have_balanced_environments_and_equal_rows() -> None:
    for table in odd_report():
        latex = render_latex(table)
        assert braces_balance(latex)
        assert re.findall(r"\\begin\{(\w+)\}", latex) == re.findall(r"\\end\{(\w+)\}", latex)[::-1]
        for part in latex.split(r"\begin{tabular}")[1:]:
            rows = [line for line in part.splitlines() if line.endswith(r"\\")]
            assert len({cells_in(row) for row in rows}) == 1


def test_csv_of_all_tables_has_exact_numbers_with_units(aggregated: AggregatedTrials) -> None:
    lines = list(
        csv.reader(
            io.StringIO(render_csv([table_4(aggregated), table_5(aggregated)]), newline=""), strict=True
        )
    )
    assert tuple(lines[0]) == HEADER
    assert {len(line) for line in lines} == {len(HEADER)}
    rows = [dict(zip(HEADER, line, strict=True)) for line in lines[1:]]
    (cell,) = [
        row
        for row in rows
        if (row["section"], row["row"], row["column"]) == ("GPT-5.2", "Instructed", "passed")
    ]
    assert (cell["table"], cell["aggregation"], cell["unit"], cell["method"]) == (
        "4",
        "strict",
        "fraction",
        "t",
    )
    assert float(cell["value"]) == 0.76
    assert float(cell["high"]) == pytest.approx(0.8451694759994242, rel=1e-12)


@given(ANY_TEXT)
@settings(max_examples=80, deadline=None)
def test_csv_line_stays_one_line_without_formula_for_any_text(text: str) -> None:
    table = Table(
        "t", "x", (Column("a", "A"), Column("n", "n", Unit.COUNT)), (Row((text, -1), text),), (), "", "s"
    )
    rendered = render_csv([table])
    lines = list(csv.reader(io.StringIO(rendered, newline=""), strict=True))
    assert [len(line) for line in lines] == [len(HEADER)] * 2
    assert lines[1][7] == "-1"
    assert spreadsheet_safe(text).lstrip()[:1] not in {"=", "+", "-", "@"}
    assert rendered.endswith("\r\n")


def test_equal_aggregations_are_shown_once_and_different_ones_separately() -> None:
    alike = make_report(merge_runs(several("a", [0.5, 0.7])), None, ("4",), [], list(Aggregation)).tables
    assert [table.aggregation for table in alike] == ["strict and published agree"]
    apart = make_report(merge_runs(several("a", [0.5, None])), None, ("4",), [], list(Aggregation)).tables
    assert [table.aggregation for table in apart] == ["strict", "published"]
    assert "25.0" in render_text(apart[0])
    assert "50.0" in render_text(apart[1])


@given(st.floats(1e-11, 1e6))
def test_an_amount_is_never_shown_as_zero_and_tables_show_it_like_all_other_texts(amount: float) -> None:
    column = Column("cost_usd", "Cost", Unit.USD)
    shown, _ = format_cell(amount, column)
    assert format_usd(amount) == f"${shown}"
    assert 0.94 * amount <= float(shown) <= 1.06 * amount
    assert format_cell(mean_interval([amount, amount], fractions=False), column)[0] == shown


def test_small_amounts_have_two_digits_and_others_cents() -> None:
    column = Column("cost_usd", "Cost", Unit.USD)
    shown = [format_cell(amount, column)[0] for amount in (0, 12.345, 0.1, 0.0123, 0.0009, 0.000021)]
    assert shown == ["0.00", "12.35", "0.10", "0.0123", "0.00090", "0.000021"]
    assert format_cell(mean_interval([0.002, 0.003, 0.007], fractions=False), column) == (
        "0.0040",
        " ± 0.0066",
    )


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "0.0"), (1.5, "0.03"), (6.0, "0.1"), (150.0, "2.5")])
def test_a_time_below_a_tenth_of_a_minute_has_two_decimals(seconds: float, text: str) -> None:
    assert format_cell(seconds, Column("time_s", "Time", Unit.SECONDS))[0] == text

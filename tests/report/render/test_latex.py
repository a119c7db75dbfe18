"""LaTeX tables fit the width and the height of a page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.filter_result import Stage
from codetaste.mining.funnel import FunnelRow
from codetaste.report.render.latex.render import render_latex
from codetaste.report.render.latex.text_width import shorten_to, text_width
from codetaste.report.render.paper import PaperWidth
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.report.tables.funnel import funnel_reasons_table, funnel_table
from codetaste.report.tables.groups import GroupBy
from codetaste.report.tables.report import TABLE_NAMES, make_report
from codetaste.swe_refactor.report.tables import TRIAL_TABLES, report_tables
from support.figures.synthetic import synthetic_results

HOSTILE = (
    "gpt-5.2 & co_$100^2 ~ 漢字" + "x" * 80,
    "<b>{}\\end{table}\\input{/etc/passwd}",
    "claude-code-4.5-sonnet-2026-10-01-thinking-medium",
    "m" * 120,
    "codex mini (run-1)",
)
DOCUMENT = r"""\documentclass[twocolumn]{article}
\usepackage{booktabs}
\setlength{\textwidth}{6.75in}\setlength{\columnsep}{0.25in}\setlength{\textheight}{9in}
\setlength{\columnwidth}{3.25in}\setlength{\hsize}{3.25in}\setlength{\linewidth}{3.25in}
\begin{document}
%s
\end{document}
"""


def all_tables() -> list[Table]:
    results = synthetic_results((*HOSTILE, *(f"agent-{number}" for number in range(7))), 12, answers=180)
    tables = list(make_report(results.trials, None, TABLE_NAMES, list(GroupBy), [Aggregation.STRICT]).tables)
    funnel = [
        FunnelRow(
            stage,
            f"filter_{number}",
            10**number,
            10**number // 2,
            3,
            (("a long reason why N commits were removed, such as /a/path/to/a/file.py", 3),),
            ("owner/repository-with-a-long-name@0123456789abcdef",),
            Decimal("1.5"),
        )
        for stage in Stage
        for number in range(1, 9)
    ]
    tables += [funnel_table(funnel), funnel_reasons_table(funnel)]
    return [*tables, *report_tables(results.answers.rows, TRIAL_TABLES, sample=("instance-1",))]


@given(st.text(max_size=80), st.floats(1, 30))
def test_a_shortened_text_fits(text: str, width: float) -> None:
    short = shorten_to(text, width)
    assert short == text or text_width(short) <= max(width, text_width("…"))


@given(st.integers(1, 12), st.integers(1, 40), st.sampled_from(PaperWidth))
def test_every_cell_is_in_one_part(columns: int, rows: int, width: PaperWidth) -> None:
    titles = (
        Column("name", "Name"),
        *(Column(f"c{at}", f"A title {at}", Unit.COUNT) for at in range(columns)),
    )
    made = [Row((f"row-{row}-", *(1000 * row + at for at in range(columns)))) for row in range(rows)]
    text = render_latex(Table("t", "x", titles, tuple(made)), width).replace(",", "")
    for row in range(rows):
        for at in range(columns):
            assert len(re.findall(rf"& {1000 * row + at} [&\\]", text)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("width", PaperWidth)
def test_all_tables_compile_and_fit(width: PaperWidth, tmp_path: Path, require: Callable[..., None]) -> None:
    require("pdflatex")
    body = "\n\n\\clearpage\n".join(
        f"\\typeout{{TABLE {table.name}}}\n{render_latex(table, width)}" for table in all_tables()
    )
    (tmp_path / "t.tex").write_text(DOCUMENT % body, "utf-8")
    command = ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=120)
    log = done.stdout.decode(errors="replace")
    assert done.returncode == 0, log[-2000:]
    assert not re.findall(r"TABLE .*|Overfull \\.box.*|Float too large.*", log.replace("TABLE", "")), log

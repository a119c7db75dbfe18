"""Figures from results: their files, their bytes, and what they lack."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from codetaste.errors import ToolMissing
from codetaste.figures.figure import FigureFile, MissingFigure
from codetaste.figures.make import make_figures
from codetaste.figures.names import FIGURE_FORMATS, FIGURE_NAMES, FigureName
from codetaste.report.render.paper import PaperWidth
from codetaste.results.read import RunResults
from support.figures.synthetic import synthetic_results

HOSTILE = (
    "$x_1^2$ $",
    "<script>alert(1)</script>&amp;",
    "\x1b[31mred\x1b[0m\nnewline\x00",
    "\u202eright to left\u2066",
    "漢字 שלום 🙂 \ud800",
    r"\textbf{a}\\ %s {0}",
    "a" * 300,
    "a" * 299 + "b",
    "",
)
NAMES: tuple[FigureName, ...] = ("scores", "endings", "heatmap", "strategies")
SCRIPT = """
import sys
from pathlib import Path
from codetaste.figures.make import make_figures
from codetaste.figures.names import FIGURE_FORMATS
from codetaste.report.render.paper import PaperWidth
from support.figures.synthetic import synthetic_results
results = synthetic_results(2, 3, answers=12)
for made in make_figures(results, sys.argv[2:], FIGURE_FORMATS, PaperWidth.COLUMN):
    (Path(sys.argv[1]) / made.file_name).write_bytes(made.content)
"""


def drawn(
    results: RunResults, *names: FigureName, width: PaperWidth = PaperWidth.PAGE
) -> list[tuple[str, ET.Element]]:
    """Return the drawings as SVG."""
    made = list(make_figures(results, names, ("svg",), width))
    assert not [each for each in made if isinstance(each, MissingFigure)]
    return [
        (each.name, ET.fromstring(each.content))
        for each in made
        if isinstance(each, FigureFile) and each.format == "svg"
    ]


@pytest.mark.heavy
def test_the_bytes_depend_on_the_results_alone_and_no_other_file_is_left(tmp_path: Path) -> None:
    home, temporary, out = (tmp_path / name for name in ("home", "tmp", "out"))
    for folder in (home / ".config" / "matplotlib", temporary, out):
        folder.mkdir(parents=True)
    (home / ".config" / "matplotlib" / "matplotlibrc").write_text("axes.facecolor: red\nfont.size: 30\n")
    environment = {
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYTHONHASHSEED": "4242",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C",
        "PATH": os.environ["PATH"],
    }
    subprocess.run([sys.executable, "-c", SCRIPT, str(out), *NAMES], env=environment, check=True, timeout=120)
    assert not list(temporary.iterdir())
    assert [path.name for path in home.rglob("*") if path.is_file()] == ["matplotlibrc"]
    results = synthetic_results(2, 3, answers=12)
    here = {
        each.file_name: each.content
        for each in make_figures(results, NAMES, FIGURE_FORMATS, PaperWidth.COLUMN)
        if isinstance(each, FigureFile)
    }
    assert {path.name: path.read_bytes() for path in out.iterdir()} == here


def test_a_pdf_embeds_its_font_and_has_no_date() -> None:
    pdf, _ = make_figures(synthetic_results(2, 2), ("endings",), ("pdf",))
    assert isinstance(pdf, FigureFile)
    assert b"/FontFile2" in pdf.content
    assert b"/Type3" not in pdf.content
    assert b"CreationDate" not in pdf.content


@pytest.mark.parametrize("width", PaperWidth)
def test_names_of_agents_are_text_and_nothing_else(width: PaperWidth) -> None:
    results = synthetic_results(HOSTILE, 2, ("instructed/direct", "open/plan"))
    for _, root in drawn(results, "scores", "cost", "endings", "heatmap", width=width):
        assert not [tag for tag in root.iter() if tag.tag.endswith(("}script", "}a", "}foreignObject"))]
        assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(width.inches * 72)


@pytest.mark.parametrize("width", PaperWidth)
def test_a_heat_map_of_one_instance_has_room_for_long_names(width: PaperWidth) -> None:
    results = synthetic_results(["W" * 300, "M" * 300, "x" * 40, "y", "z"], 1, ("open/direct",))
    ((_, root),) = drawn(results, "heatmap", width=width)  # matplotlib warns if a map has no room left
    assert float(root.attrib["height"].removesuffix("pt")) <= 9 * 72


def test_a_figure_without_data_is_named_with_what_it_needs() -> None:
    made = list(make_figures(synthetic_results(0, 0)))
    assert [each.name for each in made] == list(FIGURE_NAMES)
    assert all(isinstance(each, MissingFigure) and each.reason.startswith("it needs ") for each in made)


@pytest.mark.heavy
@pytest.mark.parametrize("width", PaperWidth)
def test_many_agents_and_instances_fit_a_page(width: PaperWidth) -> None:
    results = synthetic_results(60, 100, ("open/direct",))
    for name, root in drawn(results, "scores", "endings", "heatmap", "cost", width=width):
        assert float(root.attrib["height"].removesuffix("pt")) <= 9 * 72, name


def test_without_the_extra_there_is_one_line_on_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.startswith(("codetaste.figures.kinds", "codetaste.figures.drawing")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ToolMissing, match=r"^figures need matplotlib .*; install codetaste\[report\]$"):
        next(make_figures(synthetic_results(1, 1)))

"""Draw the gallery of docs/guide/figures.md anew: ``python tests/support/figures/gallery.py``."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path.insert(0, str(TESTS))

from codetaste.figures.figure import FigureFile  # noqa: E402 - the path is set first
from codetaste.figures.make import make_figures  # noqa: E402
from codetaste.report.render.paper import PaperWidth  # noqa: E402
from support.figures.synthetic import synthetic_results  # noqa: E402

FOLDER = TESTS.parent / "docs" / "guide" / "figures"
SHOWN = ("scores-open", "cost", "endings", "directions", "heatmap-open-plan", "languages", "strategies")
AGENTS = ("gpt-5.2", "sonnet-4.5", "gpt-5.1-mini", "qwen3-coder")


def main() -> None:
    """Write the PNG of each figure shown."""
    FOLDER.mkdir(exist_ok=True)
    results = synthetic_results(AGENTS, 24, answers=360)
    names = ("scores", "cost", "endings", "directions", "heatmap", "languages", "strategies")
    for made in make_figures(results, names, ("png",), PaperWidth.PAGE):
        if isinstance(made, FigureFile) and made.format == "png" and made.name in SHOWN:
            (FOLDER / made.file_name).write_bytes(made.content)


if __name__ == "__main__":
    main()

"""The options of ``codetaste report`` for figures, and the files of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from codetaste.cli.tables import make_folder
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.files import write_atomically
from codetaste.errors import ConfigError
from codetaste.figures.figure import MissingFigure
from codetaste.figures.make import make_figures
from codetaste.figures.names import FIGURE_NAMES, FigureFormat, FigureName
from codetaste.report.render.paper import PaperWidth

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.report.statistics.aggregate import Aggregation
    from codetaste.results.read import RunResults


@dataclass(frozen=True, slots=True)
class FigureOptions:
    """Which figures are drawn, and how.

    Attributes:
        figure: Draw this figure, instead of tables; its numbers are written beside it as CSV.
        figure_format: Format of figures; give it again for each further one.
        width: Width of figures, and of tables in LaTeX: that of a column or of a page of a paper.
    """

    figure: Annotated[tuple[Literal[FigureName, "all"], ...], Parameter(negative=())] = ()
    figure_format: Annotated[tuple[FigureFormat, ...], Parameter(negative=())] = ("svg",)
    width: PaperWidth = PaperWidth.PAGE


NO_FIGURES: Final = FigureOptions()


def write_figures(
    results: RunResults, options: FigureOptions, aggregation: Aggregation, out: Path | None, *, as_json: bool
) -> int:
    """Write a file for each figure and format, and one for its numbers; print their paths.

    Returns:
        The exit code, 1 if the results have the data of none of these figures.

    Raises:
        ConfigError: there is no folder, or it cannot be made.
        ToolMissing: matplotlib is not installed.
        StorageFull: no space is left.
        JournalError: a file cannot be written.
    """
    if out is None:
        raise ConfigError("figures are files: name their folder with --out DIR")
    make_folder(out, "--out")
    names = FIGURE_NAMES if "all" in options.figure else [each for each in options.figure if each != "all"]
    files: list[str] = []
    missing: list[MissingFigure] = []
    for made in make_figures(results, names, options.figure_format, options.width, aggregation):
        if isinstance(made, MissingFigure):
            missing.append(made)
        else:
            files.append(str(write_atomically(out / made.file_name, made.content)))
    for each in missing:
        notify(f"codetaste: no figure {each.name}: {each.reason}")
    if as_json:
        absent = [{"name": each.name, "reason": each.reason} for each in missing]
        print_result(json_document({"files": files, "missing_figures": absent}))
    elif files:
        print_result("\n".join(files))
    return 0 if files else 1

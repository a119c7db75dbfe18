"""The figures of the results as a page, each with its numbers, where matplotlib is installed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from codetaste.errors import ToolMissing
from codetaste.figures.figure import FigureFile, MissingFigure
from codetaste.figures.make import make_figures
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.site.site import Site

ADDRESS = "figures/index.html"
_FORMATS: Final = ("svg", "pdf")
_SHOWN, _NUMBERS = "svg", "csv"


class ShownFigure(NamedTuple):
    """A figure of the page: its name, its title, and its files by format."""

    name: str
    title: str
    files: dict[str, str]


def figures_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page with the files of all figures; they are drawn once, when the page is made."""
    drawn: list[FigureFile | MissingFigure | ToolMissing] = []
    yield SiteFile(ADDRESS, partial(_page, site, drawn), partial(_parts, site, drawn))


def _draw(site: Site, drawn: list[FigureFile | MissingFigure | ToolMissing]) -> None:
    if drawn:
        return
    try:
        drawn += make_figures(site.results, formats=_FORMATS, rules=site.rule_verdicts)
    except ToolMissing as missing:
        drawn.append(missing)


def _page(site: Site, drawn: list[FigureFile | MissingFigure | ToolMissing]) -> bytes:
    _draw(site, drawn)
    figures: dict[str, ShownFigure] = {}
    for file in drawn:
        if isinstance(file, FigureFile):
            shown = figures.setdefault(file.name, ShownFigure(file.name, file.title, {}))
            shown.files[file.format] = _address(file)
    return render_page(
        site,
        "overview/figures.html",
        ADDRESS,
        "Figures",
        figures=[each for each in figures.values() if _SHOWN in each.files],
        shown=_SHOWN,
        missing=[each for each in drawn if isinstance(each, MissingFigure)],
        problems=[str(each) for each in drawn if isinstance(each, ToolMissing)],
    )


def _parts(site: Site, drawn: list[FigureFile | MissingFigure | ToolMissing]) -> Iterator[SiteFile]:
    _draw(site, drawn)
    for file in drawn:
        if isinstance(file, FigureFile):
            yield SiteFile(_address(file), partial(_content, file))


def _content(file: FigureFile) -> bytes:
    return file.content


def _address(file: FigureFile) -> str:
    return f"figures/{file.file_name}"

"""Make the files of figures from results; matplotlib, of the extra ``report``, is imported only here."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from codetaste.errors import ToolMissing
from codetaste.figures.data import FigureData
from codetaste.figures.names import FIGURE_FORMATS, FIGURE_NAMES
from codetaste.report.render.paper import PaperWidth
from codetaste.report.statistics.aggregate import Aggregation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from codetaste.figures.figure import FigureFile, MissingFigure
    from codetaste.figures.names import FigureFormat, FigureName
    from codetaste.results.read import RunResults
    from codetaste.results.rows.rule import RuleVerdict

_CATALOGUE: Final = "codetaste.figures.kinds.catalogue"
_FOLDER_VARIABLE: Final = "MPLCONFIGDIR"


def make_figures(
    results: RunResults,
    names: Sequence[FigureName] = FIGURE_NAMES,
    formats: Sequence[FigureFormat] = FIGURE_FORMATS,
    width: PaperWidth = PaperWidth.PAGE,
    aggregation: Aggregation = Aggregation.STRICT,
    rules: Sequence[RuleVerdict] | None = None,
) -> Iterator[FigureFile | MissingFigure]:
    """Draw figures one after another; with each come its numbers as CSV. Blocking.

    The bytes depend on the arguments alone: not on the time, the machine's fonts or its locale. A name may
    give several figures, such as one for each track, and a ``MissingFigure`` if the results lack its data.

    Args:
        results: what is drawn.
        names: the kinds of figures, each once.
        formats: the formats of each drawing.
        width: the width of each drawing.
        aggregation: how trials without a score enter means.
        rules: the verdicts on the rules of these results, if they are read already: that takes seconds.

    Raises:
        ToolMissing: matplotlib is not installed.
    """
    data = FigureData(results, aggregation, rules)
    draw = _import_drawing()
    for name in dict.fromkeys(names):
        yield from draw(data, name, formats, width)


def _import_drawing() -> Callable[..., Iterable[FigureFile | MissingFigure]]:
    try:
        with _no_files():
            catalogue = import_module(_CATALOGUE)
    except ImportError as error:
        raise ToolMissing(f"figures need matplotlib ({error}); install codetaste[report]") from error
    found: Callable[..., Iterable[FigureFile | MissingFigure]] = catalogue.draw_figures
    return found


@contextmanager
def _no_files() -> Iterator[None]:
    """Let matplotlib, if it is not imported yet, write its list of fonts to a folder that is removed."""
    if "matplotlib" in sys.modules:
        yield
        return
    before = os.environ.get(_FOLDER_VARIABLE)
    with TemporaryDirectory(prefix="codetaste-figures-") as folder:
        os.environ[_FOLDER_VARIABLE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[_FOLDER_VARIABLE]
            else:
                os.environ[_FOLDER_VARIABLE] = before

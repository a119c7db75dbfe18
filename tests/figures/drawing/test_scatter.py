"""Numbers beside the points of a scatter plot."""

from __future__ import annotations

from itertools import combinations

import pytest
from matplotlib.text import Annotation, Text

from codetaste.figures.drawing.panels import percent_axis
from codetaste.figures.drawing.scatter import AgentPoint, number_points, scatter_grid
from codetaste.figures.drawing.span import Span
from codetaste.figures.drawing.style import figure_style
from codetaste.report.render.paper import PaperWidth


@pytest.mark.parametrize("width", PaperWidth)
def test_each_point_of_a_crowd_and_at_an_edge_has_a_number_that_can_be_read(width: PaperWidth) -> None:
    crowd = [(0.5 + number % 4 / 100, 0.5 + number // 4 / 100) for number in range(10)]
    places = [*crowd, (0.0, 0.0), (0.99, 0.99), (0.99, 0.5)]
    points = [
        AgentPoint(f"agent {number}", Span(x, x, x), Span(y, y, y), marked=number % 3 == 0)
        for number, (x, y) in enumerate(places)
    ]
    panels = {"one": points, "two": points[::-1], "three": points[:2], "four": points}
    with figure_style():
        figure, axes = scatter_grid(panels, width)
        for each in axes:
            percent_axis(each, "x")
            percent_axis(each, "y")
        number_points(figure, axes, panels)
        figure.draw_without_rendering()
        for each, own in zip(axes, panels.values(), strict=True):
            texts = [text for text in each.texts if isinstance(text, Annotation)]
            assert sorted(text.get_text() for text in texts) == sorted(
                str(places.index((point.x.mean, point.y.mean)) + 1) for point in own
            )
            boxes = [Text.get_window_extent(text) for text in texts]  # without the line to the point
            panel = each.get_window_extent()
            assert all(panel.x0 <= box.x0 and box.x1 <= panel.x1 + 1 for box in boxes)
            assert all(panel.y0 <= box.y0 and box.y1 <= panel.y1 + 1 for box in boxes)
            assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))

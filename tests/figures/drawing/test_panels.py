"""Axes of panels."""

from __future__ import annotations

from itertools import pairwise

import pytest

from codetaste.figures.drawing.panels import money_axis, panel_grid, percent_axis
from codetaste.figures.drawing.style import figure_style
from codetaste.report.render.paper import PaperWidth


@pytest.mark.parametrize("ratio", [1.0, 7.0, 9.0, 11.0, 14.0, 42.0, 59.0, 61.0, 900.0])
@pytest.mark.parametrize("low", [0.0007, 0.0021, 0.3, 4.0])
def test_amounts_beside_a_narrow_axis_do_not_touch(low: float, ratio: float) -> None:
    with figure_style():
        figure, axes = panel_grid(4, 4, PaperWidth.PAGE, 1.7)
        for each in axes:
            each.plot([low, low * ratio], [0, 1])
            percent_axis(each, "y")
            money_axis(each, [low, low * ratio])
        figure.draw_without_rendering()
        for each in axes:
            first, last = each.get_xlim()
            labels = zip(each.get_xticks(), each.get_xticklabels(), strict=True)
            boxes = [label.get_window_extent() for value, label in labels if first <= value <= last]
            assert boxes
            assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))

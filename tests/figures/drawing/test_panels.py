"""Axes of panels."""

from __future__ import annotations

from itertools import pairwise

import pytest

from codetaste.figures.drawing.panels import count_axis, money_axis, panel_grid, percent_axis
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


@pytest.mark.parametrize("low", [0.002, 0.011, 0.03, 0.9])
@pytest.mark.parametrize("ratio", [8.5, 30.0, 61.0, 400.0])
def test_a_logarithmic_axis_of_costs_has_two_labels_or_more(low: float, ratio: float) -> None:
    _, (axes,) = panel_grid(1, 1, PaperWidth.PAGE, 1.7)
    money_axis(axes, [low, low * ratio])
    first, last = axes.get_xlim()
    assert sum(first <= tick <= last for tick in axes.get_xticks()) >= 2


@pytest.mark.parametrize("top", [0.03, 0.12, 0.5, 0.93, 0.95, 1.0])
def test_an_axis_in_percent_ends_at_a_tick(top: float) -> None:
    _, (axes,) = panel_grid(1, 1, PaperWidth.PAGE, 1.7)
    percent_axis(axes, "x", top=top)
    last = max(axes.get_xticks())
    assert top <= last <= axes.get_xlim()[1]
    assert last == 1 or top <= 0.8


@pytest.mark.parametrize("highest", [0, 1, 2, 6, 300])
def test_ticks_of_counts_are_whole_numbers(highest: int) -> None:
    _, (axes,) = panel_grid(1, 1, PaperWidth.PAGE, 1.7)
    count_axis(axes, "y", highest)
    assert all(tick == int(tick) for tick in axes.get_yticks())
    assert axes.get_ylim()[1] > highest

"""Labels of points: each is near its point, and none hides another one while there is room."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.site.overview.scatter.labels import CHAR_WIDTH, LINE_HEIGHT, Box, LabelPlace, place_labels

FRAME = Box(0, 0, 720, 340)


def covered(place: LabelPlace, label: str) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a label, without the room around it."""
    width = CHAR_WIDTH * len(label)
    left = place.x - width if place.at_end else place.x
    return left, place.y - LINE_HEIGHT + 2, left + width, place.y


def hide(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize(
    "points",
    [
        [(100.0, 100.0)] * 8,
        [(100.0 + each, 100.0 - each) for each in range(8)],
        [(100.0, 100.0 + 9 * each) for each in range(8)],
        [(2.0 * each, 340.0) for each in range(8)],
    ],
)
def test_labels_of_near_points_are_all_readable(points: list[tuple[float, float]]) -> None:
    labels = [f"{letter}1" for letter in "abcdefgh"]
    boxes = [covered(*each) for each in zip(place_labels(points, labels, FRAME), labels, strict=True)]
    assert not any(hide(one, other) for one, other in combinations(boxes, 2))
    circles = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    assert not any(hide(box, circle) for box in boxes for circle in circles)
    assert all(box[0] >= 0 and box[2] <= 720 and box[1] >= 0 and box[3] <= 340 for box in boxes)


@given(st.lists(st.tuples(st.floats(0, 700), st.floats(0, 380)), max_size=40))
def test_a_label_is_near_its_point(points: list[tuple[float, float]]) -> None:
    places = place_labels(points, ["A1"] * len(points), FRAME)
    assert len(places) == len(points)
    for (x, y), place in zip(points, places, strict=True):
        assert abs(place.x - x) <= 9
        assert abs(place.y - y) <= 14 * LINE_HEIGHT

"""Places of the labels of points, so that none hides another one or a point."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RADIUS = 6.0
CHAR_WIDTH, LINE_HEIGHT = 8.0, 13.0
_GAP = 2.0
_STEPS = 12
"""Lines above or below a point at which its label may stand."""


class LabelPlace(NamedTuple):
    """Where a label's base line begins, or ends with ``at_end``."""

    x: float
    y: float
    at_end: bool


class Box(NamedTuple):
    """A rectangle; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether both have a common area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def place_labels(
    points: Sequence[tuple[float, float]], labels: Sequence[str], frame: Box
) -> list[LabelPlace]:
    """Return the place of the label of each point: the nearest one in ``frame`` where it hides nothing.

    Args:
        points: the middles of the points, in the drawing's units, y downwards.
        labels: their texts, of one line.
        frame: the area of the drawing in which labels may stand.
    """
    circles = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in points]
    # Points on the same place are one circle, beside which all their labels stand.
    taken = list(dict.fromkeys(circles))
    places: list[LabelPlace] = []
    for (x, y), label in zip(points, labels, strict=True):
        candidates = list(_candidates(x, y))
        place = next(
            (each for each in candidates if _is_free(_box(each, label), taken, frame)), candidates[0]
        )
        taken.append(_box(place, label))
        places.append(place)
    return places


def _candidates(x: float, y: float) -> Iterator[LabelPlace]:
    """Yield places beside a point: right before left, above before below, near before far."""
    for step, above, at_end in product(range(_STEPS), (True, False), (False, True)):
        beside = (RADIUS + _GAP) * (-1 if at_end else 1)
        down = -RADIUS - step * LINE_HEIGHT if above else RADIUS + (step + 0.7) * LINE_HEIGHT
        yield LabelPlace(round(x + beside, 1), round(y + down, 1), at_end)


def _box(place: LabelPlace, label: str) -> Box:
    width = CHAR_WIDTH * len(label)
    left = place.x - width if place.at_end else place.x
    return Box(left, place.y - LINE_HEIGHT + _GAP, left + width, place.y + _GAP)


def _is_free(box: Box, taken: Sequence[Box], frame: Box) -> bool:
    inside = box.left >= frame.left and box.right <= frame.right
    inside = inside and box.top >= frame.top and box.bottom <= frame.bottom
    return inside and not any(box.overlaps(each) for each in taken)

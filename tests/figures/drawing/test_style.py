"""Series can be told apart in colour, in grey, and by marker or hatch."""

from __future__ import annotations

from itertools import combinations, pairwise

from codetaste.figures.drawing.style import SERIES

DEFICIENCIES = {
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
"""Machado, Oliveira and Fernandes (2009), severity 1, of linear RGB."""


def linear(colour: str) -> tuple[float, ...]:
    values = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return tuple(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values)


def lightness(colour: str) -> float:
    """L* of CIELAB, 0..100."""
    red, green, blue = linear(colour)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


def test_no_two_series_share_a_marker() -> None:
    assert len({each.marker for each in SERIES}) == len(SERIES)


def test_neighbours_differ_in_lightness() -> None:
    for first, second in pairwise(SERIES):
        assert abs(lightness(first.colour) - lightness(second.colour)) >= 8, (first, second)


def test_colours_of_equal_lightness_differ_in_their_hatch() -> None:
    for first, second in combinations(SERIES, 2):
        near = abs(lightness(first.colour) - lightness(second.colour)) < 15
        assert not near or first.hatch != second.hatch, (first, second)


def test_readers_with_few_colours_tell_the_first_four_apart() -> None:
    for matrix in DEFICIENCIES.values():
        seen = [
            [
                sum(weight * value for weight, value in zip(row, linear(each.colour), strict=True))
                for row in matrix
            ]
            for each in SERIES[:4]
        ]
        for first, second in combinations(seen, 2):
            assert sum(abs(a - b) for a, b in zip(first, second, strict=True)) > 0.15

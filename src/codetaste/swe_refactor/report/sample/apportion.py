"""Seats distributed in proportion to weights, within limits: how many instances each type gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

Key = TypeVar("Key", bound="Hashable")


def apportion(
    seats: int, weights: Mapping[Key, float], least: Mapping[Key, int], most: Mapping[Key, int]
) -> dict[Key, int]:
    """Return the number of seats of each key, by Webster's method within ``least`` and ``most``.

    Each key has its least number; the others go one by one to the key with the highest weight divided by
    2·n + 1 among those with n seats that can have more; the first of equal ones gets it. Weights that are
    whole numbers and sum up to ``seats`` are returned as they are if the limits allow.

    Raises:
        ValueError: the limits do not allow that many.
    """
    given = {key: least[key] for key in weights}
    if not sum(given.values()) <= seats <= sum(most[key] for key in weights):
        raise ValueError(f"{seats} seats are outside of the limits")
    for _ in range(seats - sum(given.values())):
        free = [key for key in weights if given[key] < most[key]]
        winner = max(free, key=lambda key: weights[key] / (2 * given[key] + 1))
        given[winner] += 1
    return given

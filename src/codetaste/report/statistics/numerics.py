"""Intervals and sign flips by numpy and scipy, which ``intervals.py`` imports only where it computes any."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

CONFIDENCE_LEVEL = 0.95
"""Confidence level of all intervals (CodeTaste, Tables 4 and 5)."""
MAX_EXACT_PAIRS = 14
"""Up to this number of pairs all sign flips are enumerated."""
FLIPS = 19_999
"""Number of random sign flips for more pairs: a p of 0.05 is then known to ± 0.003."""
RESAMPLES = 4_999
AGREE = 1e-12
"""Values that differ less are equal."""
_TAILS = (1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2
_SEED = 20_260_101
_SINGLE = 1e-6
"""Relative error of a sum in single precision."""


def cluster_sums(
    values: Sequence[float], clusters: Sequence[Hashable] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sum and the number of values of each cluster, ordered by first occurrence."""
    numbers = np.asarray(values, dtype=float)
    if clusters is None:
        return numbers, np.ones(len(values))
    order: dict[Hashable, int] = {}
    places = [order.setdefault(each, len(order)) for each in clusters]
    return np.bincount(places, weights=numbers), np.bincount(places).astype(float)


def student_interval(mean: float, sums: NDArray[Any], counts: NDArray[Any]) -> tuple[float, float]:
    """Return m ± t·√V with V = G/(G-1)·Σ_g(Σ_i (x_i - m))²/n²; with clusters of one value V = s²/n."""
    half = float(stdtrit(len(sums) - 1, _TAILS[1])) * _standard_error(mean, sums, counts)
    return mean - half, mean + half


def detectable_effect(mean: float, sums: NDArray[Any], counts: NDArray[Any], power: float) -> float:
    """Return (t_{1-α/2} + t_{power})·√V with the V of ``student_interval``."""
    quantiles = stdtrit(len(sums) - 1, np.asarray((_TAILS[1], power)))
    return float(quantiles.sum()) * _standard_error(mean, sums, counts)


def _standard_error(mean: float, sums: NDArray[Any], counts: NDArray[Any]) -> float:
    groups = len(sums)
    errors = sums - counts * mean
    variance = groups / (groups - 1) * float(errors @ errors) / float(counts.sum()) ** 2
    return math.sqrt(variance)


def wilson_interval(mean: float, n: int) -> tuple[float, float]:
    """Return Wilson's score interval for a share ``mean`` of ``n`` draws, within 0..1."""
    z2 = float(ndtri(_TAILS[1])) ** 2
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * mean * (1 - mean) / n + z2 * z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, min(centre - half, mean)), min(1.0, max(centre + half, mean))


def bootstrap_interval(mean: float, sums: NDArray[Any], counts: NDArray[Any]) -> tuple[float, float]:
    """Return the BCa interval of the mean, with whole clusters resampled (Efron 1987)."""
    chosen = _draws(len(sums))
    means = np.sort(sums[chosen].sum(axis=1) / counts[chosen].sum(axis=1))
    below = (np.searchsorted(means, mean - AGREE) + np.searchsorted(means, mean + AGREE, side="right")) / 2
    bias = ndtri(np.clip(below / RESAMPLES, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    without = (sums.sum() - sums) / (counts.sum() - counts)
    apart = without.mean() - without
    spread = float((apart**2).sum()) ** 1.5
    pull = float((apart**3).sum()) / (6 * spread) if spread else 0.0
    z = bias + ndtri(np.asarray(_TAILS))
    low, high = np.quantile(means, ndtr(bias + z / (1 - pull * z)))
    return min(float(low), mean), max(float(high), mean)


@lru_cache(maxsize=4)
def _draws(groups: int) -> NDArray[Any]:
    return np.random.default_rng(_SEED).integers(0, groups, (RESAMPLES, groups))


def sign_flip_p(values: Sequence[float], clusters: Sequence[Hashable] | None) -> float:
    """Return the two-sided p of the mean of ``values`` when the signs of whole clusters are flipped."""
    differences, _ = cluster_sums(values, clusters)
    size = float(abs(differences).sum())
    observed = abs(float(differences.sum())) - 1e-9 * size  # sums in another order differ in the last digits
    if observed <= 0:
        return 1.0
    differing = differences[abs(differences) > AGREE * size]
    if len(differing) <= MAX_EXACT_PAIRS:
        sums = _all_flips(len(differing)) @ differing
        return int((abs(sums) >= observed).sum()) / len(sums)
    draws = _some_flips(-(-len(differing) // 32) * 32)[: len(differing)]
    sums = differing.astype(draws.dtype) @ draws
    return (1 + int((abs(sums) >= observed - _SINGLE * size).sum())) / (FLIPS + 1)


@lru_cache(maxsize=MAX_EXACT_PAIRS)
def _all_flips(n: int) -> NDArray[Any]:
    """Return half of all patterns of ``n`` signs, shape (2^(n-1), n); the others have opposite signs."""
    bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    return (1 - 2 * bits).astype(float)


@lru_cache(maxsize=2)
def _some_flips(n: int) -> NDArray[Any]:
    """Return random patterns of ``n`` signs, shape (n, FLIPS), in single precision: all of it is read."""
    draws = np.random.default_rng(_SEED).integers(0, 2, (n, FLIPS), dtype=np.int8)
    return (1 - 2 * draws).astype(np.float32)

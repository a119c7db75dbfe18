"""Means with confidence intervals, tests of differences, and pass@k: pure functions of numbers.

All results are deterministic: random draws use a fixed seed. numpy and scipy are imported where they are
used, because most commands need neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

CONFIDENCE_LEVEL = 0.95
"""Default confidence level of intervals (CodeTaste, Tables 4 and 5)."""
MANY_CLUSTERS = 50
"""From this number of clusters on the t-interval is used for any values, as in the paper (100)."""
FEW_CLUSTERS = 8
"""Below this number of clusters the bootstrap covers too little (0.64 of 0.95 with three skewed values)."""
COCHRAN_FACTOR = 25
"""A t-interval is adequate if n ≥ 25·g₁², with the skewness g₁ (Cochran, Sampling Techniques, §2.15)."""
MAX_EXACT_PAIRS = 14
"""Up to this number of pairs all sign flips are enumerated."""
FLIPS = 19_999
"""Number of random sign flips for more pairs: a p of 0.05 is then known to ± 0.003."""
RESAMPLES = 4_999
_SEED = 20_260_101
_AGREE = 1e-12
_SINGLE = 1e-6
"""Relative error of a sum in single precision."""


class Method(StrEnum):
    """How an interval was computed."""

    T = "t"
    CLUSTER_T = "cluster-t"
    BOOTSTRAP = "bootstrap"
    WILSON = "wilson"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its confidence interval; None where these are undefined.

    ``n`` is the number of values, ``clusters`` the number of groups in which they depend on each other.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    method: Method

    @property
    def margin(self) -> float | None:
        """Half the width of an interval that is symmetric about the mean, None for other ones."""
        if self.method not in {Method.T, Method.CLUSTER_T} or self.mean is None or self.high is None:
            return None
        return self.high - self.mean


def interval_to_json(interval: Interval) -> dict[str, Any]:
    """Return an interval as JSON data."""
    return {
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "n": interval.n,
        "clusters": interval.clusters,
        "method": str(interval.method),
    }


def mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = CONFIDENCE_LEVEL,
    *,
    fractions: bool = True,
) -> Interval:
    """Return the mean of ``values`` with its interval, by the first of these rules that applies.

    1. No values: no mean and no interval. One cluster, or all values equal: Wilson's interval with the number
    of
       clusters as the number of draws. It is made for 0/1 values; among all values in 0..1 with a given mean
       these vary most (x² ≤ x), so for fractions the interval is rather too wide than too narrow. Without
       ``fractions`` the values are unbounded, and no interval is given.
    2. At least ``MANY_CLUSTERS`` clusters: Student's t with (clusters - 1) degrees of freedom and the sample
       deviation, not clipped, as in the paper; for clusters of several values the deviation is of cluster
       sums (CR1).
    3. Fewer: t, unless it leaves 0..1 or, from ``FEW_CLUSTERS`` on, the values are too skewed
       (``COCHRAN_FACTOR``). Then Wilson below ``FEW_CLUSTERS`` and for independent 0/1 values, otherwise the
       BCa bootstrap over whole clusters.

    Args:
        values: the measured values.
        clusters: the group of each value, such as its repository; default is one group for each value.
        level: the confidence level.
        fractions: whether all values are in 0..1 by definition; otherwise they are unbounded: dollars, lines.

    Raises:
        ValueError: a value is not finite, or outside 0..1 with ``fractions``; its position is named.
    """
    _check(values, fractions=fractions)
    if clusters is not None and len(clusters) != len(values):
        raise ValueError(f"{len(values)} values in {len(clusters)} clusters: the numbers must be equal")
    if not values:
        return Interval(None, None, None, 0, 0, Method.NONE)
    sums, counts = _by_cluster(values, clusters)
    mean = math.fsum(values) / len(values)
    groups = len(sums)
    if groups == 1 or max(values) - min(values) <= _AGREE:
        low, high = _wilson(mean, groups, level) if fractions else (None, None)
        return Interval(mean, low, high, len(values), groups, Method.WILSON if fractions else Method.NONE)
    low, high = _student(mean, sums, counts, level)
    plain = groups == len(values)
    method = _method(values, groups, leaves=fractions and (low < 0 or high > 1), plain=plain)
    if method is Method.WILSON:
        low, high = _wilson(mean, groups, level)
    elif method is Method.BOOTSTRAP:
        low, high = _bootstrap(mean, sums, counts, level)
    return Interval(mean, low, high, len(values), groups, method)


def _check(values: Sequence[float], *, fractions: bool) -> None:
    for place, value in enumerate(values, 1):
        if not math.isfinite(value):
            raise ValueError(f"value {place} of {len(values)} is {value}, which is not finite")
        if fractions and not 0 <= value <= 1:
            raise ValueError(f"value {place} of {len(values)} is {value}, not a fraction in 0..1")


def _by_cluster(
    values: Sequence[float], clusters: Sequence[Hashable] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sum and the number of values of each cluster, ordered by first occurrence."""
    import numpy as np  # noqa: PLC0415 - heavy

    numbers = np.asarray(values, dtype=float)
    if clusters is None:
        return numbers, np.ones(len(values))
    order: dict[Hashable, int] = {}
    places = [order.setdefault(each, len(order)) for each in clusters]
    return np.bincount(places, weights=numbers), np.bincount(places).astype(float)


def _student(mean: float, sums: NDArray[Any], counts: NDArray[Any], level: float) -> tuple[float, float]:
    """Return m ± t·√V with V = G/(G-1)·Σ_g(Σ_i (x_i - m))²/n²; with clusters of one value V = s²/n."""
    from scipy.special import stdtrit  # noqa: PLC0415 - heavy, but a third of scipy.stats

    groups = len(sums)
    errors = sums - counts * mean
    variance = groups / (groups - 1) * float(errors @ errors) / float(counts.sum()) ** 2
    half = float(stdtrit(groups - 1, (1 + level) / 2)) * math.sqrt(variance)
    return mean - half, mean + half


def _method(values: Sequence[float], groups: int, *, leaves: bool, plain: bool) -> Method:
    student = Method.T if plain else Method.CLUSTER_T
    if groups >= MANY_CLUSTERS:
        return student
    if groups < FEW_CLUSTERS:
        return Method.WILSON if leaves else student
    if not leaves and groups >= COCHRAN_FACTOR * _skewness(values) ** 2:
        return student
    binary = all(value in {0, 1} for value in values)
    return Method.WILSON if binary and plain else Method.BOOTSTRAP


def _skewness(values: Sequence[float]) -> float:
    """g₁ = m₃ / m₂^1.5."""
    mean = math.fsum(values) / len(values)
    second = math.fsum((value - mean) ** 2 for value in values) / len(values)
    third = math.fsum((value - mean) ** 3 for value in values) / len(values)
    return third / second**1.5 if second else 0.0


def _wilson(mean: float, n: int, level: float) -> tuple[float, float]:
    """Return Wilson's score interval for a share ``mean`` of ``n`` draws, within 0..1."""
    from scipy.special import ndtri  # noqa: PLC0415 - heavy

    z2 = float(ndtri((1 + level) / 2)) ** 2
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * mean * (1 - mean) / n + z2 * z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, min(centre - half, mean)), min(1.0, max(centre + half, mean))


def _bootstrap(mean: float, sums: NDArray[Any], counts: NDArray[Any], level: float) -> tuple[float, float]:
    """Return the BCa interval of the mean, with whole clusters resampled (Efron 1987)."""
    import numpy as np  # noqa: PLC0415 - heavy
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    chosen = _draws(len(sums))
    means = np.sort(sums[chosen].sum(axis=1) / counts[chosen].sum(axis=1))
    below = (np.searchsorted(means, mean - _AGREE) + np.searchsorted(means, mean + _AGREE, side="right")) / 2
    bias = ndtri(np.clip(below / RESAMPLES, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    without = (sums.sum() - sums) / (counts.sum() - counts)
    apart = without.mean() - without
    spread = float((apart**2).sum()) ** 1.5
    pull = float((apart**3).sum()) / (6 * spread) if spread else 0.0
    z = bias + ndtri(np.asarray([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(means, ndtr(bias + z / (1 - pull * z)))
    return min(float(low), mean), max(float(high), mean)


@lru_cache(maxsize=4)
def _draws(groups: int) -> NDArray[Any]:
    import numpy as np  # noqa: PLC0415 - heavy

    return np.random.default_rng(_SEED).integers(0, groups, (RESAMPLES, groups))


def paired_permutation(
    a: Sequence[float], b: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> float:
    """Return the two-sided p of a paired sign-flip test: is the mean of ``a`` - ``b`` other than 0?

    Under the null hypothesis each pair's difference is as likely with the opposite sign. The differences of
    one cluster are flipped together, as their sum. Up to ``MAX_EXACT_PAIRS`` differences other than 0 all
    patterns are enumerated; for more, ``FLIPS`` patterns are drawn and the observed one counts as one of them
    (+1), so p is never 0. Ties count as extreme.

    Args:
        a: the first value of each pair.
        b: the second value of each pair, in the same order.
        clusters: the group of each pair; default is one group for each pair.

    Raises:
        ValueError: there are no pairs, the numbers differ, or a value is not finite.
    """
    if not a or len(a) != len(b) or (clusters is not None and len(clusters) != len(a)):
        raise ValueError(f"{len(a)} and {len(b)} values are no pairs")
    _check(a, fractions=False)
    _check(b, fractions=False)
    differences, _ = _by_cluster([one - other for one, other in zip(a, b, strict=True)], clusters)
    size = float(abs(differences).sum())
    observed = abs(float(differences.sum())) - 1e-9 * size  # sums in another order differ in the last digits
    if observed <= 0:
        return 1.0
    differing = differences[abs(differences) > _AGREE * size]
    if len(differing) <= MAX_EXACT_PAIRS:
        sums = _all_flips(len(differing)) @ differing
        return int((abs(sums) >= observed).sum()) / len(sums)
    draws = _some_flips(-(-len(differing) // 32) * 32)[: len(differing)]
    sums = differing.astype(draws.dtype) @ draws
    return (1 + int((abs(sums) >= observed - _SINGLE * size).sum())) / (FLIPS + 1)


@lru_cache(maxsize=MAX_EXACT_PAIRS)
def _all_flips(n: int) -> NDArray[Any]:
    """Return half of all patterns of ``n`` signs, shape (2^(n-1), n); the others have opposite signs."""
    import numpy as np  # noqa: PLC0415 - heavy

    bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    return (1 - 2 * bits).astype(float)


@lru_cache(maxsize=2)
def _some_flips(n: int) -> NDArray[Any]:
    """Return random patterns of ``n`` signs, shape (n, FLIPS), in single precision: all of it is read."""
    import numpy as np  # noqa: PLC0415 - heavy

    draws = np.random.default_rng(_SEED).integers(0, 2, (n, FLIPS), dtype=np.int8)
    return (1 - 2 * draws).astype(np.float32)


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Return each p adjusted so that rejecting all below x has a false discovery rate of at most x.

    q₍ᵢ₎ = min over j ≥ i of p₍ⱼ₎·m/j (Benjamini and Hochberg 1995), in the order of ``ps``.

    Raises:
        ValueError: a p is not in 0..1.
    """
    _check(ps, fractions=True)
    adjusted = [0.0] * len(ps)
    least = 1.0
    for rank, place in reversed(list(enumerate(sorted(range(len(ps)), key=ps.__getitem__), 1))):
        least = min(least, ps[place] * len(ps) / rank)
        adjusted[place] = least
    return adjusted


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the probability that one of ``k`` attempts passes if ``c`` of ``n`` did: 1 - C(n-c,k) / C(n,k).

    The estimate is unbiased (Chen et al. 2021, §2.1).

    Raises:
        ValueError: not 1 ≤ k ≤ n, or not 0 ≤ c ≤ n.
    """
    if not 1 <= k <= n or not 0 <= c <= n:
        raise ValueError(f"pass@{k} of {c} passes in {n} attempts is undefined")
    return 1 - math.comb(n - c, k) / math.comb(n, k)

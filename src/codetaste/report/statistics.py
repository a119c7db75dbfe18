"""Means with intervals, tests of differences, and pass@k: pure functions over numbers, none over trials.

Everything is deterministic: what is drawn at random is drawn from a fixed seed. numpy and scipy are imported
where they are used, for most commands need neither.
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

LEVEL = 0.95
"""Of every interval unless told otherwise (CodeTaste, Tables 4 and 5)."""
ENOUGH = 50
"""Clusters from which on the t-interval stands whatever the values look like, as in the paper (100)."""
FEW = 8
"""Clusters below which resampling covers far less than it says (0.64 of 0.95 with three skewed values)."""
COCHRAN = 25
"""A t-interval is fair from n ≥ 25·g₁² on, g₁ the skewness (Cochran, Sampling Techniques, §2.15)."""
EXACT = 14
"""Pairs up to which all sign flips are gone through."""
FLIPS = 19_999
"""Sign flips drawn for more pairs than that: a p of 0.05 is then known to ± 0.003."""
RESAMPLES = 4_999
_SEED = 20_260_101
_AGREE = 1e-12
_SINGLE = 1e-6
"""What single precision may lose of a sum."""


class Method(StrEnum):
    """How an interval was made."""

    T = "t"
    CLUSTER_T = "cluster-t"
    BOOTSTRAP = "bootstrap"
    WILSON = "wilson"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and between what its true value may be; None where that cannot be said.

    ``n`` counts values, ``clusters`` the groups in which they depend on each other.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    method: Method

    @property
    def margin(self) -> float | None:
        """Half its width where it lies evenly about the mean, None elsewhere."""
        if self.method not in {Method.T, Method.CLUSTER_T} or self.mean is None or self.high is None:
            return None
        return self.high - self.mean


def mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = LEVEL,
    *,
    fractions: bool = True,
) -> Interval:
    """Return the mean of ``values`` with its interval, by the first of these that fits.

    1. No values: nothing is said. One cluster, or all values equal: Wilson's interval with as many draws as
       there are clusters. It is made for 0/1 values; of all values in 0..1 with one mean those vary most
       (x² ≤ x), so that for fractions it is wide rather than narrow. Without ``fractions`` nothing bounds the
       values, and no interval is given.
    2. ``ENOUGH`` clusters: Student's t with (clusters - 1) degrees of freedom and the sample deviation, not
       clipped, as in the paper; where clusters hold several values the deviation is of cluster sums (CR1).
    3. Fewer: t, unless it leaves 0..1 or, from ``FEW`` clusters on, the values are too skewed (``COCHRAN``).
       Then Wilson below ``FEW`` clusters and for independent 0/1 values, otherwise the BCa bootstrap, whole
       clusters drawn.

    Args:
        values: what was measured.
        clusters: for each value the group that it belongs to, such as its repository; default each its own.
        level: how often such intervals hold the true mean.
        fractions: the values lie within 0..1 by their nature; otherwise they may be anything: dollars, lines.

    Raises:
        ValueError: a value is not finite, or none of 0..1 with ``fractions``; its place is named.
    """
    _check(values, fractions=fractions)
    if clusters is not None and len(clusters) != len(values):
        raise ValueError(f"{len(values)} values in {len(clusters)} clusters: each value needs its own")
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
            raise ValueError(f"value {place} of {len(values)} is {value}, no number that has a mean")
        if fractions and not 0 <= value <= 1:
            raise ValueError(f"value {place} of {len(values)} is {value}, no fraction of 0..1")


def _by_cluster(
    values: Sequence[float], clusters: Sequence[Hashable] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sum and the number of the values of each cluster, in the order of their first ones."""
    import numpy as np  # noqa: PLC0415 - heavy

    numbers = np.asarray(values, dtype=float)
    if clusters is None:
        return numbers, np.ones(len(values))
    order: dict[Hashable, int] = {}
    places = [order.setdefault(each, len(order)) for each in clusters]
    return np.bincount(places, weights=numbers), np.bincount(places).astype(float)


def _student(mean: float, sums: NDArray[Any], counts: NDArray[Any], level: float) -> tuple[float, float]:
    """Return m ± t·√V with V = G/(G-1)·Σ_g(Σ_i (x_i - m))²/n²; with clusters of one value V = s²/n."""
    from scipy.special import stdtrit  # noqa: PLC0415 - heavy; a third of scipy.stats

    groups = len(sums)
    errors = sums - counts * mean
    variance = groups / (groups - 1) * float(errors @ errors) / float(counts.sum()) ** 2
    half = float(stdtrit(groups - 1, (1 + level) / 2)) * math.sqrt(variance)
    return mean - half, mean + half


def _method(values: Sequence[float], groups: int, *, leaves: bool, plain: bool) -> Method:
    student = Method.T if plain else Method.CLUSTER_T
    if groups >= ENOUGH:
        return student
    if groups < FEW:
        return Method.WILSON if leaves else student
    if not leaves and groups >= COCHRAN * _skewness(values) ** 2:
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
    """Return Wilson's score interval of a share ``mean`` of ``n`` draws, within 0..1."""
    from scipy.special import ndtri  # noqa: PLC0415 - heavy

    z2 = float(ndtri((1 + level) / 2)) ** 2
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * mean * (1 - mean) / n + z2 * z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, min(centre - half, mean)), min(1.0, max(centre + half, mean))


def _bootstrap(mean: float, sums: NDArray[Any], counts: NDArray[Any], level: float) -> tuple[float, float]:
    """Return the BCa interval of the mean, whole clusters drawn (Efron 1987)."""
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

    Where nothing differs, each pair's difference is as likely with the other sign. Differences of one cluster
    keep together, their sum is flipped. Up to ``EXACT`` differences that are not 0 all are gone through; for
    more, ``FLIPS`` are drawn and the pattern seen counts as one of them (+1): p is never 0. Ties are extreme.

    Args:
        a: one value a pair.
        b: the other's, in the same order.
        clusters: for each pair the group that it belongs to; default each its own.

    Raises:
        ValueError: no pairs, unequal numbers, or a value that is not finite.
    """
    if not a or len(a) != len(b) or (clusters is not None and len(clusters) != len(a)):
        raise ValueError(f"no pairs can be made of {len(a)} and {len(b)} values")
    _check(a, fractions=False)
    _check(b, fractions=False)
    differences, _ = _by_cluster([one - other for one, other in zip(a, b, strict=True)], clusters)
    size = float(abs(differences).sum())
    seen = abs(float(differences.sum())) - 1e-9 * size  # sums in another order differ in their last digits
    if seen <= 0:
        return 1.0
    differing = differences[abs(differences) > _AGREE * size]
    if len(differing) <= EXACT:
        sums = _all_flips(len(differing)) @ differing
        return int((abs(sums) >= seen).sum()) / len(sums)
    draws = _some_flips(-(-len(differing) // 32) * 32)[: len(differing)]
    sums = differing.astype(draws.dtype) @ draws
    return (1 + int((abs(sums) >= seen - _SINGLE * size).sum())) / (FLIPS + 1)


@lru_cache(maxsize=EXACT)
def _all_flips(n: int) -> NDArray[Any]:
    """Return half of all patterns of ``n`` signs, shape (2^(n-1), n): the others are these turned round."""
    import numpy as np  # noqa: PLC0415 - heavy

    bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    return (1 - 2 * bits).astype(float)


@lru_cache(maxsize=2)
def _some_flips(n: int) -> NDArray[Any]:
    """Return drawn patterns of ``n`` signs, shape (n, FLIPS), in single precision: it is read as a whole."""
    import numpy as np  # noqa: PLC0415 - heavy

    draws = np.random.default_rng(_SEED).integers(0, 2, (n, FLIPS), dtype=np.int8)
    return (1 - 2 * draws).astype(np.float32)


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Return each p adjusted so that rejecting all below x has a false discovery rate of at most x.

    q₍ᵢ₎ = min over j ≥ i of p₍ⱼ₎·m/j (Benjamini and Hochberg 1995), in the order of ``ps``.

    Raises:
        ValueError: a p is none.
    """
    _check(ps, fractions=True)
    adjusted = [0.0] * len(ps)
    least = 1.0
    for rank, place in reversed(list(enumerate(sorted(range(len(ps)), key=ps.__getitem__), 1))):
        least = min(least, ps[place] * len(ps) / rank)
        adjusted[place] = least
    return adjusted


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that one of ``k`` attempts passes, where ``c`` of ``n`` did: 1 - C(n-c, k) / C(n, k).

    It is unbiased (Chen et al. 2021, §2.1).

    Raises:
        ValueError: not 1 ≤ k ≤ n, or not 0 ≤ c ≤ n.
    """
    if not 1 <= k <= n or not 0 <= c <= n:
        raise ValueError(f"pass@{k} of {c} passes in {n} attempts makes no sense")
    return 1 - math.comb(n - c, k) / math.comb(n, k)

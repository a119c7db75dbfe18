"""Means with confidence intervals, tests of differences, and pass@k: pure functions of numbers.

All results are deterministic: random draws use a fixed seed. numpy and scipy are imported with
``numerics.py``, because most commands need neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

MANY_CLUSTERS = 50
"""From this number of clusters on the t-interval is used for any values, as in the paper (100)."""
FEW_CLUSTERS = 8
"""Below this number of clusters the bootstrap covers too little (0.64 of 0.95 with three skewed values)."""
COCHRAN_FACTOR = 25
"""A t-interval is adequate if n ≥ 25·g₁², with the skewness g₁ (Cochran, Sampling Techniques, §2.15)."""


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


def mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    fractions: bool = True,
    wilson: bool = False,
) -> Interval:
    """Return the mean of ``values`` with its interval, by the first of these rules that applies.

    1. No values: no mean and no interval. One cluster, or all values equal: Wilson's interval with the number
       of clusters as the number of draws. It is made for 0/1 values; among all values in 0..1 with a given
       mean these vary most (x² ≤ x), so for fractions the interval is rather too wide than too narrow.
       Without ``fractions`` the values are unbounded, and no interval is given.
    2. At least ``MANY_CLUSTERS`` clusters: Student's t with (clusters - 1) degrees of freedom and the sample
       deviation, not clipped, as in the paper; for clusters of several values the deviation is of cluster
       sums (CR1).
    3. Fewer: t, unless it leaves 0..1 or, from ``FEW_CLUSTERS`` on, the values are too skewed
       (``COCHRAN_FACTOR``). Then Wilson below ``FEW_CLUSTERS`` and for independent 0/1 values, otherwise the
       BCa bootstrap over whole clusters.

    Args:
        values: the measured values.
        clusters: the group of each value, such as its repository; default is one group for each value.
        fractions: whether all values are in 0..1 by definition; otherwise they are unbounded: dollars, lines.
        wilson: whether independent 0/1 values always have Wilson's interval, right for rare ones too.

    Raises:
        ValueError: a value is not finite, or outside 0..1 with ``fractions``; its position is named.
    """
    _check(values, fractions=fractions)
    if clusters is not None and len(clusters) != len(values):
        raise ValueError(f"{len(values)} values in {len(clusters)} clusters: the numbers must be equal")
    if not values:
        return Interval(None, None, None, 0, 0, Method.NONE)
    from codetaste.report.statistics import numerics  # noqa: PLC0415 - numpy and scipy are heavy

    sums, counts = numerics.cluster_sums(values, clusters)
    mean = math.fsum(values) / len(values)
    groups = len(sums)
    if groups == 1 or max(values) - min(values) <= numerics.AGREE:
        low, high = numerics.wilson_interval(mean, groups) if fractions else (None, None)
        return Interval(mean, low, high, len(values), groups, Method.WILSON if fractions else Method.NONE)
    low, high = numerics.student_interval(mean, sums, counts)
    plain = groups == len(values)
    method = _method(values, groups, leaves=fractions and (low < 0 or high > 1), plain=plain)
    if wilson and plain:
        method = Method.WILSON
    if method is Method.WILSON:
        low, high = numerics.wilson_interval(mean, groups)
    elif method is Method.BOOTSTRAP:
        low, high = numerics.bootstrap_interval(mean, sums, counts)
    return Interval(mean, low, high, len(values), groups, method)


def _check(values: Sequence[float], *, fractions: bool) -> None:
    for place, value in enumerate(values, 1):
        if not math.isfinite(value):
            raise ValueError(f"value {place} of {len(values)} is {value}, which is not finite")
        if fractions and not 0 <= value <= 1:
            raise ValueError(f"value {place} of {len(values)} is {value}, not a fraction in 0..1")


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


def paired_permutation(
    a: Sequence[float], b: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> float:
    """Return the two-sided p of a paired sign-flip test: is the mean of ``a`` - ``b`` other than 0?

    Under the null hypothesis each pair's difference is as likely with the opposite sign. The differences of
    one cluster are flipped together, as their sum. All patterns of a few differences other than 0 are
    enumerated; for more, some are drawn and the observed one counts as one of them (+1), so p is never 0.
    Ties count as extreme.

    Args:
        a: the first value of each pair.
        b: the second value of each pair, in the same order.
        clusters: the group of each pair; default is one group for each pair.

    Raises:
        ValueError: there are no pairs, the numbers differ, or a value is not finite.
    """
    if not a or len(a) != len(b) or (clusters is not None and len(clusters) != len(a)):
        raise ValueError(f"{len(a)} and {len(b)} values cannot be paired: each needs one of the other")
    _check(a, fractions=False)
    _check(b, fractions=False)
    differences = [one - other for one, other in zip(a, b, strict=True)]
    from codetaste.report.statistics import numerics  # noqa: PLC0415 - numpy and scipy are heavy

    return numerics.sign_flip_p(differences, clusters)


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

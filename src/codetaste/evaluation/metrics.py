"""The metrics of a prediction: exactly the paper's formulas.

Symbols: X̂ the predicted patch, R∘X̂ the code with it applied, Γ⁺/Γ⁻ additive/reductive rules, L⁺/L⁻ the
lines that X̂ adds/removes. A rate is a fraction of 0..1, and None where it is undefined, never 0 or 1 by
default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

METRICS_VERSION = 2
"""Version of the metrics: scores of another version are computed again."""
MIN_TESTS = 10
"""Minimum |T| of a valid test suite (CodeTaste §3.3)."""
MIN_PASS_RATE = 0.3
"""Minimum P/|T| of a valid test suite (CodeTaste §3.3)."""


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """How many rules there are, and how many of them match R∘X̂ at least once."""

    positive_matched: int
    positive_total: int
    negative_matched: int
    negative_total: int


def ifr(counts: RuleCounts) -> float | None:
    """IFR = (|Γ⁻|·IFR⁻ + |Γ⁺|·IFR⁺) / |Γ| (CodeTaste §4.1); None without any rule.

    With rules of one direction only it is the rate of that direction. The published harness reports 1.0
    without rules, and 1.0 for a direction without rules.
    """
    total = counts.positive_total + counts.negative_total
    return (
        (counts.positive_matched + counts.negative_total - counts.negative_matched) / total if total else None
    )


def ifr_plus(counts: RuleCounts) -> float | None:
    """IFR⁺ = |{γ ∈ Γ⁺ : M(γ, R∘X̂) > 0}| / |Γ⁺| (CodeTaste §4.1); None without additive rules."""
    return counts.positive_matched / counts.positive_total if counts.positive_total else None


def ifr_minus(counts: RuleCounts) -> float | None:
    """IFR⁻ = |{γ ∈ Γ⁻ : M(γ, R∘X̂) = 0}| / |Γ⁻| (CodeTaste §4.1); None without reductive rules."""
    total = counts.negative_total
    return (total - counts.negative_matched) / total if total else None


@dataclass(frozen=True, slots=True)
class TestCounts:
    """exec(T) = (P, F) of one run of a test suite (CodeTaste §2.1), and further results of the run."""

    __test__: ClassVar[bool] = False  # pytest must not collect it

    passed: int
    failed: int
    skipped: int = 0
    total: int = 0
    error: str | None = None

    @property
    def pass_rate(self) -> float:
        """P/|T|, 0 without tests, as in the published harness."""
        return self.passed / self.total if self.total > 0 else 0.0

    @property
    def is_crash(self) -> bool:
        """Whether the run gave no counts, only an error."""
        return self.error is not None and self.total == self.passed == self.failed == 0

    @property
    def is_valid(self) -> bool:
        """Whether the suite is valid: |T| ≥ 10 and P/|T| ≥ 3/10 (CodeTaste §3.3), and no error."""
        return self.error is None and self.total >= MIN_TESTS and self.pass_rate >= MIN_PASS_RATE


CRASHED_RUN = TestCounts(0, 0, error="the test run gave no result")
"""A test run that fails unexpectedly counts as (P, F) = (0, 0) (CodeTaste §2.1)."""


@dataclass(frozen=True, slots=True)
class PassThresholds:
    """p_R and f_R: the minimum of passed and the maximum of failed tests (CodeTaste §4.1)."""

    min_passed: int
    max_failed: int


def pass_thresholds(runs: Iterable[TestCounts]) -> PassThresholds | None:
    """p_R = min P and f_R = max F over all runs on R and on R∘X* (CodeTaste §4.1); None without any run."""
    runs = list(runs)
    if not runs:
        return None
    return PassThresholds(min(run.passed for run in runs), max(run.failed for run in runs))


def passes(tests: TestCounts, baseline: PassThresholds) -> bool:
    """PASS = 1[F(R∘X̂) ≤ f_R ∧ P(R∘X̂) ≥ p_R] (CodeTaste §4.1)."""
    return tests.failed <= baseline.max_failed and tests.passed >= baseline.min_passed


def alignment(passed: float | None, rate: float | None) -> float | None:
    """A = PASS × IFR (CodeTaste §4.1); with IFR⁺ it is A⁺, with IFR⁻ it is A⁻ (A.5).

    None if PASS or the rate is None.
    """
    return None if passed is None or rate is None else passed * rate


def strict_success(passed: float | None, rate: float | None) -> float | None:
    """1 if the tests pass and every rule is followed (IFR = 1), else 0, as in the published analysis.

    None if PASS or IFR is None.
    """
    return None if passed is None or rate is None else float(passed == 1 and rate == 1)


def f1(passed: float | None, precision: float | None, rate: float | None) -> float | None:
    """The harmonic mean of PREC and IFR, 0 if the tests do not pass, as in the published analysis.

    None if PASS is None, or if the tests pass and PREC or IFR is None.
    """
    if not passed:
        return None if passed is None else 0.0
    if precision is None or rate is None:
        return None
    return 2 * precision * rate / (precision + rate) if precision + rate else 0.0


@dataclass(frozen=True, slots=True)
class PrecisionCounts:
    """Counts behind PREC: changed lines, and how many of them rule matches cover (CodeTaste §4.1).

    A rate over no lines is 0, as in the published harness.

    Attributes:
        hits_added: |L⁺ ∩ C_{Γ⁺}(R∘X̂)|.
        added: |L⁺|.
        hits_removed: |L⁻ ∩ C_{Γ⁻}(R)|. The paper's formula writes C_{Γ⁻}(R∘X̂), but removed lines live in R;
            the published harness takes R, too.
        removed: |L⁻|.
    """

    hits_added: int
    added: int
    hits_removed: int
    removed: int

    @property
    def prec(self) -> float:
        """PREC = (|L⁺|·PREC⁺ + |L⁻|·PREC⁻) / |L| (CodeTaste §4.1)."""
        return _share(self.hits_added + self.hits_removed, self.added + self.removed)

    @property
    def prec_plus(self) -> float:
        """PREC⁺ = |L⁺ ∩ C_{Γ⁺}(R∘X̂)| / |L⁺| (CodeTaste §4.1)."""
        return _share(self.hits_added, self.added)

    @property
    def prec_minus(self) -> float:
        """PREC⁻ = |L⁻ ∩ C_{Γ⁻}(R)| / |L⁻| (CodeTaste §4.1, with R for the reason above)."""
        return _share(self.hits_removed, self.removed)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0

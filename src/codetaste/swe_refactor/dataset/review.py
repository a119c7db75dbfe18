"""The manual check of a benchmark (SWE-Refactor §1): a random subset, and what people decided about it.

Decisions are JSON lines beside the file of the instances, oldest first. The last one of a reviewer about an
instance holds, as long as the instance is the one that was decided on. Lines with ``seed`` say which subset
is reviewed; the last of them holds.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING, Any

from codetaste.core.hashing import json_digest
from codetaste.core.jsonl import JsonlFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

_Z, _MARGIN = 1.96, 0.1


class InstanceVerdict(StrEnum):
    """A decision about an instance."""

    CORRECT = "correct"
    """The commit does this refactoring to this method, and it changes no behaviour."""
    WRONG = "wrong"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class ReviewSample:
    """Which instances are reviewed: so many, in an order that the seed decides."""

    seed: int
    size: int

    def draw(self, instances: Iterable[RefactoringInstance]) -> tuple[RefactoringInstance, ...]:
        """Return the subset in its order. A larger one begins with the smaller ones of the same seed."""
        return tuple(sorted(instances, key=self._place)[: self.size])

    def _place(self, instance: RefactoringInstance) -> str:
        return sha256(f"{self.seed} {instance.unique_id}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class InstanceReview:
    """One decision.

    Attributes:
        instance: the instance's ``uniqueId``.
        verdict: the decision.
        note: what the reviewer wrote about it, or "".
        by: the reviewer.
        at: when, UTC, ISO 8601.
        digest: SHA-256 of the instance.
    """

    instance: str
    verdict: InstanceVerdict
    note: str
    by: str
    at: str
    digest: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two reviewers agree about the instances that both decided about; ``kappa`` is Cohen's."""

    reviewers: tuple[str, str]
    both: int
    equal: int
    kappa: float | None


class InstanceReviews:
    """The decisions about the instances of one file; ``sample`` is None before the first review."""

    def __init__(self, reviews: Iterable[InstanceReview] = (), sample: ReviewSample | None = None) -> None:
        self.sample = sample
        self._last = {(each.by, each.instance): each for each in reviews}

    def of(self, instance: RefactoringInstance, by: str) -> InstanceReview | None:
        """Return what a reviewer decided about an instance; None if it has changed since."""
        last = self._last.get((by, instance.unique_id))
        return last if last is not None and last.digest == instance_digest(instance) else None

    def changed(self, instance: RefactoringInstance, by: str) -> bool:
        """Return whether a reviewer decided about an earlier state of an instance."""
        return (by, instance.unique_id) in self._last and self.of(instance, by) is None

    @property
    def reviewers(self) -> tuple[str, ...]:
        """All who decided about something, sorted."""
        return tuple(sorted({by for by, _ in self._last}))

    def about(self, instances: Sequence[RefactoringInstance]) -> list[InstanceReview]:
        """Return the decisions that hold about some instances, in their order, then by reviewer."""
        found = [self.of(instance, by) for instance in instances for by in self.reviewers]
        return [each for each in found if each is not None]

    def agreements(self, instances: Sequence[RefactoringInstance]) -> list[Agreement]:
        """Return the agreement of each two reviewers who decided about some of the same instances."""
        found = []
        for first, second in combinations(self.reviewers, 2):
            decisions = [(self.of(each, first), self.of(each, second)) for each in instances]
            pairs = [(one.verdict, other.verdict) for one, other in decisions if one and other]
            if pairs:
                equal = sum(one == other for one, other in pairs)
                found.append(Agreement((first, second), len(pairs), equal, cohen_kappa(pairs)))
        return found


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa, (p_o - p_e) / (1 - p_e), of two reviewers' decisions about the same things.

    p_o is the share of equal decisions, p_e the share that is expected by chance, from how often each of the
    two decides what (Cohen 1960). None without decisions, or if both always decide the same one thing.
    """
    count = len(pairs)
    first, second = (Counter(pair[place] for pair in pairs) for place in range(2))
    by_chance = sum(first[each] * second[each] for each in first)
    if by_chance == count**2:
        return None
    equal = sum(one == other for one, other in pairs)
    return (equal * count - by_chance) / (count**2 - by_chance)


def usual_sample_size(instances: int) -> int:
    """Return how many of so many instances show the share of correct ones to ± 10 points, at 95 %.

    Cochran's formula for the worst case, a half, in a finite population. The paper does not say how large its
    subset was.
    """
    infinite = _Z**2 / 4 / _MARGIN**2
    return math.ceil(infinite / (1 + (infinite - 1) / instances)) if instances else 0


def instance_digest(instance: RefactoringInstance) -> str:
    """Return the SHA-256 of all keys of an instance."""
    return json_digest(dict(instance.document))


def instance_reviews_path(file: Path) -> Path:
    """Return the path of the decisions about the instances in ``file``."""
    return file.with_name(f"{file.stem}.reviews.jsonl")


def read_instance_reviews(file: Path) -> InstanceReviews:
    """Read the decisions about the instances in ``file``. Blocking.

    Raises:
        JournalError: they cannot be read, or a line has wrong values; it names file and line.
    """
    reviews: list[InstanceReview] = []
    samples: list[ReviewSample] = []

    def take(line: Mapping[str, Any]) -> None:
        if "seed" in line:
            samples.append(_sample_from_json(line))
        else:
            reviews.append(_review_from_json(line))

    JsonlFile(instance_reviews_path(file)).read_into(take)
    return InstanceReviews(reviews, samples[-1] if samples else None)


async def write_sample(file: Path, sample: ReviewSample, by: str) -> None:
    """Record the subset that is reviewed from now on.

    Raises:
        StorageFull: no space is left.
        JournalError: it cannot be written.
    """
    await JsonlFile(instance_reviews_path(file)).append([{**asdict(sample), "by": by, "at": _now()}])


async def write_instance_review(file: Path, review: InstanceReview) -> None:
    """Add a decision; it is on disk on return.

    Raises:
        StorageFull: no space is left.
        JournalError: it cannot be written.
    """
    await JsonlFile(instance_reviews_path(file)).append([asdict(review)])


def new_instance_review(
    instance: RefactoringInstance, verdict: InstanceVerdict, note: str, by: str
) -> InstanceReview:
    """Return a decision of now."""
    return InstanceReview(instance.unique_id, verdict, note, by, _now(), instance_digest(instance))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _sample_from_json(line: Mapping[str, Any]) -> ReviewSample:
    seed, size = line["seed"], line["size"]
    if type(seed) is not int or type(size) is not int or size < 0:
        raise TypeError("seed and size must be whole numbers")
    return ReviewSample(seed, size)


def _review_from_json(line: Mapping[str, Any]) -> InstanceReview:
    texts = {name: line[name] for name in ("instance", "note", "by", "at", "digest")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("a text is expected")
    return InstanceReview(verdict=InstanceVerdict(line["verdict"]), **texts)

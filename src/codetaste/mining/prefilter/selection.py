"""Selection on demand: only commits later than a date, and the split of repositories into train and test."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from codetaste.mining.filter_result import FilterResult, Stage

if TYPE_CHECKING:
    from datetime import datetime

    from codetaste.mining.commit import CommitRecord

_DIGEST_VALUES = 1 << 256


class Split(StrEnum):
    """The part of a benchmark that a repository belongs to."""

    TRAIN = "train"
    TEST = "test"


def check_later(record: CommitRecord, date: datetime) -> FilterResult:
    """The commit is later than ``date``, such as the end of a model's training data.

    A commit without a date is dropped: that it is later is not known. Duplicates have to be left out before,
    or an old change that was made again would pass.
    """
    passed = record.date is not None and record.date > date
    value = "unknown" if record.date is None else record.date.isoformat()
    reason = "" if passed else "its date is not known" if record.date is None else "it is not later"
    return FilterResult(Stage.PREFILTER, "date", passed, value, f"later than {date.isoformat()}", reason)


def split_of(repository: str, test_share: float, salt: str = "") -> Split:
    """Return the part that a repository belongs to; it depends on nothing but the arguments.

    Args:
        repository: ``OWNER/REPO``, in any case.
        test_share: expected share of repositories in the test part, from 0 to 1.
        salt: another text gives another split.

    Raises:
        ValueError: ``test_share`` is not from 0 to 1.
    """
    if not 0 <= test_share <= 1:
        raise ValueError(f"a share of {test_share} is not from 0 to 1")
    digest = hashlib.sha256(f"{salt}\0{repository.lower()}".encode("utf-8", "surrogateescape")).digest()
    place = Fraction(int.from_bytes(digest), _DIGEST_VALUES)
    return Split.TEST if place < Fraction(test_share) else Split.TRAIN

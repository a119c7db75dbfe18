"""The labels by which what we made in an engine is known again, in a run that follows one that was killed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from codetaste.sandbox.owner import owner

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN, JOB, DEADLINE, OWNER = "codetaste.run", "codetaste.job", "codetaste.deadline", "codetaste.owner"
IMAGE = "codetaste.image"
"""On images that we built; what they are."""
LEAN = "lean"
"""The one that has all that a box needs."""
GRACE_S = 900.0
"""How long after the end of its lifetime a box may still be read: the time to take an archive out."""


def labels(run: str, job: str, lifetime_s: float) -> dict[str, str]:
    """Return the labels of a container, network or volume; the deadline in seconds since 1970."""
    deadline = int(time.time() + lifetime_s + GRACE_S)
    return {RUN: run, JOB: job, DEADLINE: str(deadline), OWNER: owner()}


def no_labels() -> dict[str, str]:
    """Return what makes an image forget them: whoever starts one of it later is no box of ours."""
    return dict.fromkeys((RUN, JOB, DEADLINE, OWNER), "")


def is_over(told: Mapping[str, str]) -> bool:
    """Whether the deadline on the labels has passed; a deadline that nobody can read never passes."""
    text = told.get(DEADLINE, "")
    return text.isdigit() and int(text) < time.time()

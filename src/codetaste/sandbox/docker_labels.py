"""The labels by which a later run recognises what a killed run has left in an engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from codetaste.sandbox.owner import owner

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN, JOB, DEADLINE, OWNER = "codetaste.run", "codetaste.job", "codetaste.deadline", "codetaste.owner"
IMAGE = "codetaste.image"
"""On images that codetaste made; its value is their kind."""
LEAN = "lean"
"""The kind of image that has all that a sandbox needs."""
GRACE_S = 900.0
"""Seconds after the end of its lifetime during which archives can still be read from a sandbox."""


def labels(run: str, job: str, lifetime_s: float) -> dict[str, str]:
    """Return the labels of a container, network or volume; the deadline in seconds since 1970."""
    deadline = int(time.time() + lifetime_s + GRACE_S)
    return {RUN: run, JOB: job, DEADLINE: str(deadline), OWNER: owner()}


def no_labels() -> dict[str, str]:
    """Return empty labels, so that a container started from a committed image is not taken for a sandbox."""
    return dict.fromkeys((RUN, JOB, DEADLINE, OWNER), "")


def is_over(found: Mapping[str, str]) -> bool:
    """Whether the deadline on the labels has passed; an unreadable deadline never passes."""
    text = found.get(DEADLINE, "")
    return text.isdigit() and int(text) < time.time()

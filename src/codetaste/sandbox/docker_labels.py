"""The labels by which a later run recognises what a killed run has left in an engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from codetaste.sandbox.owner import process_identity

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN_LABEL, JOB_LABEL, DEADLINE_LABEL, OWNER_LABEL = (
    "codetaste.run",
    "codetaste.job",
    "codetaste.deadline",
    "codetaste.owner",
)
IMAGE_LABEL = "codetaste.image"
"""On images that codetaste made; its value is their kind."""
LEAN_KIND = "lean"
"""The kind of image that has all that a sandbox needs."""
READ_GRACE_S = 900.0
"""Seconds after the end of its lifetime during which archives can still be read from a sandbox."""


def make_labels(run: str, job: str, lifetime_s: float) -> dict[str, str]:
    """Return the labels of a container, network or volume; the deadline in seconds since 1970."""
    deadline = int(time.time() + lifetime_s + READ_GRACE_S)
    return {RUN_LABEL: run, JOB_LABEL: job, DEADLINE_LABEL: str(deadline), OWNER_LABEL: process_identity()}


def empty_labels() -> dict[str, str]:
    """Return empty labels, so that a container started from a committed image is not taken for a sandbox."""
    return dict.fromkeys((RUN_LABEL, JOB_LABEL, DEADLINE_LABEL, OWNER_LABEL), "")


def is_expired(found: Mapping[str, str]) -> bool:
    """Whether the deadline on the labels has passed; an unreadable deadline never passes."""
    text = found.get(DEADLINE_LABEL, "")
    return text.isdigit() and int(text) < time.time()

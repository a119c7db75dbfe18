"""Keys of jobs that the jobs of other flows need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.pass_identity import PassIdentity

if TYPE_CHECKING:
    from codetaste.benchmark.instance import Instance
    from codetaste.benchmark.layout import Track
    from codetaste.rules.registration import Direction


def sources_key(instance: Instance) -> str:
    """Return the key of the job that checks out the trees of ``instance``."""
    return f"sources/{instance.id}"


def pass_key(model_id: str, instance: Instance, direction: Direction) -> str:
    """Return the key of the job in which a model discovers the rules of one direction."""
    return PassIdentity(model_id, instance.id, direction).key


def environment_key(instance: Instance) -> str:
    """Return the key of the job that proves the execution environment of ``instance``."""
    return f"environment/{instance.id}"


def image_key(instance: Instance) -> str:
    """Return the key of the job that makes or finds the runtime image of ``instance``."""
    return f"image/{instance.id}"


def baseline_key(instance: Instance, side: str, number: int) -> str:
    """Return the key of a baseline test run, from 1, on one side of ``instance``."""
    return f"tests/{side}/{instance.id}/{number}"


def description_key(instance: Instance, track: Track) -> str:
    """Return the key of the job that makes a task description of ``instance``."""
    return f"describe/{instance.id}/{track}"

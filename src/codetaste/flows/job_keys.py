"""Keys of jobs that the jobs of other flows need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.pass_identity import PassIdentity

if TYPE_CHECKING:
    from codetaste.benchmark.instance import Instance
    from codetaste.rules.registration import Direction


def sources_key(instance: Instance) -> str:
    """Return the key of the job that checks out the trees of ``instance``."""
    return f"sources/{instance.id}"


def pass_key(model_id: str, instance: Instance, direction: Direction) -> str:
    """Return the key of the job in which a model discovers the rules of one direction."""
    return PassIdentity(model_id, instance.id, direction).key

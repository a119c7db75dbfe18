"""Environments of the same repository at other commits: their scripts are tried before an agent is paid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import scripts_folder
from codetaste.environment.record import read_record
from codetaste.environment.scripts import read_scripts
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.environment.record import EnvironmentRecord
    from codetaste.environment.scripts import EnvironmentScripts


@dataclass(frozen=True, slots=True)
class KnownEnvironment:
    """The environment of an instance."""

    instance: Instance
    record: EnvironmentRecord
    scripts: EnvironmentScripts

    @property
    def setup_image(self) -> str:
        """The name of its setup image, "" without one."""
        return self.record.metadata.setup_image or ""

    @property
    def dependencies(self) -> str:
        """The digest of its dependencies (``dependencies_digest``), "" if unknown."""
        return "" if self.record.details is None else self.record.details.dependencies


def neighbours(
    instance: Instance,
    known: Iterable[KnownEnvironment],
    *,
    dependencies: str = "",
    order: Sequence[Instance] = (),
) -> tuple[KnownEnvironment, ...]:
    """Return the proven environments that may work for ``instance``, the likeliest first.

    They are those of the same repository. One with the same dependencies comes first; then the nearest in
    ``order``. Of several with the same scripts and the same setup image only the first is returned, since the
    others would fail, too.

    Args:
        instance: whose environment is wanted.
        known: environments of any instances.
        dependencies: digest of the dependencies of its R.
        order: the instances of the benchmark.
    """
    ranks = {each.id: rank for rank, each in enumerate(order)}

    def closeness(each: KnownEnvironment) -> tuple[bool, float, str]:
        same = bool(dependencies) and each.dependencies == dependencies
        both = instance.id in ranks and each.instance.id in ranks
        ranks_apart = abs(ranks[instance.id] - ranks[each.instance.id]) if both else math.inf
        return not same, ranks_apart, each.instance.id

    found: dict[tuple[str, str], KnownEnvironment] = {}
    for each in sorted(filter(lambda each: _may_work(each, instance), known), key=closeness):
        found.setdefault((each.scripts.digest, each.setup_image), each)
    return tuple(found.values())


def read_environments(
    root: Path, instances: Iterable[Instance]
) -> tuple[tuple[KnownEnvironment, ...], tuple[str, ...]]:
    """Read the environments that the benchmark or store ``root`` has; blocking.

    Returns:
        The environments, and one line for each problem: those with damaged files are left out.
    """
    found: list[KnownEnvironment] = []
    problems: list[str] = []
    for instance in instances:
        try:
            record = read_record(root, instance)
            if record is not None and record.level.is_proven:
                found.append(KnownEnvironment(instance, record, read_scripts(scripts_folder(root, instance))))
        except ConfigError as error:
            problems += error.problems
    return tuple(found), tuple(problems)


def _may_work(each: KnownEnvironment, instance: Instance) -> bool:
    own, other = each.instance, instance
    same_repository = (own.owner.lower(), own.repo.lower()) == (other.owner.lower(), other.repo.lower())
    return same_repository and own.id != other.id and each.record.level.is_proven

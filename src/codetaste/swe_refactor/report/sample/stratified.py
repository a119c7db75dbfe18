"""The stratified sample: half of the instances short, half long, in a given mix of types (§4.4).

Which instances are drawn depends on the seed and on their ids alone, not on their order, so that the sample
of a larger file keeps most of its instances.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from codetaste.core.text import plural
from codetaste.errors import ConfigError
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.report.sample.apportion import apportion
from codetaste.swe_refactor.report.sample.executable_lines import executable_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

SHORT_LINES: Final = 10
"""Instances with at most this number of executable lines are short (§4.4)."""
SAMPLE_SIZE: Final = 200
TYPE_MIX: Final[Mapping[str, int]] = dict(zip(REFACTORING_TYPES, (80, 13, 74, 26, 4, 3), strict=True))
"""The number of instances of each type in the paper's sample of 200 (§4.4)."""


@dataclass(frozen=True, slots=True)
class StratifiedSample:
    """The instances that were drawn.

    Attributes:
        ids: their unique ids, by type and within a type short ones first.
        counts: the number of short and long ones by type.
        available: the number of short and long given instances by type.
        uncounted: ids of given instances whose target could not be read: they are in no stratum.
    """

    ids: tuple[str, ...]
    counts: Mapping[str, tuple[int, int]]
    available: Mapping[str, tuple[int, int]]
    uncounted: tuple[str, ...] = ()


def count_types(instances: Sequence[RefactoringInstance]) -> dict[str, int]:
    """Return the number of instances of each type that occurs, the six types of the paper first."""
    numbers = Counter(each.type for each in instances)
    others = sorted(set(numbers) - set(REFACTORING_TYPES))
    return {kind: numbers[kind] for kind in (*REFACTORING_TYPES, *others) if numbers[kind]}


def draw_sample(
    instances: Sequence[RefactoringInstance],
    size: int = SAMPLE_SIZE,
    seed: int = 0,
    mix: Mapping[str, int] = TYPE_MIX,
) -> StratifiedSample:
    """Return ``size`` instances, half of them (rounded down) with more than ``SHORT_LINES`` lines.

    The lines are those of the target before the refactoring, by ``executable_lines``. Types are in proportion
    to ``mix``; within a type, short and long ones are as near to its given instances as both halves allow.

    Raises:
        ConfigError: an id occurs twice, or types or halves have too few instances; all of them are named.
    """
    twice = [name for name, number in Counter(each.unique_id for each in instances).items() if number > 1]
    if twice:
        raise ConfigError(f"{plural(len(twice), 'instance')} twice in the list: {', '.join(twice[:5])}")
    strata: defaultdict[tuple[str, bool], list[str]] = defaultdict(list)
    uncounted = []
    for instance in instances:
        lines = executable_lines(instance.source_code_before_refactoring)
        if lines is None:
            uncounted.append(instance.unique_id)
        else:
            strata[instance.type, lines > SHORT_LINES].append(instance.unique_id)
    available = {kind: (len(strata[kind, False]), len(strata[kind, True])) for kind in mix}
    counts = _stratum_sizes(available, size, mix)
    ids = [
        name
        for kind, numbers in counts.items()
        for long, number in zip((False, True), numbers, strict=True)
        for name in sorted(strata[kind, long], key=lambda name: _draw_key(seed, name))[:number]
    ]
    return StratifiedSample(tuple(ids), counts, available, tuple(uncounted))


def _stratum_sizes(
    available: Mapping[str, tuple[int, int]], size: int, mix: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    """Return how many short and long instances of each type are drawn."""
    if size < 0 or (size and not any(mix.values())) or any(number < 0 for number in mix.values()):
        raise ConfigError(f"no sample of {size} instances can be drawn in the mix {list(mix.values())}")
    nothing, unlimited = dict.fromkeys(mix, 0), dict.fromkeys(mix, size)
    wanted = apportion(size, mix, nothing, unlimited) if size else nothing
    problems = [
        f"{kind}: {number} needed, {sum(available[kind])} given"
        for kind, number in wanted.items()
        if number > sum(available[kind])
    ]
    if problems:
        raise ConfigError(f"too few instances for a sample of {size}:", *problems)
    least = {kind: max(0, number - available[kind][1]) for kind, number in wanted.items()}
    most = {kind: min(number, available[kind][0]) for kind, number in wanted.items()}
    short = size - size // 2
    halves = (("at most", short, sum(most.values())), ("more than", size - short, size - sum(least.values())))
    for how, needed, given in halves:
        if given < needed:
            raise ConfigError(
                f"too few instances for a sample of {size}: {needed} with {how} {SHORT_LINES}"
                f" executable lines are needed, its types have {given}"
            )
    weights = {
        kind: number * available[kind][0] / max(1, sum(available[kind])) for kind, number in wanted.items()
    }
    drawn = apportion(short, weights, least, most)
    return {kind: (drawn[kind], wanted[kind] - drawn[kind]) for kind in wanted}


def _draw_key(seed: int, name: str) -> str:
    return sha256(f"{seed}\n{name}".encode("utf-8", "replace")).hexdigest()


def sample_table(sample: StratifiedSample) -> Table:
    """Return the number of drawn and given instances of each stratum."""
    columns = (
        Column("type", "Type"),
        *(
            Column(f"{name}_{what}", what, Unit.COUNT, heading=title)
            for name, title in (("short", f"≤ {SHORT_LINES} lines"), ("long", f"> {SHORT_LINES} lines"))
            for what in ("drawn", "given")
        ),
        Column("drawn", "Drawn", Unit.COUNT),
    )
    rows = [
        Row((kind, short, sample.available[kind][0], long, sample.available[kind][1], short + long))
        for kind, (short, long) in sample.counts.items()
    ]
    sums = [sum(each) for each in zip(*(row.cells[1:] for row in rows), strict=True)]
    notes = ["lines: executable lines of the method before the refactoring"]
    if sample.uncounted:
        unread = plural(len(sample.uncounted), "instance")
        notes.append(f"{unread} in no stratum, because the target could not be read as a method")
    return Table("sample", "strata of the sample", columns, (*rows, Row(("Total", *sums))), tuple(notes))

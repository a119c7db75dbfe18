"""The paper's Tables 1 and 2: sizes of a benchmark's tasks, and their repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.text import plural
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.benchmark.facts.facts import BenchmarkFacts, InstanceFacts


_AS_PUBLISHED = (
    "As in the paper, which calls them characters, instructions are measured in bytes of UTF-8; "
    "tests are those of the run on R∘X*"
)
_MAX_PROBLEMS = 10
"""Problems that are listed below Table 1."""


def _golden(name: str) -> Callable[[InstanceFacts], int | None]:
    def count(facts: InstanceFacts) -> int | None:
        return None if facts.golden is None else int(getattr(facts.golden, name))

    return count


_Fact = tuple[str, str, "Callable[[InstanceFacts], int | None]"]
_FACTS: tuple[_Fact, ...] = (
    ("Instruction length (bytes)", "Instructed Track", lambda facts: facts.instructed_bytes),
    ("Instruction length (bytes)", "Open Track", lambda facts: facts.open_bytes),
    ("Evaluation", "Total Tests", lambda facts: facts.tests),
    ("Evaluation", "Additive Rules", lambda facts: facts.additive_rules),
    ("Evaluation", "Reductive Rules", lambda facts: facts.reductive_rules),
    ("Evaluation", "Total Rules", lambda facts: facts.rules),
    ("Golden patches", "Files Changed", _golden("files")),
    ("Golden patches", "Lines Added", _golden("added")),
    ("Golden patches", "Lines Removed", _golden("removed")),
    ("Golden patches", "Lines Edited", _golden("edited")),
)


def table_1(facts: BenchmarkFacts) -> Table:
    """Largest and mean size of instructions, tests, rules and golden patches (CodeTaste, Table 1)."""
    rows = []
    for section, title, of in _FACTS:
        known = [number for each in facts.instances if (number := of(each)) is not None]
        mean = sum(known) / len(known) if known else None
        rows.append(Row((title, max(known, default=None), mean, len(known)), section))
    columns = (
        Column("metric", "Metric"),
        Column("max", "Max.", Unit.COUNT),
        Column("mean", "Mean", Unit.MEAN),
        Column("instances", "Instances", Unit.COUNT),
    )
    total = len(facts.instances)
    basis = f"Instances: of {total:,} those of which the number is known; maximum and mean are over these"
    problems = [problem for each in facts.instances for problem in each.problems]
    more = len(problems) - _MAX_PROBLEMS
    notes = (
        basis,
        _AS_PUBLISHED,
        *problems[:_MAX_PROBLEMS],
        *([f"and {more:,} more that could not be read"] if more > 0 else []),
    )
    title = "Summary statistics of the benchmark's instances"
    return Table("1", title, columns, tuple(rows), notes, "", "part")


def table_2(facts: BenchmarkFacts) -> Table:
    """The repositories and their licences, where known (CodeTaste, Table 2)."""
    instances: dict[str, int] = {}
    for each in facts.instances:
        instances[each.repository] = instances.get(each.repository, 0) + 1
    rows = [Row((name, licence, instances[name])) for name, licence in facts.repositories.items()]
    columns = (
        Column("repository", "Repository"),
        Column("licence", "Licence"),
        Column("instances", "Instances", Unit.COUNT),
    )
    of_all = plural(len(facts.instances), "instance")
    title = f"{plural(len(rows), 'repository', 'repositories')} of {of_all}"
    note = "Licences are read from local clones at the base commit, and unknown without a clone"
    return Table("2", title, columns, tuple(rows), (note,))

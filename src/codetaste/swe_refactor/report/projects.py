"""Tables of instances: the projects with their pure refactorings by type (SWE-Refactor Table 6)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

_TOTAL = "Total"


@dataclass(frozen=True, slots=True)
class ProjectInstances:
    """The instances of one project.

    ``commits`` is the number of all commits in its history, whichever were read, and ``stars`` that on its
    page, as in Table 6 of the paper; None if not known.
    """

    name: str
    instances: Sequence[RefactoringInstance]
    commits: int | None = None
    stars: int | None = None


def group_projects(instances: Iterable[RefactoringInstance], name: str) -> list[ProjectInstances]:
    """Group instances by their projects; ``name`` is that of instances that do not name one."""
    found: dict[str, list[RefactoringInstance]] = {}
    for each in instances:
        found.setdefault(each.project_name or name, []).append(each)
    return [ProjectInstances(*project) for project in found.items()]


def project_table(projects: Sequence[ProjectInstances]) -> Table:
    """Return Table 6, with a column for each type; columns that no project has a number for are left out."""
    columns = [Column("project", "Project")]
    facts = [
        (Column("stars", "# Stars", Unit.COUNT), [project.stars for project in projects]),
        (
            Column("commits", "# Commits", Unit.COUNT),
            [project.commits for project in projects],
        ),
    ]
    known = [(column, numbers) for column, numbers in facts if any(each is not None for each in numbers)]
    columns += [column for column, _ in known]
    types = [*REFACTORING_TYPES, *sorted(_other_types(projects))]
    columns += [Column(_column_name(each), each.removesuffix(" Method"), Unit.COUNT) for each in types]
    columns.append(Column("pure_refactorings", "# Pure Refactorings", Unit.COUNT))
    rows = []
    for index, project in enumerate(projects):
        counts = Counter(instance.type for instance in project.instances)
        numbers = [numbers[index] for _, numbers in known]
        rows.append(Row((project.name, *numbers, *(counts[each] for each in types), len(project.instances))))
    sums = [
        sum(each) if None not in each else None for each in zip(*(row.cells[1:] for row in rows), strict=True)
    ]
    if len(rows) > 1:
        rows.append(Row((_TOTAL, *sums)))
    return Table("6", "projects and their pure refactorings", tuple(columns), tuple(rows))


def _other_types(projects: Sequence[ProjectInstances]) -> set[str]:
    found = {instance.type for project in projects for instance in project.instances}
    return found - set(REFACTORING_TYPES)


def _column_name(refactoring_type: str) -> str:
    return refactoring_type.lower().replace(" ", "_")

"""Table 6: the projects and their pure refactorings by type."""

from __future__ import annotations

from codetaste.report.render.csv import render_csv
from codetaste.report.render.json import table_to_json
from codetaste.report.render.latex.render import render_latex
from codetaste.report.render.text import render_text
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.report.projects import ProjectInstances, project_table
from support.swe_refactor.documents import document


def instances(*types: str) -> list[RefactoringInstance]:
    return [RefactoringInstance.from_document(document(type=each)) for each in types]


ONE = ProjectInstances("junit4", instances("Move Method", "Extract Method", "Move Method"), commits=2513)
OTHER = ProjectInstances("gson", instances("Inline Method"))


def test_each_project_has_counts_by_type_and_a_total() -> None:
    table = project_table([ONE, OTHER])
    assert [column.title for column in table.columns] == [
        *("Project", "# Commits", "Extract", "Inline", "Move"),
        *("Extract And Move", "Move And Rename", "Move And Inline", "# Pure Refactorings"),
    ]
    assert [row.cells for row in table.rows] == [
        ("junit4", 2513, 1, 0, 2, 0, 0, 0, 3),
        ("gson", None, 0, 1, 0, 0, 0, 0, 1),
        ("Total", None, 1, 1, 2, 0, 0, 0, 4),
    ]


def test_columns_without_any_number_are_left_out_and_other_types_are_added() -> None:
    table = project_table([ProjectInstances("x", instances("Pull Up Method"), stars=5)])
    assert [column.name for column in table.columns[:2]] == ["project", "stars"]
    assert (table.columns[-2].name, table.rows[0].cells[-2:]) == ("pull_up_method", (1, 1))
    assert len(table.rows) == 1


def test_no_project_gives_an_empty_table() -> None:
    assert project_table([]).rows == ()


def test_it_is_written_as_text_csv_json_and_latex() -> None:
    table = project_table([ONE, OTHER])
    assert "junit4" in render_text(table, 120)
    assert "6,,,junit4,,move_method,count,2" in render_csv([table])
    assert r"{\shortstack{\# Pure\\Refactorings}}" in render_latex(table)
    assert table_to_json(table)["name"] == "6"

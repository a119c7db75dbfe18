"""What figures draw equals the tables of the report and the CSV beside them."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.evaluation.trials.records import TrialSource
from codetaste.figures.data import FigureData
from codetaste.figures.drawing.style import figure_style
from codetaste.figures.figure import Plot
from codetaste.figures.kinds.catalogue import KINDS
from codetaste.figures.kinds.cost import pareto_front
from codetaste.figures.names import FIGURE_NAMES, FigureName
from codetaste.report.render.csv import render_csv
from codetaste.report.render.paper import PaperWidth
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.tables.effort import effort_table
from codetaste.report.tables.scores import table_4, table_5
from codetaste.swe_refactor.report.successes import figure_3
from support.figures.synthetic import synthetic_results

AGENTS, INSTANCES = 4, 9


@pytest.fixture(scope="module", params=list(Aggregation))
def data(request: pytest.FixtureRequest) -> FigureData:
    return FigureData(synthetic_results(AGENTS, INSTANCES, answers=60), request.param)


def plots(data: FigureData, name: FigureName) -> list[Plot]:
    return KINDS[name].plots(data)


def in_csv(plot: Plot) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv([plot.table]))))


def number(text: str) -> float | None:
    return float(text) if text else None


def test_every_name_has_a_kind() -> None:
    assert tuple(KINDS) == FIGURE_NAMES


def test_scores_are_those_of_tables_4_and_5(data: FigureData) -> None:
    columns = {"passed": "PASS", "alignment": "A", "ifr": "IFR", "prec": "PREC"}
    tables = [table_4(data.view), table_5(data.view)]
    expected = {
        (row.section, row.cells[0], column.name): row.cells[at]
        for table in tables
        for row in table.rows
        for at, column in enumerate(table.columns)
    }
    lines = [line for plot in plots(data, "scores") for line in in_csv(plot)]
    assert {*columns, "trials"} - {line["column"] for line in lines} <= {"prec"}
    for line in lines:
        cell = expected[line["section"], line["row"], line["column"]]
        mean = getattr(cell, "mean", cell)
        assert number(line["value"]) == mean
        if line["section"] != "References" and line["column"] in columns:
            assert (number(line["low"]), number(line["high"])) == (cell.low, cell.high)  # type: ignore[union-attr]


def test_the_markers_of_scores_are_their_means(data: FigureData) -> None:
    for plot in plots(data, "scores"):
        with figure_style():
            figure = plot.draw(plot.table, PaperWidth.PAGE)
        for place, axes in enumerate(figure.axes, 1):
            markers: list[Any] = [line.get_xdata() for line in axes.lines if line.get_marker() != "None"]
            rows: list[Any] = [row for row in plot.table.rows if row.section != "References"]
            assert sorted(float(x) for xs in markers for x in xs) == sorted(
                row.cells[place].mean for row in rows
            )


def test_the_caption_of_scores_names_the_panels_and_the_trials_of_the_golden_patch(data: FigureData) -> None:
    for plot in plots(data, "scores"):
        shown = [column.title for column in plot.table.columns[1:-1]]
        assert plot.title.startswith(f"{', '.join(shown[:-1])} and {shown[-1]} of each agent")
        assert plot.title.endswith(f"; the golden patch: the mean of its {INSTANCES} trials")


def test_a_heat_map_of_one_instance_is_no_taller_than_it_needs() -> None:
    plot = plots(FigureData(synthetic_results(2, 1), Aggregation.STRICT), "heatmap")[0]
    with figure_style():
        assert plot.draw(plot.table, PaperWidth.PAGE).get_figheight() < 1


def test_costs_are_those_of_the_table_of_effort(data: FigureData) -> None:
    table = effort_table(data.view)
    at = next(at for at, column in enumerate(table.columns) if column.name == "cost_usd")
    expected = {(str(row.cells[0]), row.section): row.cells[at] for row in table.rows}
    for plot in plots(data, "cost"):
        for row in plot.table.rows:
            assert row.cells[1] == expected[row.section, str(row.cells[0])]


@pytest.mark.parametrize("name", ["cost", "directions", "strategies"])
def test_panels_side_by_side_have_one_scale(data: FigureData, name: FigureName) -> None:
    for plot in plots(data, name):
        with figure_style():
            figure = plot.draw(plot.table, PaperWidth.PAGE)
        assert len({axes.get_xlim() + axes.get_ylim() for axes in figure.axes}) == 1


def test_the_title_of_the_cost_figure_names_the_agents_of_scripted_models(data: FigureData) -> None:
    first = data.results.trials.agents[0]
    metadata = replace(first.metadata, source=TrialSource.CODETASTE, provider="scripted")
    trials = replace(
        data.results.trials, agents=(replace(first, metadata=metadata), *data.results.trials.agents)
    )
    played = FigureData(replace(data.results, trials=trials), data.aggregation)
    note = f"; scripted, with costs that are not real: {first.agent}"
    assert all(plot.title.endswith(note) for plot in plots(played, "cost"))
    assert not any("scripted" in plot.title for plot in plots(data, "cost"))


def test_endings_count_every_trial(data: FigureData) -> None:
    (plot,) = plots(data, "endings")
    reasons = Counter((each.agent, each.metadata.finish_reason) for each in data.results.trials.agents)
    for line in in_csv(plot):
        agent = line["row"]
        if line["column"] == "trials":
            assert number(line["value"]) == sum(
                count for (name, _), count in reasons.items() if name == agent
            )
        else:
            assert number(line["value"]) == reasons[agent, line["column"]]


def test_a_heat_map_has_each_trial(data: FigureData) -> None:
    maps = {plot.name: plot for plot in plots(data, "heatmap")}
    assert len(maps) == 4
    for record in data.results.trials.agents:
        lines = {
            (line["row"], line["heading"]): line["value"]
            for line in in_csv(maps[f"heatmap-{record.track}-{record.mode}"])
        }
        value = data.view.value(record, data.view.primary_measure)
        assert number(lines.get((record.instance, record.agent), "")) == value


def test_the_image_of_a_heat_map_is_its_table(data: FigureData) -> None:
    plot = plots(data, "heatmap")[0]
    with figure_style():
        figure = plot.draw(plot.table, PaperWidth.COLUMN)
    image: Any = figure.axes[0].images[0].get_array()
    assert image is not None
    for drawn, row in zip(image.filled(math.nan), plot.table.rows, strict=True):
        for value, cell in zip(drawn, row.cells[1:], strict=True):
            assert (math.isnan(float(value)) and cell is None) or float(value) == cell


def test_strategies_are_the_table_of_figure_3(data: FigureData) -> None:
    (plot,) = plots(data, "strategies")
    assert plot.table == figure_3(data.results.answers.rows)
    with figure_style():
        figure = plot.draw(plot.table, PaperWidth.PAGE)
    bars: list[Any] = [patch for axes in figure.axes for patch in axes.patches]
    counts: list[Any] = [cell for row in plot.table.rows for cell in row.cells[1:]]
    assert sum(bar.get_height() for bar in bars) == sum(counts)


def test_languages_count_each_instance_once(data: FigureData) -> None:
    (plot,) = plots(data, "languages")
    assert sum(row.cells[1] for row in plot.table.rows if isinstance(row.cells[1], int)) == INSTANCES


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_the_front_has_the_points_that_no_other_one_beats(points: list[tuple[int, int]]) -> None:
    for (cost, score), on_front in zip(points, pareto_front(points), strict=True):
        cheaper = [other for price, other in points if price < cost]
        equal = [other for price, other in points if price == cost]
        assert on_front == (score > max(cheaper, default=-1) and score == max(equal))


def test_a_damaged_funnel_is_left_out(tmp_path: Path) -> None:
    for name, text in {
        "good": '{"rows": [{"stage": "keywords", "filter": "stars", "entered": 9, "removed": 2, "unknown": 0,'
        ' "reasons": {"a": 2}, "examples": [], "cost_usd": "0"}]}',
        "cut": '{"rows": [{"stage": "keyw',
        "wrong": '{"rows": [{"stage": "keywords", "filter": "stars", "entered": "9", "removed": 2,'
        ' "unknown": 0, "reasons": {}, "examples": [], "cost_usd": "0"}]}',
    }.items():
        folder = tmp_path / "mining" / name
        folder.mkdir(parents=True)
        (folder / "funnel.json").write_text(text)
    (tmp_path / "mining" / "steps.json").write_text("[]")
    data = FigureData(synthetic_results(0, 0, roots=[tmp_path]), Aggregation.STRICT)
    (plot,) = plots(data, "funnel")
    assert [line["value"] for line in in_csv(plot)[:3]] == ["9", "2", "7"]

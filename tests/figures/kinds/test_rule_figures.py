"""The difficulty of rules, and names that must be guessed, from runs on disk."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from pathlib import Path

import pytest

from codetaste.benchmark.config import BenchmarkConfig
from codetaste.figures.data import FigureData
from codetaste.figures.kinds.catalogue import KINDS
from codetaste.figures.kinds.guesses import draw_guesses
from codetaste.figures.kinds.rules import draw_rules
from codetaste.figures.names import FigureName
from codetaste.report.render.csv import render_csv
from codetaste.report.render.paper import PaperWidth
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.results.read import read_results
from codetaste.run.resolve import find_benchmark
from support.site.synthetic import Size, write_results


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> FigureData:
    benchmark, run = write_results(tmp_path_factory.mktemp("made"), Size(instances=3, agents=2, rules=4))
    for path in sorted((benchmark / "assets" / "descriptions").rglob("open_description.md")):
        path.write_text("Improve it")
    opened = find_benchmark(BenchmarkConfig(path=str(benchmark)), Path())
    return FigureData(read_results([run], opened), Aggregation.STRICT)


def lines_of(data: FigureData, name: FigureName) -> list[dict[str, str]]:
    (plot,) = KINDS[name].plots(data)
    return list(csv.DictReader(io.StringIO(render_csv([plot.table]))))


def test_the_mean_over_rules_is_the_rate_of_the_report(data: FigureData) -> None:
    """IFR of all trials at an instance is the mean of its rules' shares."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for line in lines_of(data, "rules"):
        if line["section"] == "Instructed":
            shares[line["row"].partition(" / ")[0]].append(float(line["value"]))
    for instance, values in shares.items():
        rates = [
            record.scores.ifr
            for record in data.results.trials.agents
            if record.instance == instance and record.track == "instructed" and record.scores.ifr is not None
        ]
        assert sum(values) / len(values) == pytest.approx(sum(rates) / len(rates))


def test_rules_are_sorted_the_easiest_first(data: FigureData) -> None:
    lines = lines_of(data, "rules")
    for setting in {line["section"] for line in lines}:
        for direction in ("additive", "reductive"):
            own = [
                float(line["value"])
                for line in lines
                if line["section"] == setting and line["row"].endswith(direction)
            ]
            assert own
            assert own == sorted(own, reverse=True)


def test_names_are_guessed_where_the_description_lacks_them(data: FigureData) -> None:
    by_setting = {
        (line["row"], line["column"]): float(line["value"] or "nan") for line in lines_of(data, "guesses")
    }
    assert by_setting["Instructed", "guessed_share"] == 0
    rows = [
        row
        for row in data.rules
        if row.direction == "additive" and (row.track, row.mode) == ("open", "direct")
    ]
    guessed = {(row.instance, row.rule) for row in rows if row.guessed_names}
    assert guessed
    share = len(guessed) / len({(row.instance, row.rule) for row in rows})
    assert by_setting["Open Direct", "guessed_share"] == share
    for kind in ("guessed", "other"):
        values = [row.satisfied for row in rows if bool(row.guessed_names) is (kind == "guessed")]
        assert by_setting["Open Direct", kind] == sum(map(bool, values)) / len(values)


@pytest.mark.parametrize("width", PaperWidth)
def test_both_are_drawn(data: FigureData, width: PaperWidth) -> None:
    names: tuple[FigureName, ...] = ("rules", "guesses")
    for name, draw in zip(names, (draw_rules, draw_guesses), strict=True):
        (plot,) = KINDS[name].plots(data)
        assert draw(plot.table, width).axes

"""The site of made-up results: every link leads somewhere, and its numbers are those of the report."""

from __future__ import annotations

import csv
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from codetaste.errors import ConfigError
from codetaste.evaluation.trials.records import TrialRecords, TrialStatus
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.comparison import compare_systems
from codetaste.report.statistics.measures import ALIGNMENT, EDITED, IFR, PASS, PREC
from codetaste.report.statistics.merge import merge_runs
from codetaste.report.statistics.view import aggregate_trials
from codetaste.report.tables.comparison import comparison_table
from codetaste.report.tables.effort import counts_table
from codetaste.report.tables.scores import table_5
from codetaste.results.outcome import OutcomeFacet
from codetaste.results.read import RunResults, read_results
from codetaste.site.build import open_site, site_blocks, site_files
from codetaste.site.output.write import MARKER, write_site
from codetaste.site.overview.compare import compare_files
from codetaste.site.overview.pairs import PairVerdict, compare_pair, tested_pairs
from codetaste.site.overview.places import find_places
from codetaste.site.site import agent_address, instance_address
from support.site.links import broken_links
from support.site.studies import EXCERPT, write_studies
from support.site.synthetic import Size, write_results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> RunResults:
    """Two agents in two settings on three instances."""
    size = Size(instances=3, agents=2, settings=2, lines=0.02, turns=2, rules=3)
    run = write_results(tmp_path_factory.mktemp("synthetic"), size)[1]
    trial = read_results([run]).trials.agents[0]
    write_studies(run, trial.instance, trial.agent)
    return read_results([run])


@pytest.fixture(scope="module")
def nothing(results: RunResults) -> RunResults:
    """The same run before its first trial has ended."""
    return replace(results, trials=merge_runs([]), records=TrialRecords())


@pytest.fixture(scope="module")
def written(results: RunResults, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of these results."""
    return write_site(results, tmp_path_factory.mktemp("site") / "report", "a report").index.parent


def test_every_link_leads_to_a_file_and_no_page_has_inline_scripts(written: Path) -> None:
    assert list(broken_links(written)) == []
    policy = "script-src 'self'; style-src 'self'"
    assert all(policy in path.read_text("utf-8") for path in written.rglob("*.html"))


def test_addresses_are_unique_and_stable(results: RunResults) -> None:
    addresses = [file.address for file in site_files(open_site(results, "a"))]
    assert len(set(addresses)) == len(addresses)
    blocks = [file.address for block in site_blocks(open_site(results, "a"), 5) for file in block]
    assert sorted(blocks) == sorted(addresses)
    assert addresses == [file.address for file in site_files(open_site(results, "b"))]


def test_numbers_of_the_leaderboard_are_those_of_the_report(results: RunResults, written: Path) -> None:
    for aggregation, page in ((Aggregation.STRICT, "index.html"), (Aggregation.PUBLISHED, "published.html")):
        comparison = compare_systems(aggregate_trials(results.trials, aggregation))
        with (written / f"leaderboard-{aggregation}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        found = {(row["agent"], row["setting"], row["measure"]): row for row in rows}
        for each in comparison.estimates:
            row = found[each.system, each.setting, each.measure.name]
            assert row["mean"] == ("" if each.interval.mean is None else repr(each.interval.mean))
            assert int(row["n"]) == each.interval.n
        text = (written / page).read_text("utf-8")
        assert all(f'id="{row["address"].partition("#")[2]}"' in text for row in rows)


def test_pairs_sort_by_effect_and_count_every_instance_once(results: RunResults) -> None:
    site = open_site(results, "a")
    pairs = list(tested_pairs(site))
    assert len(pairs) == 4  # two settings with two agents, two agents with two settings
    for pair in pairs:
        compared = compare_pair(site, pair)
        effects = [abs(row.effect or 0.0) for row in compared.rows]
        assert effects == sorted(effects, reverse=True)
        assert sum(compared.counts[each] for each in PairVerdict) == len(compared.rows)
        mean = sum(row.effect or 0.0 for row in compared.rows) / len(compared.rows)
        assert compared.differences[0].interval.mean == pytest.approx(mean)


def test_agents_without_a_significant_difference_share_a_place(results: RunResults) -> None:
    comparison = open_site(results, "a").comparisons[Aggregation.STRICT]
    for setting in comparison.settings:
        places = find_places(comparison, setting)
        assert {place.number for place in places.values()} == {1}  # three instances show no difference
        assert all(set(place.tied) == set(places) - {name} for name, place in places.items())


def test_a_site_replaces_a_site_and_nothing_else(nothing: RunResults, tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.mkdir()
    (target / "thesis.tex").write_text("precious")
    with pytest.raises(ConfigError, match="has files and is no site"):
        write_site(nothing, target, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["report"]
    (target / "thesis.tex").unlink()
    write_site(nothing, target, "a")
    (target / "old.html").write_text("old")
    write_site(nothing, target, "a")
    assert not (target / "old.html").exists()
    assert (target / MARKER).is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_link_to_a_site_stays_and_links_in_the_site_are_not_followed(
    nothing: RunResults, tmp_path: Path
) -> None:
    place, latest, other = (tmp_path / name for name in ("report-1", "latest", "other"))
    place.mkdir()
    other.mkdir()
    (other / "thesis.tex").write_text("precious")
    latest.symlink_to("report-1")
    for _ in range(2):
        assert write_site(nothing, latest, "a").index == latest / "index.html"
        assert latest.is_symlink()
        assert (place / MARKER).is_file()
        assert not (place / "out").is_symlink()
        (place / "out").symlink_to(other)
    assert (other / "thesis.tex").read_text() == "precious"
    (tmp_path / "elsewhere").symlink_to(other)
    with pytest.raises(ConfigError, match="has files and is no site"):
        write_site(nothing, tmp_path / "elsewhere", "a")
    (tmp_path / "lost").symlink_to("nowhere")
    with pytest.raises(ConfigError, match="exists and is no folder"):
        write_site(nothing, tmp_path / "lost", "a")
    assert {path.name for path in tmp_path.iterdir()} == {"report-1", "latest", "other", "elsewhere", "lost"}


def test_a_site_is_not_written_into_a_run(results: RunResults) -> None:
    for target in (results.roots[0], results.roots[0] / "report"):
        with pytest.raises(ConfigError):
            write_site(results, target, "a")
    assert not (results.roots[0] / "report").exists()


def test_an_archive_has_the_same_files_each_time(nothing: RunResults, tmp_path: Path) -> None:
    first, second = (write_site(nothing, tmp_path / f"{name}.zip", "a") for name in "ab")
    with zipfile.ZipFile(first.index) as archive, zipfile.ZipFile(second.index) as other:
        assert "a/index.html" in archive.namelist()
        names = [name.removeprefix("a") for name in archive.namelist()]
        assert all(archive.read(f"a{name}") == other.read(f"b{name}") for name in names)


WRITE_IN_TWO = """
import sys, threading
from pathlib import Path
from codetaste.results.read import read_results
from codetaste.site.output import write
write._MIN_TRIALS_OF_SHARES = 1
if sys.argv[3] == "spawn":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
if __name__ == "__main__":
    assert write._process_context().get_start_method() == sys.argv[3]
    write.write_site(read_results([Path(sys.argv[1])]), Path(sys.argv[2]), "a report")
"""


@pytest.mark.heavy
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_two_processes_write_what_one_writes(
    results: RunResults, written: Path, tmp_path: Path, start: str
) -> None:
    folder, script = tmp_path / "report", tmp_path / "write.py"
    script.write_text(WRITE_IN_TWO)
    subprocess.run([sys.executable, script, results.roots[0], folder, start], check=True)
    files = {path.relative_to(written): path for path in written.rglob("*") if path.is_file()}
    assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == set(files)
    assert [name for name, path in files.items() if (folder / name).read_bytes() != path.read_bytes()] == []


def test_pages_say_how_large_a_difference_the_pairs_would_show(tmp_path: Path) -> None:
    size = Size(instances=10, agents=2, settings=1, lines=0.02, turns=1, rules=3)
    results = read_results([write_results(tmp_path, size)[1]])
    site = open_site(results, "a")
    comparison = compare_systems(aggregate_trials(results.trials, Aggregation.STRICT))
    [test] = [each for each in comparison.tests if each.measure == comparison.primary]
    assert test.detectable is not None
    points = f"{100 * test.detectable:.1f}"
    pages = {file.address: file for file in site_files(site)}
    [pair] = tested_pairs(site)
    assert f'<td class="num">{points}</td>' in pages[pair.address].make().decode()
    assert f'<td class="num">{points}</td>' in pages["compare/index.html"].make().decode()
    note = f"{test.setting} {points} points"
    assert note in pages["index.html"].make().decode()
    assert any(note in each for each in comparison_table(comparison).notes)


def test_who_changes_nothing_useful_is_wrong_though_its_tests_pass(results: RunResults) -> None:
    agents = tuple(
        replace(trial, scores=replace(trial.scores, passed=True, ifr=0.0))
        if trial.agent == "sonnet-4.5"
        else trial
        for trial in results.trials.agents
    )
    site = open_site(replace(results, trials=replace(results.trials, agents=agents)), "a")
    for pair in tested_pairs(site):
        for row in compare_pair(site, pair).rows:
            for system, side in zip(pair, (row.first, row.second), strict=True):
                outcomes = {site.facet(trial) for trial in side.trials}
                assert side.right is bool(outcomes & {OutcomeFacet.SUCCESS, OutcomeFacet.PARTIAL_SUCCESS})
                assert not (side.right and system.agent == "sonnet-4.5")


def test_the_page_of_any_two_says_that_more_pairs_are_tested_than_have_a_page(
    results: RunResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codetaste.site.overview.compare._MAX_PAGES", 3)
    files = {file.address: file for file in compare_files(open_site(results, "a"))}
    assert sum(address.endswith("pair.csv") for address in files) == 3
    assert "The first 3 of 4 tested pairs" in files["compare/index.html"].make().decode()


def test_notes_of_an_agents_page_count_its_own_trials_and_its_numbers_are_those_of_the_report(
    results: RunResults,
) -> None:
    agents = tuple(
        replace(trial, scores=replace(trial.scores, prec=None, status=TrialStatus.SCORED))
        if trial.agent == "sonnet-4.5"
        else trial
        for trial in results.trials.agents
    )
    site = open_site(replace(results, trials=replace(results.trials, agents=agents)), "a")
    without = "sonnet-4.5"
    page = next(file for file in site_files(site) if file.address == agent_address(without)).make().decode()
    view = site.views[Aggregation.STRICT]
    [note] = [each for each in table_5(view.only(agent=without)).notes if "PREC in" in each]
    assert note.startswith("Of 6 trials there is no value of PREC in 6:")
    assert note in page
    assert table_5(view.only(agent=without)).rows == tuple(
        row for row in table_5(view).rows if row.section in {without, "References"}
    )
    assert counts_table(view.only(agent=without)).rows == tuple(
        row for row in counts_table(view).rows if row.section == without
    )


def test_failure_labels_are_marks_of_trials_and_their_evidence_is_on_the_page_of_the_instance(
    results: RunResults,
) -> None:
    site = open_site(results, "a")
    files = {file.address: file for file in site_files(site)}
    [labelled] = [trial for trial in site.trials if site.labels(trial)]
    for address in ("trials/index.html", agent_address(labelled.agent)):
        assert files[address].make().decode().count('data-mark="shim instead of the change"') == 1
    page = files[instance_address(labelled.instance)].make().decode()
    assert EXCERPT in page[page.index('<h2 id="studies"') :]


def test_the_page_of_rules_says_that_there_are_more_than_it_lists(
    results: RunResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codetaste.site.overview.rules._MAX_LISTED", 2)
    monkeypatch.setattr("codetaste.site.overview.instances._MAX_RULES", 1)
    site = open_site(results, "a")
    files = {file.address: file for file in site_files(site)}
    judged = sum(each.share is not None for rules in site.rule_tallies.values() for each in rules)
    assert f"The hardest 2 of {judged} rules" in files["rules/index.html"].make().decode()
    name, rules = next(iter(site.rule_tallies.items()))
    assert f"The first 1 of {len(rules)} rules" in files[instance_address(name)].make().decode()


def test_one_of_a_thing_has_no_plural(tmp_path: Path) -> None:
    size = Size(instances=1, agents=1, settings=1, lines=0.02, turns=1, rules=3)
    site = open_site(read_results([write_results(tmp_path, size)[1]]), "a")
    files = {file.address: file for file in site_files(site)}
    for address, text in {"instances/index.html": "1 instance with", "trials/index.html": "1 trial;"}.items():
        assert text in files[address].make().decode()


def test_the_leaderboard_says_what_its_numbers_mean_and_what_they_are_of(
    results: RunResults, written: Path
) -> None:
    page = (written / "index.html").read_text("utf-8")
    for title, text in (("Benchmark", "benchmark"), ("Run", "synthetic"), ("Days (UTC)", "1970-01-01")):
        assert f"<dt>{title}</dt><dd>{text}</dd>" in page
    assert "better than: significantly better than these" in page
    assert "&gt;: significantly" not in page
    for measure in (PASS, ALIGNMENT, IFR, PREC, EDITED):
        assert f"<dt><strong>{measure.title}</strong></dt>" in page
        assert f'title="{measure.title}: ' in (written / "trials/index.html").read_text("utf-8")
    assert all("#numbers" in path.read_text("utf-8") for path in written.rglob("*/index.html"))

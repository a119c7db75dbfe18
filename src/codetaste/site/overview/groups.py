"""Pages by agent, by track and mode, and by language, category and repository."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from codetaste.report.render.json import table_to_json
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.table import collapse_equal
from codetaste.report.tables.effort import counts_table, effort_table
from codetaste.report.tables.groups import GroupBy, group_table
from codetaste.report.tables.scores import table_4, table_5
from codetaste.site.html.data_files import json_file
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.overview.trial_rows import COLUMNS, trial_rows, trials_csv
from codetaste.site.site import agent_address, setting_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.merge import TrackMode
    from codetaste.report.statistics.view import AggregatedTrials
    from codetaste.report.table import Table
    from codetaste.site.site import Site

ADDRESS = "groups/index.html"
GROUPS = (GroupBy.AGENT, GroupBy.MODE, GroupBy.TRACK, GroupBy.LANGUAGE, GroupBy.CATEGORY, GroupBy.REPOSITORY)
_OF_AGENT: Sequence[Callable[[AggregatedTrials], Table]] = (table_4, table_5, effort_table, counts_table)


def groups_files(site: Site) -> Iterator[SiteFile]:
    """Yield the pages of groups, of agents, and of tracks and modes, with their data."""
    yield SiteFile(ADDRESS, partial(_groups_page, site))
    for by in GROUPS:
        yield SiteFile(f"groups/{by}.html", partial(_group_page, site, by))
        yield SiteFile(f"groups/{by}.json", partial(_group_data, site, by))
    for agent in site.results.trials.agent_names:
        yield SiteFile(agent_address(agent), partial(_agent_page, site, agent))
        yield SiteFile(_data(agent_address(agent)), partial(_trials_data, site, _trials_of(site, agent)))
    for track_mode in site.results.trials.track_modes:
        address = setting_address(track_mode.title)
        yield SiteFile(address, partial(_setting_page, site, track_mode))
        yield SiteFile(_data(address), partial(_trials_data, site, _trials_in(site, track_mode)))


def _groups_page(site: Site) -> bytes:
    return render_page(
        site,
        "overview/groups.html",
        ADDRESS,
        "Groups",
        groups=[(str(by), f"groups/{by}.html") for by in GROUPS],
        agents=[(agent, agent_address(agent)) for agent in site.views[Aggregation.STRICT].ranked_agents()],
        settings=[(each.title, setting_address(each.title)) for each in site.results.trials.track_modes],
    )


def _group_tables(site: Site, by: GroupBy) -> list[Table]:
    return collapse_equal([group_table(view, by) for view in site.views.values()])


def _group_page(site: Site, by: GroupBy) -> bytes:
    return render_page(
        site,
        "overview/tables.html",
        f"groups/{by}.html",
        f"By {by}",
        crumbs=[("Leaderboard", "index.html"), ("Groups", ADDRESS)],
        data=[("JSON", f"groups/{by}.json")],
        tables=site.once(_group_tables, by),
        targets=_agent_addresses(site),
        rows=(),
        columns=COLUMNS,
    )


def _group_data(site: Site, by: GroupBy) -> bytes:
    return json_file([table_to_json(table) for table in site.once(_group_tables, by)])


def _agent_page(site: Site, agent: str) -> bytes:
    tables = [
        table
        for make in _OF_AGENT
        for table in collapse_equal(
            [_without_sections(make(view.only(agent=agent)), agent) for view in site.views.values()]
        )
    ]
    address = agent_address(agent)
    return render_page(
        site,
        "overview/tables.html",
        address,
        agent,
        crumbs=[("Leaderboard", "index.html"), ("Groups", ADDRESS)],
        data=[("trials (CSV)", _data(address))],
        tables=tables,
        targets={each.title: setting_address(each.title) for each in site.results.trials.track_modes},
        rows=trial_rows(site, _trials_of(site, agent)),
        columns=COLUMNS,
    )


def _without_sections(table: Table, agent: str) -> Table:
    """Return the table of one agent without its name above the rows, and without the references."""
    rows = tuple(replace(row, section="") for row in table.rows if row.section == agent)
    return replace(table, rows=rows, section="")


def _setting_page(site: Site, track_mode: TrackMode) -> bytes:
    tables = collapse_equal(
        [
            _by_agent(table_4(view.only(track_mode=track_mode)), track_mode.title)
            for view in site.views.values()
        ]
    )
    address = setting_address(track_mode.title)
    return render_page(
        site,
        "overview/tables.html",
        address,
        track_mode.title,
        crumbs=[("Leaderboard", "index.html"), ("Groups", ADDRESS)],
        data=[("trials (CSV)", _data(address))],
        tables=tables,
        targets=_agent_addresses(site),
        rows=trial_rows(site, _trials_in(site, track_mode)),
        columns=COLUMNS,
    )


def _by_agent(table: Table, setting: str) -> Table:
    """Return the table with one row for each agent."""
    first = replace(table.columns[0], name="agent", title="Agent")
    rows = tuple(
        replace(row, cells=(row.section, *row.cells[1:]), section="")
        for row in table.rows
        if row.cells[0] == setting
    )
    return replace(table, columns=(first, *table.columns[1:]), rows=rows, section="")


def _trials_of(site: Site, agent: str) -> list[TrialRecord]:
    return [trial for trial in site.trials if trial.agent == agent]


def _trials_in(site: Site, track_mode: TrackMode) -> list[TrialRecord]:
    return [
        trial for trial in site.trials if (trial.track, trial.mode) == (track_mode.track, track_mode.mode)
    ]


def _trials_data(site: Site, trials: Sequence[TrialRecord]) -> bytes:
    return trials_csv(trial_rows(site, trials))


def _agent_addresses(site: Site) -> dict[str, str]:
    return {agent: agent_address(agent) for agent in site.results.trials.agent_names}


def _data(address: str) -> str:
    return address.replace("index.html", "trials.csv")

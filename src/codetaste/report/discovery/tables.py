"""Tables of discovered rules: by model and pass, by language feature, rejections, overlap between models."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Literal, get_args

from codetaste.report.discovery.features import FEATURES, rule_features
from codetaste.report.ending import count_endings, format_endings
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.rules.registration import Direction, Rejection, jaccard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from codetaste.report.discovery.passes import PassRecord
    from codetaste.report.table import Cell
    from codetaste.rules.scan.model import Line

DiscoveryTableName = Literal["discovery", "rule-features", "rejections", "overlap", "existing-rules"]
DISCOVERY_TABLES: tuple[DiscoveryTableName, ...] = get_args(DiscoveryTableName)[:-1]
"""Made by default; those without data are left out. The last of all needs a benchmark and scans."""


def discovery_tables(passes: Sequence[PassRecord], names: Sequence[str]) -> list[Table]:
    """Make the tables ``names`` of ``passes``; a table without data is left out."""
    if not passes:
        return []
    made = (_TABLES[name](passes) for name in names if name in _TABLES)
    return [table for table in made if table is not None and table.rows]


def _groups(passes: Sequence[PassRecord]) -> Iterator[tuple[str, Direction, list[PassRecord]]]:
    for system in dict.fromkeys(each.system for each in passes):
        for direction in Direction:
            chosen = [each for each in passes if (each.system, each.direction) == (system, direction)]
            if chosen:
                yield system, direction, chosen


def _overview(passes: Sequence[PassRecord]) -> Table:
    columns = (
        Column("system", "Model"),
        Column("pass", "Pass"),
        Column("instances", "Instances", Unit.COUNT),
        Column("rules", "Rules", Unit.COUNT),
        Column("rules_mean", "per instance", Unit.MEAN),
        Column("files", "Files", Unit.COUNT),
        Column("lines", "Lines", Unit.COUNT),
        Column("turns", "Turns", Unit.MEAN),
        Column("tool_calls", "Tool calls", Unit.MEAN),
        Column("cost_usd", "Cost", Unit.USD),
        Column("rule_usd", "per rule", Unit.P),
        Column("endings", "Endings"),
    )
    rows = []
    for system, direction, chosen in _groups(passes):
        rules, usd = sum(len(each.rules) for each in chosen), float(sum(each.usd for each in chosen))
        cells: tuple[Cell, ...] = (
            system,
            direction.value,
            len(chosen),
            rules,
            rules / len(chosen),
            sum(len({path for path, _ in each.lines}) for each in chosen),
            sum(len(each.lines) for each in chosen),
            fmean(each.turns for each in chosen),
            fmean(each.tool_calls for each in chosen),
            usd,
            usd / rules if rules else None,
            format_endings(count_endings(each.ending for each in chosen)),
        )
        rows.append(Row(cells))
    notes = (
        "files and lines: those that the rules match, in R for reductive and in R∘X* for additive passes",
        "turns and tool calls: means of the passes; cost per rule in dollars",
    )
    return Table("discovery", "rules by model and pass", columns, tuple(rows), notes)


def _features(passes: Sequence[PassRecord]) -> Table:
    groups = list(_groups(passes))
    columns = (
        Column("feature", "Feature"),
        *(Column("rules", direction.value, Unit.COUNT, heading=system) for system, direction, _ in groups),
    )
    counts = [
        Counter(feature for each in chosen for rule in each.rules for feature in rule_features(rule.body))
        for *_, chosen in groups
    ]
    totals = [sum(len(each.rules) for each in chosen) for *_, chosen in groups]
    rows = [Row(("all rules", *totals))]
    rows += [
        Row((feature, *(count[feature] for count in counts)))
        for feature in FEATURES
        if any(count[feature] for count in counts)
    ]
    return Table("rule-features", "rules that use each feature of the rule language", columns, tuple(rows))


def _rejections(passes: Sequence[PassRecord]) -> Table | None:
    kinds = [kind for kind in Rejection if any(each.rejections[kind] for each in passes)]
    if not kinds:
        return None
    columns = (
        Column("system", "Model"),
        Column("pass", "Pass"),
        Column("registered", "Registered", Unit.COUNT),
        *(Column(kind.value, kind.value.replace("_", " "), Unit.COUNT) for kind in kinds),
    )
    rows = []
    for system, direction, chosen in _groups(passes):
        counts = sum((each.rejections for each in chosen), Counter[str]())
        registered = sum(len(each.rules) for each in chosen)
        rows.append(Row((system, direction.value, registered, *(counts[kind] for kind in kinds))))
    return Table("rejections", "candidates that were registered or rejected", columns, tuple(rows))


def _overlap(passes: Sequence[PassRecord]) -> Table | None:
    by_key = {(each.system, each.instance, each.direction): each.lines for each in passes}
    systems = list(dict.fromkeys(each.system for each in passes))
    rows = []
    for one, other in combinations(systems, 2):
        for direction in Direction:
            shared = [
                (lines, by_key[other, instance, direction])
                for (system, instance, way), lines in by_key.items()
                if system == one and way is direction and (other, instance, direction) in by_key
            ]
            if shared:
                mean = fmean(jaccard(ours, theirs) for ours, theirs in shared)
                rows.append(Row((one, other, direction.value, len(shared), mean)))
    columns = (
        Column("first", "First"),
        Column("second", "Second"),
        Column("pass", "Pass"),
        Column("instances", "Instances", Unit.COUNT),
        Column("jaccard", "Jaccard", Unit.MEAN),
    )
    if not rows:
        return None
    notes = ("Jaccard: lines that rules of both match over those of either, mean of the instances",)
    return Table("overlap", "agreement of the discovered rules", columns, tuple(rows), notes)


def existing_rules_table(
    passes: Sequence[PassRecord], existing: Mapping[tuple[str, Direction], frozenset[Line]]
) -> Table | None:
    """Compare the covered lines with those of the benchmark's own rules, by instance and direction."""
    rows = []
    for system, direction, chosen in _groups(passes):
        both = [
            (each.lines, existing[each.instance, direction])
            for each in chosen
            if existing.get((each.instance, direction))
        ]
        if not both:
            continue
        cells: tuple[Cell, ...] = (
            system,
            direction.value,
            len(both),
            fmean(len(ours & theirs) / len(theirs) for ours, theirs in both),
            fmean(len(ours & theirs) / len(ours) if ours else 0.0 for ours, theirs in both),
            fmean(jaccard(ours, theirs) for ours, theirs in both),
        )
        rows.append(Row(cells))
    columns = (
        Column("system", "Model"),
        Column("pass", "Pass"),
        Column("instances", "Instances", Unit.COUNT),
        Column("of_existing", "of theirs", Unit.FRACTION),
        Column("of_ours", "of ours", Unit.FRACTION),
        Column("jaccard", "Jaccard", Unit.MEAN),
    )
    notes = (
        "of theirs: share of the lines of the benchmark's rules that the discovered rules match, too",
        "of ours: the other way round; both are means of the instances that have rules",
    )
    title = "discovered rules beside those of the benchmark"
    return Table("existing-rules", title, columns, tuple(rows), notes) if rows else None


_TABLES: dict[str, Callable[[Sequence[PassRecord]], Table | None]] = {
    "discovery": _overview,
    "rule-features": _features,
    "rejections": _rejections,
    "overlap": _overlap,
}

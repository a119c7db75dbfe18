"""Discovery of rules: models compared, and each pass with its rules and the golden lines that they cover."""

from __future__ import annotations

import json
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from codetaste.core.text import printable
from codetaste.errors import CodetasteError
from codetaste.evaluation.changed_lines import changed_lines
from codetaste.report.discovery.tables import DISCOVERY_TABLES, discovery_tables
from codetaste.report.render.csv import render_csv
from codetaste.rules.registration import Direction
from codetaste.rules.scan.model import Match
from codetaste.rules.yaml_writer import dump_rules
from codetaste.site.html.address import file_name
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.trial.patch.excerpt import make_excerpt
from codetaste.site.trial.patch.marked_patch import MarkedPatch, PatchMatches, read_marked_patch
from codetaste.source.patch.model import Patch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.report.discovery.passes import PassRecord
    from codetaste.rules.registration import RegisteredRule
    from codetaste.rules.scan.model import Line
    from codetaste.site.site import Site

DISCOVERY = "discovery/index.html"
_TABLES_FILE = "discovery/tables.csv"
_MAX_YAML = 20_000
_MAX_PATHS = 40


class CoveredPath(NamedTuple):
    """Lines of one file that a rule covers: as text, how many, and how many the golden patch changes."""

    path: str
    lines: str
    number: int
    changed: int | None


class RuleView(NamedTuple):
    """One rule as its page shows it."""

    id: str
    message: str
    severity: str
    yaml: str
    base_count: int
    golden_count: int
    covered: tuple[CoveredPath, ...]
    more_paths: int
    lines: int
    changed: int | None


def discovery_files(site: Site) -> Iterator[SiteFile]:
    """Yield the overview, its tables as data, and the page of each pass with its rules as JSON."""
    yield SiteFile(DISCOVERY, partial(_index, site))
    yield SiteFile(_TABLES_FILE, partial(_tables_csv, site))
    for address, each in _by_address(site).items():
        yield SiteFile(address, partial(_page, site, each, address))
        yield SiteFile(_rules_file(address), partial(_rules_json, each))


def pass_address(record: PassRecord) -> str:
    """Return the address of the page of a pass; ``#rule-ID`` names a rule."""
    names = (record.system, record.instance, record.direction.value)
    return "/".join(["discovery", *map(file_name, names), "index.html"])


def _by_address(site: Site) -> Mapping[str, PassRecord]:
    """Return the passes by the addresses of their pages, in the order of the runs."""
    return {pass_address(each): each for each in reversed(site.results.passes)}


def _rules_file(address: str) -> str:
    return address.replace("index.html", "rules.json")


def _index(site: Site) -> bytes:
    passes = site.results.passes
    return render_page(
        site,
        "construction/discovery.html",
        DISCOVERY,
        "Discovered rules",
        data=[("tables (CSV)", _TABLES_FILE)],
        tables=discovery_tables(passes, DISCOVERY_TABLES),
        passes=[(each, pass_address(each)) for each in passes],
    )


def _tables_csv(site: Site) -> bytes:
    return render_csv(discovery_tables(site.results.passes, DISCOVERY_TABLES)).encode("utf-8", "replace")


def _page(site: Site, record: PassRecord, address: str) -> bytes:
    patch = _golden_patch(site, record)
    known = bool(patch.files)
    return render_page(
        site,
        "construction/pass.html",
        address,
        f"{record.direction.value.capitalize()} rules of {record.system} for {record.instance}",
        crumbs=[("Discovered rules", DISCOVERY)],
        data=[("rules (JSON)", _rules_file(address))],
        record=record,
        rules=[_rule_view(rule, record.direction, patch) for rule in record.rules],
        covered=len(record.lines),
        golden_changed=_golden_counts(record, patch) if known else None,
        excerpt=make_excerpt(patch) if known else (),
        problem=patch.problem,
    )


def _golden_patch(site: Site, record: PassRecord) -> MarkedPatch:
    """Return the golden patch of the instance, marked with what the rules cover; empty if it is not known."""
    benchmark = site.results.benchmark
    found = [each for each in benchmark.instances if each.id == record.instance] if benchmark else []
    path = benchmark.golden_path(found[0]) if benchmark is not None and found else None
    if path is None or not path.is_file():
        return MarkedPatch(problem="the benchmark has no golden patch of this instance")
    matches = tuple(_matches(record))
    additive = record.direction is Direction.ADDITIVE
    marks = PatchMatches(additive=matches) if additive else PatchMatches(reductive=matches)
    return read_marked_patch(path, str(path.parent.resolve()), marks)


def _matches(record: PassRecord) -> Iterator[Match]:
    for rule in record.rules:
        for path, ranges in _ranges(rule.coverage):
            for first, last in ranges:
                yield Match(rule.id, path, first, last)


def _golden_counts(record: PassRecord, patch: MarkedPatch) -> tuple[int, int]:
    """Return how many lines the golden patch changes on the rules' side, and how many of them rules cover."""
    counts = patch.counts
    if counts is None:
        return 0, 0
    if record.direction is Direction.ADDITIVE:
        return counts.added, counts.hits_added
    return counts.removed, counts.hits_removed


def _rule_view(rule: RegisteredRule, direction: Direction, patch: MarkedPatch) -> RuleView:
    changed = _changed(patch, direction) if patch.files else None
    covered = []
    for path, ranges in _ranges(rule.coverage):
        lines = {line for first, last in ranges for line in range(first, last + 1)}
        runs = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in ranges)
        hits = (
            None if changed is None else sum(line in run for run in changed.get(path, ()) for line in lines)
        )
        covered.append(CoveredPath(printable(path, 300), printable(runs, 300), len(lines), hits))
    body = rule.body
    return RuleView(
        printable(rule.id),
        str(body.get("message", "")),
        printable(str(body.get("severity", ""))),
        _yaml(rule),
        rule.base_count,
        rule.golden_count,
        tuple(covered[:_MAX_PATHS]),
        max(0, len(covered) - _MAX_PATHS),
        len(rule.coverage),
        None if changed is None else sum(each.changed or 0 for each in covered),
    )


def _changed(patch: MarkedPatch, direction: Direction) -> Mapping[str, Any]:
    lines = changed_lines(Patch(tuple(each.file for each in patch.files)))
    return lines.added if direction is Direction.ADDITIVE else lines.removed


def _yaml(rule: RegisteredRule) -> str:
    try:
        text = dump_rules([rule.to_rule()])
    except (CodetasteError, ValueError, TypeError, AttributeError):
        text = json.dumps(rule.body, indent=2)
    return text if len(text) <= _MAX_YAML else f"{text[:_MAX_YAML]}\n… ({len(text):,} characters)"


def _ranges(coverage: frozenset[Line]) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield the covered lines of each file as first and last lines of runs."""
    for path, lines in groupby(sorted(coverage), key=lambda each: each[0]):
        runs: list[tuple[int, int]] = []
        for _, line in lines:
            if runs and runs[-1][1] == line - 1:
                runs[-1] = (runs[-1][0], line)
            else:
                runs.append((line, line))
        yield path, runs


def _rules_json(record: PassRecord) -> bytes:
    rules = [rule.to_json() for rule in record.rules]
    return f"{json.dumps({'rules': rules, 'rejections': dict(record.rejections)}, indent=1)}\n".encode()

"""The page of a pass of discovery: its rules, what was rejected, golden lines covered, its conversation."""

from __future__ import annotations

import json
import posixpath
from functools import partial
from typing import TYPE_CHECKING

from codetaste.evaluation.changed_lines import changed_lines
from codetaste.rules.registration import Direction
from codetaste.rules.scan.model import Match
from codetaste.site.construction.rule_view import line_ranges, rejected_view, rule_view
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.trial.patch.excerpt import make_excerpt
from codetaste.site.trial.patch.marked_patch import MarkedPatch, PatchMatches, read_marked_patch
from codetaste.site.trial.transcript.excerpt import excerpts
from codetaste.site.trial.transcript.pieces import transcript_files
from codetaste.site.trial.transcript.timeline import make_timeline
from codetaste.site.trial.transcript.trial_jobs import TrialJobs, find_job
from codetaste.source.patch.model import Patch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.report.discovery.passes import PassRecord
    from codetaste.site.site import Site

DISCOVERY = "discovery/index.html"
_MAX_REJECTED = 200


def pass_file(site: Site, record: PassRecord, address: str) -> SiteFile:
    """Return the page of a pass, with its rules as JSON and its conversation as parts."""
    return SiteFile(address, partial(_page, site, record, address), partial(_parts, record, address))


def _parts(record: PassRecord, address: str) -> Iterator[SiteFile]:
    yield SiteFile(_rules_file(address), partial(_rules_json, record))
    yield from transcript_files(posixpath.dirname(address), _jobs(record))


def _jobs(record: PassRecord) -> TrialJobs:
    return TrialJobs() if record.run is None else find_job(record.run, record.key)


def _rules_file(address: str) -> str:
    return address.replace("index.html", "rules.json")


def _page(site: Site, record: PassRecord, address: str) -> bytes:
    patch = _golden_patch(site, record)
    known, jobs = bool(patch.files), _jobs(record)
    changed = _changed(patch, record.direction) if known else None
    return render_page(
        site,
        "construction/pass.html",
        address,
        f"{record.direction.value.capitalize()} rules of {record.system} for {record.instance}",
        crumbs=[("Discovered rules", DISCOVERY)],
        data=[("rules (JSON)", _rules_file(address))],
        record=record,
        rules=[rule_view(rule, changed) for rule in record.rules],
        rejected=[rejected_view(each) for each in record.rejected[:_MAX_REJECTED]],
        more_rejected=max(0, len(record.rejected) - _MAX_REJECTED),
        recorded=any(each.detailed for each in record.rejected),
        covered=len(record.lines),
        golden_changed=_golden_counts(record, patch) if known else None,
        excerpt=make_excerpt(patch) if known else (),
        problem=patch.problem,
        folder=posixpath.dirname(address),
        conversations=excerpts(jobs),
        timeline=make_timeline(jobs),
    )


def _golden_patch(site: Site, record: PassRecord) -> MarkedPatch:
    """Return the golden patch of the instance, marked with what the rules cover; empty if it is not known."""
    found = site.results.benchmarks.find(record.instance)
    path = found[0].golden_path(found[1]) if found else None
    if path is None or not path.is_file():
        return MarkedPatch(problem="the benchmark has no golden patch of this instance")
    matches = tuple(_matches(record))
    additive = record.direction is Direction.ADDITIVE
    marks = PatchMatches(additive=matches) if additive else PatchMatches(reductive=matches)
    return read_marked_patch(path, str(path.parent.resolve()), marks)


def _matches(record: PassRecord) -> Iterator[Match]:
    for rule in record.rules:
        for path, ranges in line_ranges(rule.coverage):
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


def _changed(patch: MarkedPatch, direction: Direction) -> Mapping[str, Sequence[range]]:
    lines = changed_lines(Patch(tuple(each.file for each in patch.files)))
    return lines.added if direction is Direction.ADDITIVE else lines.removed


def _rules_json(record: PassRecord) -> bytes:
    data = {
        "rules": [rule.to_json() for rule in record.rules],
        "rejections": dict(record.rejections),
        "rejected": [each.to_json() for each in record.rejected],
    }
    return f"{json.dumps(data, indent=1)}\n".encode()

"""The page of one trial, and the data beside it."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import PREDICTION_FILE
from codetaste.site.html.site_file import SiteFile, data_script
from codetaste.site.html.templates import render_page
from codetaste.site.site import agent_address, instance_address, trial_address, trial_folder
from codetaste.site.trial.evaluation.rule_results import RuleOutcome, rules_data
from codetaste.site.trial.evaluation.rule_table import rule_rows
from codetaste.site.trial.evaluation.test_cases import read_test_cases
from codetaste.site.trial.facts import page_title, trial_facts, trial_rates, trial_to_json
from codetaste.site.trial.packed import packed_script
from codetaste.site.trial.patch.patch_data import patch_data, shown_path
from codetaste.site.trial.patch.pieces import packed_piece
from codetaste.site.trial.patch.tables import file_rows, line_rows
from codetaste.site.trial.reference import (
    Reference,
    find_references,
    golden_download,
    golden_file,
    rules_address,
    rules_file,
)
from codetaste.site.trial.related import RelatedTrials, main_rates
from codetaste.site.trial.transcript.excerpt import excerpts
from codetaste.site.trial.transcript.pieces import transcript_files
from codetaste.site.trial.transcript.timeline import make_timeline
from codetaste.site.trial.transcript.trial_jobs import find_trial_jobs
from codetaste.site.trial.trial_view import read_trial_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.site.site import Site
    from codetaste.site.trial.trial_view import TrialView

_MAX_FILE_ROWS = 25
_MAX_RULE_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class TrialSubject:
    """What a page is about: a trial, its reference, and the trials of its instance."""

    trial: TrialRecord
    reference: Reference
    related: RelatedTrials


def trial_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page of each trial with the data beside it, then what the trials of an instance share."""
    references = find_references(site)
    for instance, trials in site.trials_by_instance.items():
        reference = references[instance]
        if reference.has_golden:
            yield golden_file(reference)
        for trial in {rules_address(reference, each): each for each in reversed(trials)}.values():
            yield rules_file(site, reference, trial)
        related = RelatedTrials(site, trials)
        for trial in trials:
            subject = TrialSubject(trial, reference, related)
            yield SiteFile(
                trial_address(trial), partial(_page, site, subject), partial(_parts, site, subject)
            )


def _page(site: Site, subject: TrialSubject) -> bytes:
    trial, reference = subject.trial, subject.reference
    view = read_trial_view(trial, reference)
    jobs = find_trial_jobs(site.results.roots, trial)
    timeline = make_timeline(jobs)
    studies = site.results.studies.of(trial)
    return render_page(
        site,
        "trial.html",
        trial_address(trial),
        page_title(trial),
        crumbs=_crumbs(trial),
        data=_data(trial, view),
        trial=trial,
        facet=site.facet(trial),
        facts=trial_facts(trial),
        rates=trial_rates(trial),
        view=view,
        file_rows=file_rows(view.patch.files[:_MAX_FILE_ROWS]),
        line_rows=partial(line_rows, {(rule.direction, rule.id): rule.anchor for rule in view.rules}),
        more_files=max(0, len(view.patch.files) - _MAX_FILE_ROWS),
        rule_rows=rule_rows(view.rules[:_MAX_RULE_ROWS]),
        more_rules=max(0, len(view.rules) - _MAX_RULE_ROWS),
        rule_counts=_rule_counts(view),
        reference=reference,
        golden=golden_download(reference),
        conversations=excerpts(jobs),
        cases=read_test_cases(jobs),
        studies=studies,
        timeline=timeline,
        rules_script=rules_address(reference, trial),
        others=subject.related.rows(trial),
        other_rates=main_rates(trial),
        parts=_page_parts(view, timed=timeline is not None, studied=not studies.empty),
        instance_page=instance_address(trial.instance),
        folder=trial_folder(trial),
    )


def _parts(site: Site, subject: TrialSubject) -> Iterator[SiteFile]:
    """Yield the data beside a page: of the script, as JSON, and the patch in pieces and as a whole."""
    trial = subject.trial
    folder, view = trial_folder(trial), read_trial_view(trial, subject.reference)
    yield _file(f"{folder}/data.js", data_script("trial", _script_data(view)))
    yield _file(f"{folder}/trial.json", _json(site, trial, view))
    packed = []
    for number, span in enumerate(view.pieces.spans):
        packed.append(packed_piece(view.patch, span))
        yield _file(f"{folder}/patch-{number}.js", packed_script(f"patch-{number}", packed[-1]))
    if view.pieces.complete:
        yield _file(f"{folder}/{PREDICTION_FILE}.gz", b"".join(packed))
    yield from transcript_files(folder, find_trial_jobs(site.results.roots, trial))


def _page_parts(view: TrialView, *, timed: bool, studied: bool) -> list[tuple[str, str]]:
    """Return the sections of the page, by their ids."""
    plans = [("plans", "Plans")] if view.plans.plans else []
    return [
        *(("patch", "Patch"), ("rules", "Rules"), ("tests", "Tests")),
        *plans,
        ("transcript", "Transcript"),
        *([("time", "Time and cost")] if timed else []),
        *([("studies", "Case studies")] if studied else []),
        ("related", "Other trials"),
    ]


def _crumbs(trial: TrialRecord) -> list[tuple[str, str]]:
    return [
        ("Leaderboard", "index.html"),
        (trial.instance, instance_address(trial.instance)),
        (trial.agent, agent_address(trial.agent)),
    ]


def _data(trial: TrialRecord, view: TrialView) -> list[tuple[str, str]]:
    folder = trial_folder(trial)
    patch = [(f"{PREDICTION_FILE}.gz", f"{folder}/{PREDICTION_FILE}.gz")] if view.pieces.complete else []
    return [("trial.json", f"{folder}/trial.json"), *patch]


def _script_data(view: TrialView) -> dict[str, Any]:
    positions: dict[tuple[str, str], int] = {
        (rule.direction, rule.id): number for number, rule in enumerate(view.rules)
    }
    return {"patch": patch_data(view.patch, view.pieces, positions), "rules": rules_data(view.rules)}


def _json(site: Site, trial: TrialRecord, view: TrialView) -> bytes:
    data = trial_to_json(trial, site.facet(trial)) | {
        "rules": [
            {"id": each.id, "direction": each.direction, "outcome": each.outcome, "matches": each.matches}
            for each in view.rules
        ],
        "files": [
            {"path": shown_path(each.path), "added": each.counts.added, "removed": each.counts.removed}
            | {"added_covered": each.counts.hits_added, "removed_covered": each.counts.hits_removed}
            | {"excluded": each.excluded}
            for each in view.patch.files
        ],
        "notes": list(view.notes),
    }
    return (json.dumps(data) + "\n").encode()


def _rule_counts(view: TrialView) -> list[tuple[str, int, int]]:
    """Return for each direction how many of its rules are satisfied, of how many."""
    satisfied = {RuleOutcome.SATISFIED, RuleOutcome.FLAGGED}
    found: defaultdict[str, list[bool]] = defaultdict(list)
    for rule in view.rules:
        found[rule.direction].append(rule.outcome in satisfied)
    return [(direction, sum(each), len(each)) for direction, each in found.items()]


def _file(address: str, content: bytes) -> SiteFile:
    return SiteFile(address, lambda: content)

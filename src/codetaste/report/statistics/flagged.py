"""What flagged rules contribute to IFR (``evaluation/evasion``), and flagged test runs to PASS."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from codetaste.core.text import plural
from codetaste.report.statistics import measures

if TYPE_CHECKING:
    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.view import AggregatedTrials

_MAX_AGENTS = 12


def flagged_notes(view: AggregatedTrials) -> tuple[str, ...]:
    """Return notes with the means of each agent without what is flagged; empty if nothing is."""
    return (*_rule_notes(view), *_test_notes(view))


def _test_notes(view: AggregatedTrials) -> tuple[str, ...]:
    """Return a note with the share of PASS of each agent without the trials whose test runs are flagged."""
    flagged = [record for record in view.listed if record.scores.test_flags]
    if not flagged:
        return ()
    concerned = {record.agent for record in flagged}
    agents = [agent for agent in view.ranked_agents() if agent in concerned]
    shares = [f"{agent} {_pass_shares(view, agent)}" for agent in agents[:_MAX_AGENTS]]
    more = ["…"] if len(agents) > _MAX_AGENTS else []
    where = f"{plural(len(flagged), 'trial')} changed how tests are run or counted (flagged)"
    return (f"{where}; PASS with such trials, and if they failed: {', '.join([*shares, *more])}",)


def _pass_shares(view: AggregatedTrials, agent: str) -> str:
    records = [record for record in view.listed if record.agent == agent]
    sample = view.sample(records, measures.PASS)
    if not sample.values:
        return "?"
    total, size = math.fsum(sample.values), len(sample.values)
    lost = sum(1 for record in sample.records if record.scores.passed and record.scores.test_flags)
    return f"{total / size:.1%} and {(total - lost) / size:.1%}".replace("%", " %")


def _rule_notes(view: AggregatedTrials) -> tuple[str, ...]:
    """Return a note with the mean IFR of each agent without its flagged rules; empty if there are none."""
    flagged = [record for record in view.listed if record.scores.flagged_rules]
    if not flagged:
        return ()
    rules = plural(sum(record.scores.flagged_rules for record in flagged), "additive rule")
    concerned = {record.agent for record in flagged}
    agents = [agent for agent in view.ranked_agents() if agent in concerned]
    means = [f"{agent} {_means(view, agent)}" for agent in agents[:_MAX_AGENTS]]
    more = ["…"] if len(agents) > _MAX_AGENTS else []
    where = f"{rules} in {plural(len(flagged), 'trial')} match only code without effect (flagged)"
    return (f"{where}; IFR with and without them: {', '.join([*means, *more])}",)


def _means(view: AggregatedTrials, agent: str) -> str:
    records = [record for record in view.listed if record.agent == agent]
    sample = view.sample(records, measures.IFR)
    if not sample.values:
        return "?"
    total, size = math.fsum(sample.values), len(sample.values)
    lost = math.fsum(map(_loss, sample.records))
    return f"{total / size:.1%} and {(total - lost) / size:.1%}".replace("%", " %")


def _loss(record: TrialRecord) -> float:
    scores = record.scores
    return 0.0 if scores.ifr is None or scores.ifr_unflagged is None else scores.ifr - scores.ifr_unflagged

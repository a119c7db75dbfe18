"""What the flagged rules of trials contribute to their IFR (``evaluation/evasion/flags.py``)."""

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
    """Return a note with the mean IFR of each agent without its flagged rules; empty if there are none."""
    flagged = [record for record in view.trials.agents if record.scores.flagged_rules]
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
    records = [record for record in view.trials.agents if record.agent == agent]
    sample = view.sample(records, measures.IFR)
    if not sample.values:
        return "?"
    total, size = math.fsum(sample.values), len(sample.values)
    lost = math.fsum(map(_loss, sample.records))
    return f"{total / size:.1%} and {(total - lost) / size:.1%}".replace("%", " %")


def _loss(record: TrialRecord) -> float:
    scores = record.scores
    return 0.0 if scores.ifr is None or scores.ifr_unflagged is None else scores.ifr - scores.ifr_unflagged

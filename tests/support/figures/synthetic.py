"""Made-up results of runs for figures: agents of different strength on instances of different difficulty."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from codetaste.benchmark.layout import GOLDEN, FinishReason
from codetaste.evaluation.trials.records import TrialRecord, TrialRecords
from codetaste.report.statistics.merge import merge_runs
from codetaste.results.read import RunResults
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.report.merge import MergedRows
from codetaste.swe_refactor.report.outcome import NoScore
from codetaste.swe_refactor.report.trial_row import TrialRow
from codetaste.swe_refactor.score.check import CheckOutcome
from support.evaluation.records import trial

LANES = ("instructed/direct", "open/direct", "open/plan", "open/multiplan")
LANGUAGES = ("go", "java", "python", "typescript", "rust", "javascript")
STRATEGIES = ("simple", "rag", "multi-agent")


def synthetic_results(
    agents: int | Sequence[str] = 6,
    instances: int = 20,
    lanes: Sequence[str] = LANES,
    *,
    answers: int = 0,
    roots: Sequence[Path] = (),
) -> RunResults:
    """Return results of ``agents`` on ``instances`` in all ``lanes``; ``answers`` of SWE-Refactor."""
    names = [f"agent-{number:02}" for number in range(agents)] if isinstance(agents, int) else list(agents)
    made = [
        _trial(name, rank / max(1, len(names)), instance, lane)
        for rank, name in enumerate(names)
        for lane in lanes
        for instance in range(instances)
    ]
    pseudo = [
        trial(GOLDEN, _instance(each), 1.0, lane="/", passed=True, prec=0.575) for each in range(instances)
    ]
    records = TrialRecords((*made, *pseudo) if made else ())
    return RunResults(
        roots=tuple(roots),
        records=records,
        trials=merge_runs(records.records),
        passes=(),
        environments=(),
        answers=MergedRows(tuple(_answer(number) for number in range(answers))),
        problems=(),
    )


def _instance(number: int) -> str:
    return f"owner{number % 87}__repository-{number:08x}"


def _trial(agent: str, weakness: float, instance: int, lane: str) -> TrialRecord:
    draw = random.Random(repr((agent, instance, lane)))
    strength = (0.95 - 0.8 * weakness) * (1.0 if lane.startswith("instructed") else 0.35)
    reason = draw.choices(list(FinishReason), (70, 6, 8, 5, 3, 2, 2, 1, 1))[0]
    more = {
        "lane": lane,
        "language": LANGUAGES[instance % 7 % 6],
        "cost_usd": round(draw.lognormvariate(1.5 - 2.5 * weakness, 0.5), 4),
        "finish_reason": reason.value,
    }
    if reason is FinishReason.ERROR:
        return trial(agent, _instance(instance), None, **more)
    share = min(1.0, max(0.0, draw.gauss(strength - instance % 10 / 50, 0.25)))
    rates = {"ifr_plus": share**1.4, "ifr_minus": share**0.8, "prec": min(1.0, share * 0.7)}
    return trial(
        agent, _instance(instance), share, passed=draw.random() < 0.3 + strength / 2, **rates, **more
    )


def _answer(number: int) -> TrialRow:
    draw = random.Random(number)
    strategy, model = STRATEGIES[number % 3], ("small", "large")[number // 3 % 2]
    success = draw.random() < 0.3 + 0.1 * (number % 3) + 0.2 * (model == "large")
    return TrialRow(
        strategy,
        model,
        f"instance-{number // 6}",
        "project",
        REFACTORING_TYPES[number // 6 % 6],
        1,
        CheckOutcome.VERIFIED if success else NoScore.BUDGET,
        compiles_and_passes=success,
        verified=success,
        codebleu=0.5,
        cost_usd=Decimal("0.01"),
    )

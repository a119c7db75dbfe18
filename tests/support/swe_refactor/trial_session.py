"""Trials of scripted models on a real Maven project: all jobs, with the real tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from codetaste.flows.agents.services import AgentSet
from codetaste.flows.context import ModelSet
from codetaste.llm.messages import Request
from codetaste.llm.prompts import Prompts
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import Outcome
from codetaste.orchestration.session import open_session
from codetaste.sandbox.config import SandboxConfig
from codetaste.swe_refactor.config import SweRefactorConfig
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.trials.jobs import trial_handlers, trial_jobs
from codetaste.swe_refactor.trials.open import TrialOpening, open_trials
from codetaste.swe_refactor.trials.plan import ModelNames, plan_strategies
from support.orchestration.closure_jobs import budget_path
from support.retrieval.jobs import make_scripted_model
from support.swe_refactor.documents import document
from support.swe_refactor.tested_project import AFTER, BEFORE, SHOP, History, method


def shop_instance(history: History) -> RefactoringInstance:
    """The extraction that a commit of the history does; its own method is ``sum``."""
    commit = history.commit({SHOP: AFTER})
    total = method(BEFORE, "int total(int[] prices)")
    lines = {"filePath": SHOP, "startColumn": 0, "endColumn": 0}
    before = {**lines, "startLine": total.start_line, "endLine": total.end_line}
    extracted = method(AFTER, "int sum(int[] prices)")
    return RefactoringInstance.from_document(
        document(
            type="Extract Method",
            description="Extract Method\tprivate sum(prices int[]) : int extracted from "
            "public total(prices int[]) : int in class org.example.Shop",
            diffLocations=[
                before,
                {**lines, "startLine": total.start_line, "endLine": total.start_line + 2},
                {**lines, "startLine": extracted.start_line, "endLine": extracted.end_line},
            ],
            commitId=commit,
            uniqueId=f"{commit}_1",
            filePathBefore=SHOP,
            filePathAfter=SHOP,
            packageNameBefore="org.example",
            classNameBefore="org.example.Shop",
            methodNameBefore="org.example.Shop#total",
            sourceCodeBeforeRefactoring=_lines(BEFORE, total.start_line, total.end_line),
            sourceCodeBeforeForWhole=BEFORE,
            sourceCodeAfterForWhole=AFTER,
            sourceCodeAfterRefactoring=_lines(AFTER, total.start_line, extracted.end_line),
            diffSourceCodeSet=[_lines(AFTER, extracted.start_line, extracted.end_line)],
            compileJDK=17,
        )
    )


def _lines(text: str, first: int, last: int) -> str:
    return "\n".join(text.splitlines()[first - 1 : last]).strip()


async def run_trials(
    folder: Path,
    cache: Path,
    clone: Path,
    instances: Sequence[RefactoringInstance],
    strategies: Sequence[Mapping[str, Any]],
    scripts: Mapping[str, Callable[[Request], Any]],
) -> dict[str, Outcome]:
    """Run all jobs of the strategies in one session in ``folder``; return how they ended, by key."""
    models = ModelSet(
        {name: make_scripted_model(folder, script, name) for name, script in scripts.items()},
        {},
        {name: f"fingerprint of {name}" for name in scripts},
    )
    section = SweRefactorConfig.model_validate(
        {"instances": "instances.json", "repositories": [str(clone)], "strategies": [*strategies]}
    )
    names = ModelNames({name: name.title() for name in scripts}, [*scripts])
    opening = TrialOpening(
        trials=plan_strategies(section.strategies, instances, (), names),
        section=section,
        sandbox=SandboxConfig(engine="bubblewrap", memory=4 * 1024**3),
        base_dir=folder,
        out=folder / "run",
        cache=cache,
        agents=AgentSet((), {}, models, Prompts()),
    )
    capacities = {"jobs": 8, "cpu": 2, "sandbox": 8, "memory": 64 * 1024**3}
    limits = BudgetLimits(usd=Decimal(10))
    async with (
        open_trials(opening, 2, lambda _text: None) as context,
        open_session(folder / "run", limits, capacities=capacities, retries={}) as session,
    ):
        session.add_handlers(trial_handlers(context))
        jobs = await trial_jobs(opening.trials, context, budget_path(session.budget))
        return await session.run(jobs)

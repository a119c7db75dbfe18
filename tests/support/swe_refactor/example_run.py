"""A run that finds examples: the jobs of finders, then one job for each instance that searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

from codetaste.flows.context import ModelSet
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Request
from codetaste.llm.prompts import Prompts
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetSnapshot
from codetaste.orchestration.job import Job, JobContext, Outcome
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from codetaste.retrieval.config import RetrievalConfig
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.examples.find import ExampleFinder, open_example_finder
from codetaste.swe_refactor.examples.jobs import example_handlers, example_jobs
from support.orchestration.closure_jobs import budget_path
from support.retrieval.jobs import make_scripted_model
from support.swe_refactor.documents import document

Script = Callable[[Request], Any]


def make_instance(name: str, code: str, **changes: Any) -> RefactoringInstance:
    """Return an instance with the method ``code``, of a commit that no example has."""
    keys = {"uniqueId": name, "commitId": "e" * 40, "sourceCodeBeforeRefactoring": code}
    return RefactoringInstance.from_document(document(**keys, **changes))


async def find_examples(
    folder: Path,
    instances: Sequence[RefactoringInstance],
    scripts: Mapping[str, Script] | None = None,
    *,
    run: str = "run",
    usd: str = "10",
    names: Sequence[str] = ("rag",),
    **config: Any,
) -> tuple[dict[str, Outcome], BudgetSnapshot]:
    """Search the corpus in ``folder`` for each instance, by a finder of each name; ``scripts`` by model id.

    A job ``search/NAME/ID`` has the record of its search and the prompt's examples as value.
    """
    models = {name: make_scripted_model(folder, script, name) for name, script in (scripts or {}).items()}
    configs = {
        name: ModelConfig.model_validate({"id": name, "provider": "scripted", "model": "x:y"})
        for name in models
    }
    models_open = ModelSet(models, configs, {name: f"fingerprint of {name}" for name in models})
    section = RetrievalConfig.model_validate({"examples": "examples.jsonl", **config})
    capacities = {"jobs": 64, "cpu": 2}
    async with AsyncExitStack() as stack:
        opening = open_session(
            folder / run, BudgetLimits(usd=Decimal(usd)), capacities=capacities, retries={}
        )
        session = await stack.enter_async_context(opening)
        budget = budget_path(session.budget)
        jobs: dict[str, Job] = {}
        for name in names:
            finder = await stack.enter_async_context(
                open_finder(folder, section, instances, models_open, name)
            )
            session.add_handlers({**example_handlers(finder), f"search/{name}": searching(finder, instances)})
            jobs = {job.key: job for job in await example_jobs(finder, budget)} | jobs
            for each in instances:
                key = f"search/{name}/{each.unique_id}"
                jobs[key] = Job(key, f"search/{name}", budget, "f", each.unique_id, needs=finder.needs(each))
        outcomes = await session.run(jobs.values())
        return outcomes, session.budget.snapshot()


def open_finder(
    folder: Path,
    config: RetrievalConfig,
    instances: Sequence[RefactoringInstance],
    models: ModelSet,
    name: str = "rag",
) -> Any:
    """Open a finder as a run does."""
    return open_example_finder(
        config,
        name=name,
        base_dir=folder,
        cache=folder / "cache",
        instances=instances,
        prompts=Prompts(),
        models=models,
    )


def searching(finder: ExampleFinder, instances: Sequence[RefactoringInstance]) -> Any:
    """Return a handler that searches."""
    by_id = {each.unique_id: each for each in instances}

    async def search(job: Job, context: JobContext) -> Json:
        found = await finder.find(by_id[job.parameters], context)
        shown = [[each.refactoring, each.before, each.after, each.description] for each in found.examples]
        return {"record": found.record, "shown": shown}

    return search

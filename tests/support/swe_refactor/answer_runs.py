"""Answers of scripted models to the instances of ``shop.py``, as jobs with a budget and a journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from codetaste.llm.messages import Request
from codetaste.llm.prompts import Prompts
from codetaste.orchestration.job import JobContext, Outcome
from codetaste.orchestration.journal.journal import Json
from codetaste.swe_refactor.config import StrategyConfig
from codetaste.swe_refactor.trials.context import TrialContext
from codetaste.swe_refactor.trials.conversation import answer_prompt
from codetaste.swe_refactor.trials.plan import StrategyTrial
from support.retrieval.jobs import make_scripted_model, run_job
from support.swe_refactor.shop import instance, tree


@dataclass
class Script:
    """Gives its replies one after the other, and keeps the requests."""

    replies: list[Any]
    requests: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Any:
        self.requests.append(request)
        reply = self.replies[len(self.requests) - 1]
        return reply(request) if callable(reply) else reply


async def run_answer(
    folder: Path,
    kind: str,
    script: Callable[[Request], Any],
    *,
    usd: str = "10",
    finders: Any = None,
    **strategy: Any,
) -> Outcome:
    """Run the job that gets the answer to the instance of a type."""
    model = make_scripted_model(folder, script)
    config = StrategyConfig(kind="simple", **strategy)
    trial = StrategyTrial(config, "m", "m", "m", scripted=True, instance=instance(kind), digest="", attempt=1)
    source = SimpleNamespace(tree=SimpleNamespace(**_reader()))
    models = SimpleNamespace(models={"m": model})
    parts = {
        "models": models,
        "prompts": Prompts(),
        "finders": finders or {},
        "source": lambda _instance: source,
    }
    context = cast("TrialContext", SimpleNamespace(**parts))

    async def body(job: JobContext) -> Json:
        return await (await answer_prompt(trial, context, job)).store(job)

    outcome, _ = await run_job(folder, body, usd=usd)
    return outcome


def _reader() -> dict[str, Any]:
    files = tree()
    return {"read": files.read, "is_link": files.is_link, "java_files": tuple(sorted(files.files))}

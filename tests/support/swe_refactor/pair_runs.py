"""Pairs of scripted models on the instances of ``shop.py``; a test may kill one: ``pair_runs.py FOLDER``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

sys.path.append(str(Path(__file__).parents[2]))

from codetaste.java.jdt.model import IndexCounts
from codetaste.java.jdt.source_index import IndexedCall, IndexedMethod, IndexedType, SourceIndex
from codetaste.llm.messages import Request, ToolCall
from codetaste.llm.prompts import Prompts
from codetaste.llm.providers.scripted import ScriptedReply
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetSnapshot
from codetaste.orchestration.job import JobContext, Outcome
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from codetaste.swe_refactor.config import StrategyConfig
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.trials.context import TrialContext
from codetaste.swe_refactor.trials.conversation import AppliedAnswer
from codetaste.swe_refactor.trials.pair import pair
from codetaste.swe_refactor.trials.pair.evidence import Evidence, ToolFinding
from codetaste.swe_refactor.trials.plan import StrategyTrial
from support.orchestration.closure_jobs import closure_job
from support.retrieval.jobs import make_scripted_model
from support.swe_refactor.shop import CART, FILES, TOTAL, answer, instance, tree

EXTRACT = "Extract Method"
RIGHT = answer(EXTRACT)
WRONG_SUM = answer(EXTRACT).replace("sum += price", "sum -= price")
MISSPELT = answer(EXTRACT).replace("int sum = sum();", "int sum = summ();")
UNEXTRACTED = f"#####\n{TOTAL.replace('sum()', '0')}\n#####"
ACCEPT = ToolCall("r", "review", {"verdict": "accept"})
NO_CALLS = IndexCounts(1, 1, 1, 0, 0, 0.0)


def improve(*comments: str) -> ToolCall:
    """The call with which a reviewer asks for a better answer."""
    return ToolCall("r", "review", {"verdict": "improve", "comments": [*comments]})


def numbered(*replies: Any) -> Callable[[Request], Any]:
    """A model whose reply depends on how many it has given in this conversation."""

    def script(request: Request) -> Any:
        given = sum(message.role == "assistant" for message in request.messages)
        return replies[given]

    return script


def read_evidence(applied: AppliedAnswer) -> Evidence:
    """What tools would say of an answer to the extraction, by its text."""
    if applied.problem is not None:
        return Evidence((ToolFinding("format", good=False, text=applied.problem.sentence),))
    text = applied.files[CART].decode()
    compiles, passes, found = "summ()" not in text, "sum -=" not in text, "int sum() {" in text
    return Evidence(
        (
            ToolFinding("build", compiles and passes, "It fails." if compiles else "No summ."),
            ToolFinding("RefactoringMiner", found, "It looks."),
        )
    )


def shop_index() -> SourceIndex:
    """A part of the index of the shop."""
    lines = FILES[CART].splitlines()

    def method(name: str, head: str, length: int) -> IndexedMethod:
        start = next(number for number, line in enumerate(lines, 1) if head in line)
        return IndexedMethod("shop.Cart", name, (), CART, start, start + length - 1)

    methods = (method("count", "int count()", 3), method("size", "int size()", 3))
    calls = (
        IndexedCall(0, "shop.Cart#count", CART, methods[0].start_line + 1, 1, "shop.Cart", "size", 0),
        IndexedCall(1, "shop.Cart#size", CART, methods[1].start_line + 1, -1, "java.util.List", "size", 0),
        IndexedCall(-1, "shop.Cart#prices", CART, 8, 1, "shop.Cart", "size", 0),
        IndexedCall(-1, "shop.Till#far", "src/main/java/shop/Till.java", 4, -1, None, "size", 0),
    )
    types = (
        IndexedType("shop.Cart", "class", CART, 7, len(lines)),
        IndexedType("shop.text.Labels.Inner", "class", "src/main/java/shop/text/Labels.java", 11, 12),
        IndexedType("shop.Inner", "class", CART, 1, 1),
    )
    return SourceIndex(types, methods, calls, (), NO_CALLS)


@dataclass
class PairRun:
    """A folder in which one pair works, in one session after another."""

    folder: Path
    developer: Callable[[Request], Any]
    reviewer: Callable[[Request], Any]
    strategy: Mapping[str, Any] = field(default_factory=dict)
    kind: str = EXTRACT
    gather: Callable[[AppliedAnswer], Evidence] = read_evidence
    requests: dict[str, list[Request]] = field(default_factory=lambda: {"dev": [], "rev": []})
    gathered: int = 0
    spent: BudgetSnapshot = field(default_factory=BudgetSnapshot)

    async def session(self, usd: str = "10", working_s: float | None = None) -> Outcome:
        """Let the pair work in one session; the evidence of tools is computed by ``gather``."""
        limits = BudgetLimits(working_s=working_s)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair, "gather_evidence", self._gather)
            async with open_session(
                self.folder / "run", BudgetLimits(usd=Decimal(usd)), retries={}
            ) as session:
                job = closure_job(session, "answer/pair", self._body, session.budget, "f", limits=limits)
                outcomes = await session.run([job])
                self.spent = session.budget.snapshot()
        return outcomes["answer/pair"]

    async def _gather(
        self,
        _instance: RefactoringInstance,
        applied: AppliedAnswer,
        _context: TrialContext,
        _job: JobContext,
    ) -> Evidence:
        self.gathered += 1
        return self.gather(applied)

    async def _body(self, job: JobContext) -> Json:
        config = StrategyConfig.model_validate({"kind": "multi-agent", "reviewer": "rev", **self.strategy})
        subject = instance(self.kind)
        trial = StrategyTrial(
            config, "dev", "dev", "Dev", scripted=True, instance=subject, digest="", attempt=1
        )
        return await (await pair.answer_by_pair(trial, self._context(), job)).store(job)

    def _context(self) -> TrialContext:
        files = tree()
        reader = SimpleNamespace(
            read=files.read, is_link=files.is_link, java_files=tuple(sorted(files.files))
        )
        source = SimpleNamespace(tree=reader)
        scripts = {"dev": self.developer, "rev": self.reviewer}
        models = {name: self._model(name, script) for name, script in scripts.items()}

        async def open_index(_source: object, _path: str) -> SourceIndex:
            return shop_index()

        parts = {
            "out": self.folder / "run",
            "models": SimpleNamespace(models=models),
            "prompts": Prompts(),
            "source": lambda _instance: source,
            "pair": SimpleNamespace(indexes=SimpleNamespace(open=open_index)),
        }
        return cast("TrialContext", SimpleNamespace(**parts))

    def _model(self, name: str, script: Callable[[Request], Any]) -> Any:
        def keep(request: Request) -> Any:
            self.requests[name].append(request)
            return script(request)

        return make_scripted_model(self.folder, keep, name)

    def billed_effects(self) -> list[str]:
        """The effects that were billed to both models: the calls without the numbers of their attempts."""
        ledgers = sorted(self.folder.glob("*.ledger.jsonl"))
        lines = [json.loads(line) for ledger in ledgers for line in ledger.read_text().splitlines()]
        return [line["call"].rpartition("#")[0] for line in lines]

    def transcript(self, name: str) -> list[Any]:
        """The lines of a transcript."""
        file = self.folder / "run" / "transcripts" / "answer" / f"pair.{name}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]


def slow_run(folder: Path) -> PairRun:
    """Three answers with a tool call before each, and two reviews, all of them after a while."""

    def slowly(script: Callable[[Request], Any]) -> Callable[[Request], Any]:
        return lambda request: ScriptedReply(script(request), latency_s=0.1)

    look = [ToolCall(f"c{number}", "class_body", {"name": "Cart"}) for number in range(3)]
    developer = numbered(look[0], MISSPELT, look[1], WRONG_SUM, look[2], RIGHT)

    def reviewer(request: Request) -> Any:
        return improve("Call sum.", "Keep the sum.") if "rejects it" in request.messages[0].text else ACCEPT

    return PairRun(folder, slowly(developer), slowly(reviewer), {"rounds": 4})


async def main(folder: Path) -> None:
    run = slow_run(folder)
    outcome = await run.session()
    if outcome.error:
        sys.exit(outcome.error)
    sys.stdout.write(f"{run.spent.settled.usd} {run.spent.unknown.usd} {json.dumps(outcome.value)}\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))

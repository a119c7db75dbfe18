"""A run that scores made-up commits with a scripted model; a test may kill it: ``scoring_run.py FOLDER``."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio

sys.path.append(str(Path(__file__).parents[2]))

from codetaste.errors import SourceError
from codetaste.flows.context import ModelSet
from codetaste.flows.mine.scoring.context import ScoringContext
from codetaste.flows.mine.scoring.jobs import add_scoring, scoring_handlers
from codetaste.llm.messages import Request
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.prompts import Prompts, load_prompt
from codetaste.llm.providers.scripted import ScriptedModel, ScriptedReply
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.mining.commit import CommitRecord
from codetaste.mining.prefilter.diff import ChangeStatus, CommitDiff, FileChange, make_commit_diff
from codetaste.mining.scoring.config import ScoringConfig
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetSnapshot
from codetaste.orchestration.job import Outcome
from codetaste.orchestration.session import open_session
from support.mining.scoring_replies import DIFF, MESSAGE, answer

PRICE = Price(input=Decimal(1), output=Decimal(5))
MINING_RUN = "2024"
BY_MESSAGE, BY_TOTAL = f"mine/{MINING_RUN}/select-by-message", f"mine/{MINING_RUN}/select-by-total"
Script = Callable[[Request], Any]


def make_records(count: int) -> list[CommitRecord]:
    return [
        CommitRecord(
            f"owner/repo{number}",
            f"{number:040x}",
            message=f"refactor: move module {number}",
            stars=100 + number,
        )
        for number in range(count)
    ]


def number_of(request: Request) -> int:
    """The number of the commit that a request is about."""
    found = re.search(r"module_? ?(\d+)", request.messages[0].text)
    assert found is not None, request.messages[0].text
    return int(found[1]) % 1000


def is_about_diff(request: Request) -> bool:
    return request.system == load_prompt("mine_diff").render()


def good_reply(request: Request, **changed: Any) -> str:
    """A usable answer: a higher number of the commit scores higher by its message, a lower by its diff."""
    number = number_of(request)
    if is_about_diff(request):
        likely = {"refactor_likelihood": f"{1 - number / 1000:.3f}", "category": "structural"}
        return answer(DIFF, f"Diff {number} moves code.", **{**likely, **changed})
    true = {"true_refactor_score": f"{number / 1000:.3f}"}
    return answer(MESSAGE, f"Message {number} moves code.", **{**true, **changed})


async def load_made_diff(record: CommitRecord) -> CommitDiff:
    number = int(record.golden, 16)
    path = f"src/module_{number}.go"
    diff = (
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,40 +1 @@\n"
        + "-old\n" * 40
        + "+new\n"
    )
    files = [
        FileChange(path, None, ChangeStatus.MODIFIED, 1, 40),
        FileChange("a.md", None, ChangeStatus.ADDED, 90, 0),
    ]
    return make_commit_diff(record, f"{number + 1:040x}", record.golden, files, diff.encode())


@dataclass
class ScoringRun:
    """A folder in which commits are scored, in one session after another."""

    folder: Path
    script: Script = good_reply
    records: Sequence[CommitRecord] = field(default_factory=lambda: make_records(8))
    config: dict[str, Any] = field(default_factory=lambda: {"top_by_message": 4, "top": 2})
    load_diff: Callable[[CommitRecord], Any] = load_made_diff
    requests: list[Request] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    spent: BudgetSnapshot = field(default_factory=BudgetSnapshot)

    async def session(self, usd: str | None = None) -> dict[str, Outcome]:
        """Score in one session; return how its jobs ended."""

        def script(request: Request) -> Any:
            self.requests.append(request)
            return self.script(request)

        model = ScriptedModel("m", script, price=PRICE, ledger=self.folder / "m.ledger.jsonl")
        metered = MeteredModel(model, PRICE, RateLimiter("m", maximum=8), retries={})
        models = ModelSet({"m": metered}, {}, {"m": "fingerprint"})
        section = ScoringConfig(model="m", **self.config)
        context = ScoringContext(self.folder, section, models, Prompts(), self.load_diff, "m (scripted)")
        limits = BudgetLimits(usd=None if usd is None else Decimal(usd))
        async with open_session(self.folder, limits, capacities={"jobs": 16}, retries={}) as session:
            session.add_handlers(scoring_handlers(context, session.add))
            add_scoring(session, MINING_RUN, self.records, context, ())
            self.outcomes = await session.run()
            self.spent = session.budget.snapshot()
        return self.outcomes

    def bill(self) -> list[dict[str, Any]]:
        """The ledger of the model."""
        return [json.loads(line) for line in (self.folder / "m.ledger.jsonl").read_text().splitlines()]

    def billed_effects(self) -> list[str]:
        """The effects that were billed: the calls without the numbers of their attempts."""
        return [line["call"].rpartition("#")[0] for line in self.bill()]

    def candidates(self) -> list[dict[str, str]]:
        """The table of candidates."""
        with (self.folder / "mining" / MINING_RUN / "candidates.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def scores(self) -> dict[str, dict[str, Any]]:
        """The scores of all commits, by repository."""
        text = (self.folder / "mining" / MINING_RUN / "candidate_scores.jsonl").read_text()
        return {line["repository"]: line for line in map(json.loads, text.splitlines())}


def lost_diff(*numbers: int) -> Callable[[CommitRecord], Any]:
    """Loads diffs except those of commits that are gone."""

    async def load(record: CommitRecord) -> CommitDiff:
        if int(record.golden, 16) in numbers:
            raise SourceError(f"{record.name} is gone")
        return await load_made_diff(record)

    return load


def slow_script(request: Request) -> ScriptedReply:
    """Replies after a while, to be killed meanwhile; every third first reply is unusable."""
    repeated = len(request.messages) > 1
    usable = repeated or number_of(request) % 3
    return ScriptedReply(good_reply(request) if usable else "I like it.", latency_s=0.03)


async def main(folder: Path) -> None:
    run = ScoringRun(folder, slow_script, make_records(12), {"top_by_message": 6, "top": 3})
    outcomes = await run.session(usd="5")
    if errors := [outcome.error for outcome in outcomes.values() if outcome.error]:
        sys.exit("\n".join(errors))
    sys.stdout.write(f"{run.spent.settled.usd} {run.spent.unknown.usd}\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))

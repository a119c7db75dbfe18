"""Descriptions of examples: one paid call each, stored beside the corpus, never bought twice."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from codetaste.core.jsonl import JsonlFile
from codetaste.llm.messages import Request
from codetaste.llm.prompts import Prompt, load_prompt
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import Outcome
from codetaste.orchestration.session import open_session
from codetaste.swe_refactor.examples.corpus import ExampleCorpus, read_corpus
from codetaste.swe_refactor.examples.describe import (
    PROMPT,
    ExampleDescriber,
    add_description_jobs,
    description_store,
)
from support.orchestration.closure_jobs import budget_path
from support.retrieval.jobs import make_scripted_model
from support.swe_refactor.example_records import make_record, write_corpus

pytestmark = pytest.mark.anyio


class Script:
    """Describes by number; counts its calls."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, request: Request) -> str:
        self.prompts.append(request.messages[0].text)
        return f"It adds\n  prices, number {len(self.prompts)}."


@pytest.fixture
def corpus(tmp_path: Path) -> ExampleCorpus:
    return read_corpus(write_corpus(tmp_path, [make_record(number) for number in range(3)]), ())


async def describe(
    folder: Path,
    corpus: ExampleCorpus,
    script: Callable[[Request], Any],
    *,
    run: str = "run",
    usd: str = "10",
    prompt: Prompt | None = None,
) -> tuple[dict[str, Outcome], ExampleDescriber]:
    model = make_scripted_model(folder, script, run)
    store = description_store(folder / "examples.jsonl")
    describer = ExampleDescriber(model, {"model": "m"}, prompt or load_prompt(PROMPT), store)
    async with open_session(folder / run, BudgetLimits(usd=Decimal(usd)), retries={}) as session:
        await add_description_jobs(session, describer, corpus.examples, budget_path(session.budget))
        return await session.run(), describer


async def test_each_example_is_described_once_from_its_code(tmp_path: Path, corpus: ExampleCorpus) -> None:
    script = Script()
    outcomes, describer = await describe(tmp_path, corpus, script)
    texts = await describer.stored(corpus.examples)
    assert {each.status for each in outcomes.values()} == {"done"}
    assert len(script.prompts) == 3
    assert sorted(texts.values()) == [f"It adds prices, number {n}." for n in (1, 2, 3)]
    first = next(each for each in script.prompts if "int total()" in each.split("```")[1])
    for part in ("orders.stream().mapToInt(order -> order.price())", "int count() {", "class Shop {"):
        assert part in first
    documents = corpus.documents(texts)
    assert all(each.text.startswith("It adds prices, number ") for each in documents)


async def test_another_run_asks_nothing_again(tmp_path: Path, corpus: ExampleCorpus) -> None:
    await describe(tmp_path, corpus, Script())
    script = Script()
    outcomes, describer = await describe(tmp_path, corpus, script, run="again")
    assert outcomes == {}
    assert script.prompts == []
    assert len(await describer.stored(corpus.examples)) == 3


async def test_another_prompt_asks_anew(tmp_path: Path, corpus: ExampleCorpus) -> None:
    await describe(tmp_path, corpus, Script())
    script = Script()
    prompt = Prompt("mine", "What is {{ method }}?", tmp_path)
    await describe(tmp_path, corpus, script, run="again", prompt=prompt)
    assert len(script.prompts) == 3


async def test_a_budget_that_ends_leaves_the_others_without_description(
    tmp_path: Path, corpus: ExampleCorpus
) -> None:
    script = Script()
    _, describer = await describe(tmp_path, corpus, script, run="nothing", usd="0")
    costs = [job.min_cost.usd for job in describer.jobs(corpus.examples, ()) if job.min_cost is not None]
    assert script.prompts == []
    outcomes, describer = await describe(tmp_path, corpus, script, usd=str(max(costs)))
    texts = await describer.stored(corpus.examples)
    statuses = [each.status.value for each in outcomes.values()]
    assert 0 < len(texts) < 3
    assert statuses.count("done") == len(texts)
    assert "budget_exceeded" in statuses
    assert len(corpus.documents(texts)) == 3
    _, describer = await describe(tmp_path, corpus, script)
    assert len(await describer.stored(corpus.examples)) == 3
    assert len(script.prompts) == 3


async def test_an_empty_reply_is_named_and_stored_nowhere(tmp_path: Path, corpus: ExampleCorpus) -> None:
    outcomes, describer = await describe(tmp_path, corpus, lambda _request: " ")
    assert {each.status.value for each in outcomes.values()} == {"failed"}
    assert all("no description" in each.error for each in outcomes.values())
    assert await describer.stored(corpus.examples) == {}


async def test_damaged_lines_of_the_store_are_described_again(tmp_path: Path, corpus: ExampleCorpus) -> None:
    await describe(tmp_path, corpus, Script())
    store = description_store(tmp_path / "examples.jsonl")
    lines = store.path.read_text().splitlines()
    store.path.write_text("\n".join(['{"key": 1}', "damaged", *lines[1:], lines[1][:30]]))
    script = Script()
    await describe(tmp_path, corpus, script, run="again")
    assert len(script.prompts) == 1
    assert isinstance(store, JsonlFile)

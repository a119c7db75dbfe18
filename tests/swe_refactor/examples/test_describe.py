"""Descriptions of methods: one paid call each, stored beside the corpus, never bought twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codetaste.java.jdt.model import (
    CallerRelation,
    JavaCaller,
    JavaMethod,
    MethodContext,
    MethodTarget,
    ProjectStructure,
    TargetOutcome,
)
from codetaste.llm.messages import Request
from codetaste.llm.prompts import Prompt, load_prompt
from codetaste.orchestration.job import JobContext, Outcome
from codetaste.orchestration.journal.journal import Json
from codetaste.swe_refactor.examples.corpus import read_corpus
from codetaste.swe_refactor.examples.describe import PROMPT, MethodDescriber, description_store
from codetaste.swe_refactor.examples.method import DescribedMethod, method_of_example, method_of_instance
from support.retrieval.jobs import make_scripted_model, run_job
from support.swe_refactor.example_records import make_record, write_corpus
from support.swe_refactor.example_run import make_instance

pytestmark = pytest.mark.anyio


class Script:
    """Describes by number; counts its calls."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, request: Request) -> str:
        self.prompts.append(request.messages[0].text)
        return f"It adds\n  prices, number {len(self.prompts)}."


@pytest.fixture
def method(tmp_path: Path) -> DescribedMethod:
    (example,) = read_corpus(write_corpus(tmp_path, [make_record()]), ()).examples
    return method_of_example(example)


async def describe(
    folder: Path,
    method: DescribedMethod,
    script: Callable[[Request], Any],
    *,
    prompt: Prompt | None = None,
) -> tuple[Outcome, MethodDescriber]:
    store = description_store(folder / "examples.jsonl")
    model = make_scripted_model(folder, script)
    describer = MethodDescriber(model, "fingerprint", prompt or load_prompt(PROMPT), store)

    async def body(job: JobContext) -> Json:
        return await describer.describe(method, job)

    outcome, _ = await run_job(folder, body)
    return outcome, describer


async def test_an_example_is_described_from_its_code(tmp_path: Path, method: DescribedMethod) -> None:
    script = Script()
    outcome, describer = await describe(tmp_path, method, script)
    assert outcome.value == "It adds prices, number 1."
    assert describer.stored() == {describer.key(method): "It adds prices, number 1."}
    assert "int total()" in script.prompts[0].split("```")[1]
    for part in ("orders.stream().mapToInt(order -> order.price())", "int count() {", "class Shop {"):
        assert part in script.prompts[0]


def test_an_instance_is_described_with_the_methods_that_it_knows() -> None:
    published = method_of_instance(make_instance("i", "void a() {}", invokedMethodSet=["one", "two", "one"]))
    assert published.related == "one\n\ntwo"
    assert published.class_code == "package p;\nclass A {\n}\n"
    caller = JavaMethod("p.A", "c", "void c()", None, (), "A.java", 1, 2, "void c() { a(); }")
    callers = (JavaCaller(CallerRelation.DIRECT, "A.java", (1,), "p.A#c", caller),)
    target = MethodTarget("A.java")
    around = ((),) * 5
    context = MethodContext(
        target, TargetOutcome.FOUND, None, None, None, None, *around, callers, (), (), (), None
    )
    structure = ProjectStructure((), {}, (), ())
    own = make_instance("i", "void a() {}").with_context(context, structure)
    assert method_of_instance(own).related == "void c() { a(); }"


async def test_another_prompt_or_model_is_another_question(tmp_path: Path, method: DescribedMethod) -> None:
    _, first = await describe(tmp_path, method, Script())
    prompt = Prompt("mine", "What is {{ method }}?", tmp_path)
    others = [
        MethodDescriber(first.model, first.fingerprint, prompt, first.store),
        MethodDescriber(first.model, "another", first.prompt, first.store),
    ]
    assert len({first.key(method), *(each.key(method) for each in others)}) == 3


@pytest.mark.parametrize("reply", [" ", "\n\t"])
async def test_an_empty_reply_is_a_shortfall_and_stored_nowhere(
    tmp_path: Path, method: DescribedMethod, reply: str
) -> None:
    outcome, describer = await describe(tmp_path, method, lambda _request: reply)
    assert (outcome.status, outcome.value) == ("done", "")
    assert outcome.shortfall is not None
    assert "no description" in outcome.shortfall.text
    assert describer.stored() == {}


async def test_damaged_lines_of_the_store_are_left_out(tmp_path: Path, method: DescribedMethod) -> None:
    _, describer = await describe(tmp_path, method, Script())
    path = describer.store.path
    line = path.read_text()
    path.write_text("\n".join(['{"key": 1}', '{"key": "k", "text": 5}', "damaged", line, line[:30]]))
    assert list(describer.stored()) == [describer.key(method)]

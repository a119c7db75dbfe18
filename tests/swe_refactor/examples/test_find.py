"""Examples for instances: the jobs before a search, the search, and its record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import ConfigError
from codetaste.flows.context import ModelSet
from codetaste.llm.messages import Request
from codetaste.orchestration.job import Outcome
from codetaste.retrieval.config import RetrievalConfig
from support.retrieval.tiny_encoder import make_encoder
from support.swe_refactor.example_records import make_record, write_corpus
from support.swe_refactor.example_run import find_examples, make_instance, open_finder

pytestmark = pytest.mark.anyio
METHODS = (
    "int countOpenInvoices() { return invoices.filter(Invoice::isOpen).size(); }",
    "void closeFile(File file) { file.flush(); file.close(); }",
    "String getUserName(User user) { return user.getName().trim(); }",
    "int orderTotal(List<Order> orders) { return orders.sum(Order::price); }",
    "void addItem(Cart cart, Item item) { cart.items().add(item); }",
)
INSTANCES = [
    make_instance("files", "void closeAll(List<File> files) { for (File file : files) { file.close(); } }"),
    make_instance("users", "String title(User user) { return user.getTitle() + user.getName(); }"),
]
LOCAL = {"embeddings": {"folder": "encoder"}, "rerank": {"by": "late-interaction"}}
NO_MODELS = ModelSet({}, {}, {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_corpus(tmp_path, [make_record(n, sourceCodeBeforeRefactoring=c) for n, c in enumerate(METHODS)])
    make_encoder(tmp_path / "encoder")
    return tmp_path


class Describer:
    """Describes each method by a number of its own; counts its calls."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, request: Request) -> str:
        self.prompts.append(request.messages[0].text)
        return f"Description {len(self.prompts)}."


class Endpoint:
    """Answers with vectors; counts its calls."""

    def __init__(self) -> None:
        self.texts: list[list[str]] = []

    def __call__(self, request: Request) -> str:
        texts = [block.text for block in request.messages[0].content if hasattr(block, "text")]
        self.texts.append(texts)
        return json.dumps([[len(text), text.count("file"), text.count("user")] for text in texts])


def value(outcomes: dict[str, Outcome], name: str, finder: str = "rag") -> dict[str, Any]:
    outcome = outcomes[f"search/{finder}/{name}"]
    assert outcome.status == "done", outcome.error
    assert isinstance(outcome.value, dict)
    return outcome.value


def befores(outcomes: dict[str, Outcome], name: str) -> list[str]:
    return [each[1] for each in value(outcomes, name)["shown"]]


@pytest.mark.parametrize("config", [{}, LOCAL], ids=["bm25", "local"])
async def test_each_instance_gets_the_examples_that_are_like_its_method(folder: Path, config: Any) -> None:
    outcomes, money = await find_examples(folder, INSTANCES, **config)
    assert money.spent.usd == 0
    assert befores(outcomes, "files")[0] == METHODS[1]
    assert befores(outcomes, "users")[0] == METHODS[2]
    shown = value(outcomes, "files")["shown"][0]
    assert shown[0] == "Extract Method"
    assert shown[2] == make_record(1)["sourceCodeAfterRefactoring"]
    assert shown[3] == "Extract Method priced extracted from total1"


async def test_the_record_has_ranks_scores_and_what_decides_the_search(folder: Path) -> None:
    outcomes, _ = await find_examples(folder, INSTANCES, **LOCAL)
    record = value(outcomes, "files")["record"]
    assert [each["fused_rank"] for each in record["examples"]] != []
    first = record["examples"][0]
    assert first["id"].startswith("owner/shop/aaaaaaaaaaaa/")
    assert first["rerank_score"] >= record["examples"][1]["rerank_score"]
    built = outcomes["examples/rag/index"].value
    assert isinstance(built, dict)
    assert record["retriever"]["index"] == built["index"]
    assert set(record["retriever"]["embedder"]["onnx"]) == {"model.onnx", "tokenizer.json", "max_tokens"}
    assert (record["retriever"]["top"], record["retriever"]["same_type"]) == (3, True)
    assert (record["searched"], record["described"]) == (5, False)


async def test_only_examples_of_the_same_type_are_found_unless_all_are_wanted(folder: Path) -> None:
    records = [make_record(n, sourceCodeBeforeRefactoring=c) for n, c in enumerate(METHODS)]
    records[1]["type"] = "Move Method"
    write_corpus(folder, records)
    moved = [make_instance("moved", "void x() { user.getName(); }", type="Move Method")]
    none = [make_instance("none", "void x() { user.getName(); }", type="Inline Method")]
    outcomes, _ = await find_examples(folder, [*INSTANCES, *moved, *none])
    assert METHODS[1] not in befores(outcomes, "files")
    assert value(outcomes, "moved")["record"]["searched"] == 1
    assert value(outcomes, "none")["record"]["searched"] == 0
    assert value(outcomes, "none")["shown"] == []
    outcomes, _ = await find_examples(folder, [*INSTANCES, *moved, *none], run="all", same_type=False)
    assert befores(outcomes, "files")[0] == METHODS[1]
    assert befores(outcomes, "none")[0] == METHODS[2]


async def test_examples_and_instances_are_described_once(folder: Path) -> None:
    describer = Describer()
    outcomes, money = await find_examples(folder, INSTANCES, {"m": describer}, describe="m")
    assert len(describer.prompts) == len(METHODS) + len(INSTANCES)
    assert any("void closeAll" in each.split("```")[1] for each in describer.prompts)
    assert value(outcomes, "files")["record"]["described"]
    assert money.spent.usd > 0
    assert len((folder / "examples.descriptions.jsonl").read_text().splitlines()) == len(describer.prompts)
    again, money = await find_examples(folder, INSTANCES, {"m": describer}, run="other", describe="m")
    assert len(describer.prompts) == len(METHODS) + len(INSTANCES)
    assert money.spent.usd == 0
    assert value(again, "files") == value(outcomes, "files")


async def test_a_continued_run_does_nothing_twice(folder: Path) -> None:
    describer = Describer()
    await find_examples(folder, INSTANCES, {"m": describer}, describe="m")
    (folder / "examples.descriptions.jsonl").unlink()
    again, _ = await find_examples(folder, INSTANCES, {"m": describer}, describe="m")
    assert len(describer.prompts) == len(METHODS) + len(INSTANCES)
    assert all(each.resumed for each in again.values())
    more = [*INSTANCES, make_instance("prices", "int price(Order order) { return order.price(); }")]
    later, _ = await find_examples(folder, more, {"m": describer}, describe="m")
    assert len(describer.prompts) == len(METHODS) + len(more)
    assert [name for name, each in later.items() if not each.resumed and "describe" not in name] == [
        "search/rag/prices"
    ]
    assert later["search/rag/prices"].status == "done"


async def test_a_description_that_the_model_does_not_write_leaves_the_code(folder: Path) -> None:
    outcomes, _ = await find_examples(folder, INSTANCES, {"m": lambda _request: " "}, describe="m")
    described = [each for name, each in outcomes.items() if "/describe/" in name]
    assert {each.status.value for each in described} == {"done"}
    assert all(each.shortfall and each.shortfall.name == "no_description" for each in described)
    assert befores(outcomes, "files")[0] == METHODS[1]
    assert not value(outcomes, "files")["record"]["described"]


async def test_without_money_for_descriptions_nothing_is_searched(folder: Path) -> None:
    describer = Describer()
    outcomes, _ = await find_examples(folder, INSTANCES, {"m": describer}, usd="0", describe="m")
    assert describer.prompts == []
    assert "done" not in {each.status.value for each in outcomes.values()}
    outcomes, _ = await find_examples(folder, INSTANCES, {"m": describer}, describe="m")
    assert {each.status.value for each in outcomes.values()} == {"done"}


async def test_two_strategies_share_descriptions_and_index(folder: Path) -> None:
    describer = Describer()
    outcomes, _ = await find_examples(
        folder, INSTANCES, {"m": describer}, names=("one", "two"), describe="m", top=2
    )
    assert len(describer.prompts) == len(METHODS) + len(INSTANCES)
    assert value(outcomes, "files", "one") == value(outcomes, "files", "two")


async def test_examples_with_one_method_share_its_description(folder: Path) -> None:
    twice = [make_record(0), make_record(0, description="Extract Method other", startLine=5)]
    twice[1]["sourceCodeAfterRefactoring"] += "void two() {}"
    twice[1]["leftSideLocations"] = twice[0]["leftSideLocations"] = []
    write_corpus(folder, twice)
    describer = Describer()
    outcomes, _ = await find_examples(folder, INSTANCES[:1], {"m": describer}, describe="m")
    assert len(describer.prompts) == 2
    assert value(outcomes, "files")["record"]["searched"] == 2


async def test_the_index_is_embedded_once_and_paid_by_its_own_job(folder: Path) -> None:
    endpoint, config = Endpoint(), {"embeddings": {"model": "e"}}
    many = [make_instance(f"i{n}", f"void close{n}(File file) {{ file.close(); }}") for n in range(64)]
    outcomes, money = await find_examples(folder, many, {"e": endpoint}, **config)
    assert {each.status.value for each in outcomes.values()} == {"done"}
    assert [len(texts) for texts in endpoint.texts] == [len(METHODS), *[1] * 64]
    assert outcomes["examples/rag/index"].cost.spent.usd > 0
    assert money.spent.usd > outcomes["examples/rag/index"].cost.spent.usd
    assert befores(outcomes, "i7")[0] == METHODS[1]
    await find_examples(folder, many, {"e": endpoint}, **config)
    assert len(endpoint.texts) == 65


async def test_sixty_four_searches_at_once_find_what_one_finds(folder: Path) -> None:
    many = [make_instance(f"i{n}", f"void close{n}(File file) {{ file.close(); }}") for n in range(64)]
    outcomes, _ = await find_examples(folder, many, **LOCAL)
    alone, _ = await find_examples(folder, many[7:8], run="alone", **LOCAL)
    assert value(outcomes, "i7") == value(alone, "i7")
    assert len(outcomes) == 65


async def test_what_overlaps_with_an_instance_is_never_found(folder: Path) -> None:
    twin = make_instance("twin", METHODS[1])
    outcomes, _ = await find_examples(folder, [twin, *INSTANCES])
    assert METHODS[1] not in befores(outcomes, "files")
    assert value(outcomes, "files")["record"]["searched"] == 4


@pytest.mark.parametrize(
    ("config", "instances", "problem"),
    [
        ({"describe": "none"}, INSTANCES, r"describe: there is no model 'none' in \[\[models\]\]"),
        ({"examples": "missing.jsonl"}, INSTANCES, "missing.jsonl: cannot be read"),
        (
            {},
            [make_instance(f"i{n}", code) for n, code in enumerate(METHODS)],
            "no example is left .0 examples; left out: 5 overlap",
        ),
        ({"embeddings": {"folder": "nowhere"}}, INSTANCES, "nowhere: no such folder"),
    ],
)
async def test_bad_input_is_one_line(
    folder: Path, config: dict[str, Any], instances: Sequence[Any], problem: str
) -> None:
    section = RetrievalConfig.model_validate({"examples": "examples.jsonl", **config})
    with pytest.raises(ConfigError, match=problem):
        async with open_finder(folder, section, instances, NO_MODELS):
            pass

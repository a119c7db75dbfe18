"""Search: both rankings, their fusion, and the rerankers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.llm.messages import Request
from codetaste.llm.prompts import load_prompt
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.retrieval.config import RetrievalConfig
from codetaste.retrieval.embedder import EndpointEmbedder, OnnxEmbedder
from codetaste.retrieval.index import Document, RetrievalIndex, open_index
from codetaste.retrieval.onnx_encoder import OnnxEncoder
from codetaste.retrieval.reranker import LateInteraction, ModelReranker, Query, read_order
from codetaste.retrieval.retriever import Retriever
from codetaste.retrieval.services import RetrievalServices
from support.retrieval.jobs import make_scripted_model, run_job
from support.retrieval.tiny_encoder import WORDS, make_encoder

pytestmark = pytest.mark.anyio
NAMES = [word for word in WORDS if word.isalpha() and len(word) > 2]
CONFIG = RetrievalConfig.model_validate({"examples": "x"})


def make_documents(count: int) -> list[Document]:
    chance = np.random.default_rng(3)
    return [Document(f"d{i}", " ".join(chance.choice(NAMES, size=12))) for i in range(count)]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedder:
    return OnnxEmbedder(OnnxEncoder.load(make_encoder(tmp_path_factory.mktemp("encoder"))), tokens=True)


def cosine_order(index: RetrievalIndex, query: Any) -> list[int]:
    assert index.embeddings is not None
    similar = [float(np.dot(each, query)) for each in index.embeddings.sentences]
    return sorted(range(len(similar)), key=lambda number: (-similar[number], number))


async def test_a_search_is_the_fusion_of_both_rankings(tmp_path: Path, embedder: OnnxEmbedder) -> None:
    index = await open_index(make_documents(40), tmp_path, embedder)
    text = "get user name of the order"
    found = await Retriever(index, CONFIG, embedder).search(text)
    lexical = index.lexical.scores(text)
    by_words = [n for n in sorted(range(40), key=lambda n: (-lexical[n], n)) if lexical[n] > 0]
    by_vectors = cosine_order(index, (await embedder.embed([text])).sentences[0])
    scores = {
        number: sum(
            1 / (61 + ranking.index(number)) for ranking in (by_words, by_vectors) if number in ranking
        )
        for number in range(40)
    }
    best = sorted(range(40), key=lambda number: (-scores[number], number))[:3]
    assert [each.id for each in found] == [f"d{number}" for number in best]
    assert [each.fused_rank for each in found] == [1, 2, 3]
    assert [each.embedding_rank for each in found] == [by_vectors.index(number) + 1 for number in best]
    assert [each.fused_score for each in found] == pytest.approx([scores[number] for number in best])


async def test_without_an_embedder_bm25_alone_decides(tmp_path: Path) -> None:
    index = await open_index(make_documents(40), tmp_path)
    found = await Retriever(index, CONFIG).search("invoice customer")
    assert [each.lexical_rank for each in found] == [1, 2, 3]
    assert {each.embedding_rank for each in found} == {None}
    assert await Retriever(index, CONFIG).search("nothing known") == ()


async def test_only_named_documents_are_found(tmp_path: Path, embedder: OnnxEmbedder) -> None:
    index = await open_index(make_documents(40), tmp_path, embedder)
    found = await Retriever(index, CONFIG, embedder).search("get user name", among={"d7", "d31"})
    assert {each.id for each in found} == {"d7", "d31"}


async def test_documents_of_equal_text_are_found_in_their_order(
    tmp_path: Path, embedder: OnnxEmbedder
) -> None:
    same = [Document(f"d{i}", "get user name") for i in range(12)]
    index = await open_index(same, tmp_path, embedder)
    for reranker in (None, LateInteraction()):
        found = await Retriever(index, CONFIG, embedder, reranker).search("user")
        assert [each.id for each in found] == ["d0", "d1", "d2"]


async def test_late_interaction_ranks_ten_candidates_by_the_best_cosines(
    tmp_path: Path, embedder: OnnxEmbedder
) -> None:
    index = await open_index(make_documents(40), tmp_path, embedder)
    text = "find the total price of an order"
    fused = await Retriever(index, CONFIG.model_copy(update={"top": 10}), embedder).search(text)
    found = await Retriever(index, CONFIG, embedder, LateInteraction()).search(text)
    (query,) = (await embedder.embed([text])).tokens or ()
    assert index.embeddings is not None
    scores = {}
    for each in fused:
        tokens = (index.embeddings.tokens or ())[int(each.id[1:])]
        scores[each.id] = sum(max(float(np.dot(q, t)) for t in tokens.astype(float)) for q in query)
    best = sorted((each.id for each in fused), key=lambda name: -scores[name])[:3]
    assert [each.id for each in found] == best
    assert [each.rerank_score for each in found] == pytest.approx([scores[name] for name in best], abs=0.02)


async def test_a_query_of_five_megabytes_is_one_line(tmp_path: Path) -> None:
    index = await open_index(make_documents(3), tmp_path)
    with pytest.raises(ConfigError, match=r"^a query of 5,000,000 characters; at most 1,000,000"):
        await Retriever(index, CONFIG).search("name " * 1_000_000)


async def test_the_record_names_all_that_decides(tmp_path: Path, embedder: OnnxEmbedder) -> None:
    index = await open_index(make_documents(3), tmp_path, embedder)
    identity = Retriever(index, CONFIG, embedder, LateInteraction()).identity
    assert identity["index"] == index.key
    assert identity["embedder"]["onnx"] == dict(embedder.encoder.identity)
    assert identity["reranker"] == {"by": "late-interaction"}
    assert (identity["rrf_k"], identity["candidates"], identity["top"]) == (60, 10, 3)


async def test_a_model_ranks_the_candidates(tmp_path: Path) -> None:
    seen: list[str] = []

    def script(request: Request) -> str:
        seen.append(request.messages[0].text)
        return "I compared 10 of them.\n\n3, 1"

    index = await open_index(make_documents(12), tmp_path)
    prompt = load_prompt("swe_refactor/rerank_examples")

    async def body(job: JobContext) -> Json:
        reranker = ModelReranker(make_scripted_model(tmp_path, script), {"model": "m"}, prompt, job)
        plain = await Retriever(index, CONFIG).search("user name order")
        ranked = await Retriever(index, CONFIG, None, reranker).search("user name order")
        return [[each.fused_rank for each in plain], [each.fused_rank for each in ranked]]

    outcome, spent = await run_job(tmp_path, body)
    assert outcome.value == [[1, 2, 3], [3, 1, 2]]
    assert spent.spent.usd > 0
    assert "## Example 1\n" in seen[0]
    assert "user name order" in seen[0]


async def test_an_answer_without_numbers_keeps_the_order(tmp_path: Path) -> None:
    index = await open_index(make_documents(12), tmp_path)
    prompt = load_prompt("swe_refactor/rerank_examples")

    async def body(job: JobContext) -> Json:
        model = make_scripted_model(tmp_path, lambda _request: "I cannot say.")
        ranked = await Retriever(index, CONFIG, None, ModelReranker(model, {}, prompt, job)).search(
            "the user name"
        )
        return [each.fused_rank for each in ranked]

    outcome, _ = await run_job(tmp_path, body)
    assert outcome.value == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("2, 1, 3", [1, 0, 2]),
        ("Order: 2 > 1 > 3.", [1, 0, 2]),
        ("1. first\n2. second\n\n3,2,2,9,0", [2, 1]),
        ("", []),
        ("none", []),
        ("x2 3y", []),
    ],
)
def test_the_last_line_with_numbers_is_the_order(text: str, order: list[int]) -> None:
    assert read_order(text, 3) == order


@given(st.text(alphabet="0123456789 ,.\nab"), st.integers(1, 12))
def test_any_reply_gives_places_of_candidates_at_most_once(text: str, count: int) -> None:
    order = read_order(text, count)
    assert len(order) == len(set(order))
    assert set(order) <= set(range(count))
    assert all(re.search(str(place + 1), text) for place in order)


async def test_a_scripted_model_can_make_embeddings(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        return repr([[float(len(block.text)), 1.0] for block in request.messages[0].content])  # type: ignore[union-attr]

    async def body(job: JobContext) -> Json:
        embedder = EndpointEmbedder(make_scripted_model(tmp_path, script), {"model": "m"}, job, 100_000)
        index = await open_index(make_documents(70), tmp_path, embedder)
        return [each.id for each in await Retriever(index, CONFIG, embedder).search("user name")]

    outcome, _ = await run_job(tmp_path, body)
    assert outcome.status is Status.DONE, outcome.error
    assert len(outcome.value or ()) == 3  # type: ignore[arg-type]


async def test_a_scripted_model_without_vectors_fails_in_one_line(tmp_path: Path) -> None:
    async def body(job: JobContext) -> Json:
        model = make_scripted_model(tmp_path, lambda _request: "no vectors")
        return (await EndpointEmbedder(model, {}, job).embed(["x"])).sentences.tolist()

    outcome, _ = await run_job(tmp_path, body)
    assert outcome.status is Status.FAILED
    assert "not a list of numbers" in outcome.error


async def test_without_rerank_and_embeddings_services_have_neither(tmp_path: Path) -> None:
    async def body(job: JobContext) -> Json:
        services = RetrievalServices(CONFIG, load_prompt("swe_refactor/rerank_examples"))
        return [services.embedder(job) is None, services.reranker(job) is None]

    outcome, _ = await run_job(tmp_path, body)
    assert outcome.value == [True, True]


async def test_late_interaction_scores_a_text_without_tokens_zero(
    tmp_path: Path, embedder: OnnxEmbedder
) -> None:
    index = await open_index(make_documents(3), tmp_path, embedder)
    query = Query("", await embedder.embed([""]))
    assert await LateInteraction().score(query, index, [0, 1]) == [0.0, 0.0]

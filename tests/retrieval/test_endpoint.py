"""Embeddings and scores of a provider's endpoints: paid, recorded, and never bought twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codetaste.core.concurrency import gather
from codetaste.errors import ConfigError
from codetaste.llm.build import build_metered_model
from codetaste.llm.config import ModelConfig
from codetaste.llm.prompts import load_prompt
from codetaste.orchestration.job import JobContext, Outcome, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.retrieval.config import RetrievalConfig
from codetaste.retrieval.index import Document, open_index
from codetaste.retrieval.reranker import Query
from codetaste.retrieval.services import RetrievalServices, open_services
from support.retrieval.endpoint_server import EndpointServer, embedding_of, serving_endpoints
from support.retrieval.jobs import run_job

pytestmark = pytest.mark.anyio
DOCUMENTS = [Document("a", "user name"), Document("b", "close file"), Document("c", "order total")]
KEY = "not-a-key-1234567890"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EndpointServer]:
    monkeypatch.setenv("MY_KEY", KEY)
    with serving_endpoints() as serving:
        yield serving


@asynccontextmanager
async def services(server: EndpointServer, folder: Path, **more: Any) -> Any:
    entry = ModelConfig.model_validate(
        {
            "id": "e",
            "provider": "openai-chat",
            "model": "embedder-1",
            "base_url": server.url,
            "api_key_env": "MY_KEY",
            "price": {"input": "2", "output": "0"},
            **more,
        }
    )
    config = RetrievalConfig.model_validate(
        {"examples": "x", "embeddings": {"model": "e"}, "rerank": {"by": "endpoint", "model": "e"}}
    )
    model = build_metered_model(entry, base_dir=folder, record_dir=folder)
    model.retries = {}
    try:
        async with open_services(
            config,
            base_dir=folder,
            prompt=load_prompt("swe_refactor/rerank_examples"),
            models={"e": model},
            model_configs={"e": entry},
        ) as opened:
            yield opened
    finally:
        await model.aclose()


async def embed(server: EndpointServer, folder: Path, **more: Any) -> tuple[Outcome, Any]:
    async with services(server, folder, **more) as opened:

        async def body(job: JobContext) -> Json:
            embedder = opened.embedder(job)
            return (await embedder.embed([each.text for each in DOCUMENTS])).sentences.tolist()

        return await run_job(folder, body)


async def test_vectors_are_in_the_order_of_the_texts_and_paid(server: EndpointServer, tmp_path: Path) -> None:
    outcome, spent = await embed(server, tmp_path)
    vectors: Any = outcome.value
    for vector, document in zip(vectors, DOCUMENTS, strict=True):
        wanted = np.asarray(embedding_of(document.text))
        assert vector == pytest.approx(wanted / np.linalg.norm(wanted), abs=1e-6)
    path, sent = server.bodies[0]
    assert path == "/v1/embeddings"
    assert sent["model"] == "embedder-1"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    # six words at 2 dollars a million
    assert str(spent.spent.usd.normalize()) == "0.000012"


async def test_a_call_is_in_the_journal_and_is_not_bought_again(
    server: EndpointServer, tmp_path: Path
) -> None:
    async def index(job: JobContext, opened: RetrievalServices, cache: Path) -> None:
        await open_index(DOCUMENTS, cache, opened.embedder(job))

    async with services(server, tmp_path) as opened:

        async def body(job: JobContext) -> Json:
            await index(job, opened, tmp_path / "one")
            await index(job, opened, tmp_path / "two")  # another cache: the reply comes from the journal
            return None

        outcome, _ = await run_job(tmp_path, body)
    assert outcome.status is Status.DONE
    assert len(server.bodies) == 1
    lines = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert [line["effect"].partition("/")[0] for line in lines if line["event"] == "reserved"] == ["embed"]


async def test_a_budget_that_is_too_small_sends_nothing(server: EndpointServer, tmp_path: Path) -> None:
    async with services(server, tmp_path) as opened:

        async def body(job: JobContext) -> Json:
            await opened.embedder(job).embed(["name " * 2000])
            return None

        outcome, _ = await run_job(tmp_path, body, usd="0.000001")
    assert outcome.status is Status.BUDGET_EXCEEDED
    assert server.bodies == []


async def test_options_of_the_model_are_sent(server: EndpointServer, tmp_path: Path) -> None:
    outcome, _ = await embed(server, tmp_path, options={"dimensions": 8})
    assert outcome.status is Status.DONE
    assert server.bodies[0][1]["dimensions"] == 8


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((401, {"error": {"message": f"wrong key {KEY}"}}), "HTTP 401: .*the API key is not accepted"),
        ((404, b"<html>"), "HTTP 404"),
        ((200, b"<html>"), "not JSON"),
        ((200, {"data": []}), "0 results for 3 texts"),
        ((200, {"data": [{"index": i, "embedding": [1.0]} for i in (0, 1, 1)]}), "3 results for 3 texts"),
        ((200, {"data": [{"index": i, "embedding": ["x"]} for i in range(3)]}), "not a list of numbers"),
        ((200, {"data": [{"index": i, "embedding": []} for i in range(3)]}), "vectors of the shape"),
        ((200, {"data": [{"index": i, "embedding": [1.0] * i} for i in range(3)]}), "not a list of numbers"),
        ((200, []), "not the reply of /embeddings"),
    ],
)
async def test_an_unusable_answer_is_one_line_without_the_key(
    server: EndpointServer, tmp_path: Path, answer: tuple[int, Any], problem: str
) -> None:
    server.answers = [answer]
    outcome, _ = await embed(server, tmp_path)
    assert outcome.status is Status.FAILED
    assert "embedder-1, /embeddings: " in outcome.error
    assert re.search(problem, outcome.error), outcome.error
    assert KEY not in outcome.error
    assert "\n" not in outcome.error


async def rerank(server: EndpointServer, folder: Path) -> tuple[Outcome, Any]:
    async with services(server, folder) as opened:

        async def body(job: JobContext) -> Json:
            index = await open_index(DOCUMENTS, folder)
            return await opened.reranker(job).score(Query("order name"), index, [0, 2])

        return await run_job(folder, body)


async def test_scores_are_in_the_order_of_the_candidates_and_paid(
    server: EndpointServer, tmp_path: Path
) -> None:
    outcome, spent = await rerank(server, tmp_path)
    assert outcome.value == [0.5, 0.5]
    path, sent = server.bodies[0]
    assert path == "/v1/rerank"
    assert sent["documents"] == ["user name", "order total"]
    assert str(spent.spent.usd.normalize()) == "0.000022"


def cohere(units: int) -> dict[str, Any]:
    results = [{"index": i, "relevance_score": 0.5 - i / 10} for i in range(2)]
    return {"results": results, "meta": {"billed_units": {"search_units": units}}}


async def test_a_search_is_charged_by_request(server: EndpointServer, tmp_path: Path) -> None:
    server.answers = [(200, cohere(1))]
    outcome, spent = await rerank(server, tmp_path)
    assert outcome.value == [pytest.approx(0.5), pytest.approx(0.4)]
    assert spent.spent.usd == 0


async def test_more_searches_than_were_reserved_end_the_call(server: EndpointServer, tmp_path: Path) -> None:
    server.answers = [(200, cohere(3))]
    outcome, spent = await rerank(server, tmp_path)
    assert "it billed 3 search units for one request" in outcome.error
    assert spent.unknown.usd > 0


async def test_jobs_share_one_index_and_search_it(server: EndpointServer, tmp_path: Path) -> None:
    async with services(server, tmp_path) as opened:

        async def body(job: JobContext) -> Json:
            one, two = await gather([partial(opened.index, DOCUMENTS, tmp_path, job)] * 2)
            found = await opened.retriever(one, job).search("order total")
            return [one is two, found[0].id]

        outcome, _ = await run_job(tmp_path, body)
    assert outcome.value == [True, "c"]
    assert [path for path, _ in server.bodies] == ["/v1/embeddings", "/v1/embeddings", "/v1/rerank"]


async def test_vectors_of_another_length_are_named(server: EndpointServer, tmp_path: Path) -> None:
    async with services(server, tmp_path) as opened:

        async def body(job: JobContext) -> Json:
            index = await opened.index(DOCUMENTS, tmp_path, job)
            data = [{"index": 0, "embedding": [1.0, 2.0]}]
            server.answers = [(200, {"data": data, "usage": {"prompt_tokens": 1}})]
            await opened.retriever(index, job).search("order total")
            return None

        outcome, _ = await run_job(tmp_path, body)
    assert outcome.error == "the vector of the query has 2 numbers, those of the index have 8"


async def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    config = RetrievalConfig.model_validate({"examples": "x", "embeddings": {"model": "none"}})
    with pytest.raises(ConfigError, match="there is no model 'none'"):
        async with open_services(
            config,
            base_dir=tmp_path,
            prompt=load_prompt("swe_refactor/rerank_examples"),
            models={},
            model_configs={},
        ):
            pass

"""Ranking the candidates of the fusion again: by token vectors, an endpoint, or a language model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from anyio import to_thread

from codetaste.errors import MalformedReply
from codetaste.llm.messages import Message, Request, TextBlock
from codetaste.orchestration.retry import mark_given_up
from codetaste.retrieval.config import DEFAULT_MAX_OUTPUT_TOKENS
from codetaste.retrieval.endpoint import read_scores
from codetaste.retrieval.extra import import_extra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.llm.prompts import Prompt
    from codetaste.orchestration.job import JobContext
    from codetaste.retrieval.embedder import Embeddings
    from codetaste.retrieval.index import RetrievalIndex

_MAX_CHARS = 6000
"""Of the query and of each candidate in a call that is paid."""
_PRODUCTS = Lock()


@dataclass(frozen=True, slots=True)
class Query:
    """What examples are searched for; ``embeddings`` of its text, if there is an embedder."""

    text: str
    embeddings: Embeddings | None = None


class Reranker(Protocol):
    """Scores candidates."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that decides the scores, as JSON, for records."""
        ...

    async def score(self, query: Query, index: RetrievalIndex, candidates: Sequence[int]) -> list[float]:
        """Return a score for each candidate, a document's number; the higher the better.

        Raises:
            ModelError: the provider has no usable reply.
            BudgetExceeded: the call does not fit into the budget.
        """
        ...


@dataclass(frozen=True, slots=True)
class LateInteraction:
    """Token vectors of query and candidate: the sum, over the query's tokens, of the best cosine (MaxSim).

    It stands in for ColBERT, by which the authors rank again, and needs no other model than the embedder's.
    """

    @property
    def identity(self) -> Mapping[str, Any]:
        """The method; the model is that of the index."""
        return {"by": "late-interaction"}

    async def score(self, query: Query, index: RetrievalIndex, candidates: Sequence[int]) -> list[float]:
        """Return a score for each candidate; see ``Reranker``.

        Raises:
            ValueError: query or index have no token vectors.
        """
        if query.embeddings is None or query.embeddings.tokens is None:
            raise ValueError("the query has no token vectors")
        if index.embeddings is None or index.embeddings.tokens is None:
            raise ValueError("the index has no token vectors")
        chosen = [index.embeddings.tokens[number] for number in candidates]
        return await to_thread.run_sync(_max_similarities, query.embeddings.tokens[0], chosen)


def _max_similarities(query: NDArray[np.float16], candidates: Sequence[NDArray[np.float16]]) -> list[float]:
    ours = query.astype(np.float32)
    scores = []
    # In one thread: on a busy machine the threads of a product wait for each other longer than it takes. The
    # lock keeps two searches from restoring each other's number of threads.
    with _PRODUCTS, _blas_threads().limit(limits=1):
        for tokens in candidates:
            similar = ours @ tokens.astype(np.float32).T
            scores.append(float(similar.max(axis=1).sum()) if similar.size else 0.0)
    return scores


@cache
def _blas_threads() -> Any:  # noqa: ANN401 - the library has no types
    return import_extra("threadpoolctl").ThreadpoolController()


@dataclass(frozen=True, slots=True)
class EndpointReranker:
    """A provider's ``/rerank``, each call paid from the budget of ``job`` and recorded in its journal."""

    model: MeteredModel
    model_identity: Mapping[str, Any] = field(repr=False)
    job: JobContext
    reply_tokens: int = 1

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name, address and options of the model."""
        return {"by": "endpoint", "model": dict(self.model_identity), "max_chars": _MAX_CHARS}

    async def score(self, query: Query, index: RetrievalIndex, candidates: Sequence[int]) -> list[float]:
        """Return a score for each candidate; see ``Reranker``."""
        texts = _cut_texts(query, index, candidates)
        request = Request(
            "", (Message("user", tuple(map(TextBlock, texts))),), max_output_tokens=self.reply_tokens
        )
        reply = await self.model.complete(request, ctx=self.job, name=_effect_name(texts))
        try:
            return read_scores(reply.message.text, len(candidates))
        except MalformedReply as error:
            # It is recorded: asking again gives the same reply.
            raise mark_given_up(MalformedReply(f"{self.model.id}: {error}")) from None


@dataclass(frozen=True, slots=True)
class ModelReranker:
    """A language model that names the candidates in order; ``prompt`` gets ``query`` and ``examples``."""

    model: MeteredModel
    model_identity: Mapping[str, Any] = field(repr=False)
    prompt: Prompt
    job: JobContext
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name, address and options of the model, and the digest of the prompt."""
        digest = sha256(self.prompt.text.encode()).hexdigest()
        return {"by": "model", "model": dict(self.model_identity), "prompt": digest, "max_chars": _MAX_CHARS}

    async def score(self, query: Query, index: RetrievalIndex, candidates: Sequence[int]) -> list[float]:
        """Return a score for each candidate; see ``Reranker``. What a reply does not name comes last."""
        texts = _cut_texts(query, index, candidates)
        text = self.prompt.render(query=texts[0], examples=texts[1:])
        request = Request(
            "", (Message("user", (TextBlock(text),)),), max_output_tokens=self.max_output_tokens
        )
        name = _effect_name([self.prompt.text, *texts])
        reply = await self.model.complete_whole(
            request, ctx=self.job, name=name, usable=lambda text: read_order(text, len(candidates))
        )
        order = read_order(reply.message.text, len(candidates))
        if not order:
            self.job.note(f"{self.model.id}: its reply names no example; the order of the fusion stays")
        ranks = {place: rank for rank, place in enumerate(order)}
        return [-float(ranks.get(place, len(order))) for place in range(len(candidates))]


def read_order(text: str, count: int) -> list[int]:
    """Return the places, from 0, that the last line with numbers names: "2, 1" gives [1, 0].

    Numbers beyond 1 to ``count``, and repeated ones, are left out.
    """
    lines = [found for line in text.splitlines() if (found := re.findall(r"(?<![\w.])\d{1,6}(?!\w)", line))]
    numbers = [int(number) - 1 for number in lines[-1]] if lines else []
    return list(dict.fromkeys(number for number in numbers if 0 <= number < count))


def _cut_texts(query: Query, index: RetrievalIndex, candidates: Sequence[int]) -> list[str]:
    texts = [query.text, *(index.documents[number].text for number in candidates)]
    return [text[:_MAX_CHARS] for text in texts]


def _effect_name(texts: Sequence[str]) -> str:
    digest = sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"rerank/{digest[:32]}"

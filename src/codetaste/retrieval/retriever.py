"""Search: both rankings, their fusion, and the candidates ranked again (SWE-Refactor, Appendix F)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from anyio import to_thread

from codetaste.core.text import replace_surrogates
from codetaste.errors import ConfigError, MalformedReply
from codetaste.orchestration.retry import mark_given_up
from codetaste.retrieval.fusion import fuse_rankings, rank_by_score
from codetaste.retrieval.index import MAX_CHARS
from codetaste.retrieval.reranker import Query

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from codetaste.retrieval.config import RetrievalConfig
    from codetaste.retrieval.embedder import Embedder
    from codetaste.retrieval.index import RetrievalIndex
    from codetaste.retrieval.reranker import Reranker


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """A document that was found, with what put it where it is; ranks count from 1.

    Attributes:
        id: of the document.
        lexical_rank: by BM25; None if it has no token of the query.
        embedding_rank: by sentence embeddings; None without an embedder.
        fused_rank: by the fusion of both.
        fused_score: the sum of reciprocal ranks.
        rerank_score: None without a reranker.
    """

    id: str
    lexical_rank: int | None
    embedding_rank: int | None
    fused_rank: int
    fused_score: float
    rerank_score: float | None


class _Candidate(NamedTuple):
    number: int
    lexical_rank: int | None
    embedding_rank: int | None
    fused_score: float


@dataclass(frozen=True, slots=True)
class Retriever:
    """Finds documents of ``index``, which was built with the same embedder."""

    index: RetrievalIndex
    config: RetrievalConfig
    embedder: Embedder | None = None
    reranker: Reranker | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that decides what is found, as JSON, for records."""
        return {
            "index": self.index.key,
            "embedder": None if self.embedder is None else dict(self.embedder.identity),
            "reranker": None if self.reranker is None else dict(self.reranker.identity),
            "rrf_k": self.config.rrf_k,
            "candidates": self.config.candidates,
            "top": self.config.top,
        }

    async def search(
        self, text: str, *, among: Collection[str] | None = None
    ) -> tuple[RetrievedDocument, ...]:
        """Return the documents that fit to ``text`` best, the best one first, at most ``config.top``.

        Args:
            text: the method that is to be refactored, perhaps with a description.
            among: ids of the documents that may be found; by default all.

        Raises:
            ConfigError: ``text`` is too long.
            ModelError: a provider has no usable reply.
            BudgetExceeded: a call does not fit into the budget.
        """
        if len(text) > MAX_CHARS:
            raise ConfigError(f"a query of {len(text):,} characters; at most {MAX_CHARS:,} are possible")
        text = replace_surrogates(text)
        query = Query(text, None if self.embedder is None else await self.embedder.embed([text]))
        found = await to_thread.run_sync(self._rank, query, among)
        scores: Sequence[float | None] = [None] * len(found)
        order = list(range(len(found)))
        if self.reranker is not None and found:
            scored = await self.reranker.score(query, self.index, [each.number for each in found])
            scores, order = scored, rank_by_score(np.asarray(scored))
        return tuple(
            RetrievedDocument(
                self.index.documents[found[place].number].id,
                found[place].lexical_rank,
                found[place].embedding_rank,
                place + 1,
                found[place].fused_score,
                scores[place],
            )
            for place in order[: self.config.top]
        )

    def _rank(self, query: Query, among: Collection[str] | None) -> list[_Candidate]:
        """Return the first documents of the fusion of both rankings."""
        rankings = self._rankings(query, among)
        fused = fuse_rankings([each for each in rankings if each], self.config.rrf_k)
        lexical, embedding = ({number: rank for rank, number in enumerate(each, 1)} for each in rankings)
        return [
            _Candidate(number, lexical.get(number), embedding.get(number), score)
            for number, score in fused[: self.config.candidates]
        ]

    def _rankings(self, query: Query, among: Collection[str] | None) -> tuple[list[int], list[int]]:
        """Return the documents by BM25, and by sentence embeddings; without these nothing for the second."""
        allowed = None if among is None else frozenset(among)
        documents, stored = self.index.documents, self.index.embeddings

        def keep(ranking: Sequence[int]) -> list[int]:
            return [number for number in ranking if allowed is None or documents[number].id in allowed]

        scores = self.index.lexical.scores(query.text)
        lexical = keep([number for number in rank_by_score(scores) if scores[number] > 0])
        if query.embeddings is None or stored is None:
            return lexical, []
        ours = query.embeddings.sentences[0]
        if (known := stored.sentences.shape[1]) != len(ours):
            problem = f"the vector of the query has {len(ours)} numbers, those of the index have {known}"
            raise mark_given_up(MalformedReply(problem))
        similar: NDArray[np.float32] = stored.sentences @ ours
        return lexical, keep(rank_by_score(similar))

"""Embedder and reranker of a config: what they share is loaded once, what is paid belongs to a job."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.errors import ConfigError
from codetaste.llm.metering.prompt_bound import PromptBound
from codetaste.retrieval.embedder import EndpointEmbedder, OnnxEmbedder, endpoint_identity
from codetaste.retrieval.endpoint import EndpointModel
from codetaste.retrieval.index import open_index
from codetaste.retrieval.onnx_encoder import OnnxEncoder
from codetaste.retrieval.reranker import EndpointReranker, LateInteraction, ModelReranker
from codetaste.retrieval.retriever import Retriever

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.llm.prompts import Prompt
    from codetaste.orchestration.job import JobContext
    from codetaste.retrieval.config import RetrievalConfig
    from codetaste.retrieval.embedder import Embedder
    from codetaste.retrieval.endpoint import EndpointKind
    from codetaste.retrieval.index import Document, RetrievalIndex
    from codetaste.retrieval.reranker import Reranker

_SCRIPTED_REPLY_TOKENS = 100_000
"""Of a scripted model, whose replies are texts of numbers."""


def model_identity(entry: ModelConfig) -> dict[str, Any]:
    """Return what decides the replies of a ``[[models]]`` entry, as JSON: name, address and options."""
    return {"model": entry.model, "address": entry.address, "options": entry.options}


@dataclass(frozen=True, slots=True)
class _PaidModel:
    model: MeteredModel
    identity: Mapping[str, Any]
    reply_tokens: int = 1
    """Of a reply at most: 1 of an endpoint, which bills none."""


@dataclass(frozen=True, slots=True)
class RetrievalServices:
    """What retrieval of a run uses: the loaded encoder, and the metered models of its endpoints."""

    config: RetrievalConfig
    prompt: Prompt
    encoder: OnnxEncoder | None = None
    embeddings: _PaidModel | None = None
    rerank: _PaidModel | None = None
    _indexes: dict[tuple[Document, ...], RetrievalIndex] = field(default_factory=dict)
    _opening: anyio.Lock = field(default_factory=anyio.Lock)

    async def index(self, documents: Sequence[Document], cache: Path, job: JobContext) -> RetrievalIndex:
        """Return the index of ``documents``, opened once for all jobs; ``job`` pays for what it needs.

        Raises:
            CodetasteError: see ``open_index``; the next job that asks for it tries again.
        """
        key = tuple(documents)
        async with self._opening:
            if key not in self._indexes:
                self._indexes[key] = await open_index(key, cache, self.embedder(job))
            return self._indexes[key]

    @property
    def embedder_identity(self) -> Mapping[str, Any] | None:
        """All that decides the vectors, as JSON; None without embeddings."""
        if self.encoder is not None:
            return OnnxEmbedder(self.encoder, self._late).identity
        return None if self.embeddings is None else endpoint_identity(self.embeddings.identity)

    @property
    def _late(self) -> bool:
        rerank = self.config.rerank
        return rerank is not None and rerank.by == "late-interaction"

    def embedder(self, job: JobContext) -> Embedder | None:
        """Return the embedder for the calls of ``job``; None without embeddings."""
        if self.encoder is not None:
            return OnnxEmbedder(self.encoder, self._late)
        if (paid := self.embeddings) is not None:
            return EndpointEmbedder(paid.model, paid.identity, job, paid.reply_tokens)
        return None

    def reranker(self, job: JobContext) -> Reranker | None:
        """Return the reranker for the calls of ``job``; None if the order of the fusion stays."""
        if self.config.rerank is None:
            return None
        if (paid := self.rerank) is None:
            return LateInteraction()
        if self.config.rerank.by == "endpoint":
            return EndpointReranker(paid.model, paid.identity, job, paid.reply_tokens)
        return ModelReranker(
            paid.model, paid.identity, self.prompt, job, self.config.rerank.max_output_tokens
        )

    def retriever(self, index: RetrievalIndex, job: JobContext) -> Retriever:
        """Return the retriever for the calls of ``job``."""
        return Retriever(index, self.config, self.embedder(job), self.reranker(job))


@asynccontextmanager
async def open_services(
    config: RetrievalConfig,
    *,
    base_dir: Path,
    prompt: Prompt,
    models: Mapping[str, MeteredModel],
    model_configs: Mapping[str, ModelConfig],
) -> AsyncIterator[RetrievalServices]:
    """Open what the config names, and close it at the end.

    Args:
        config: the section.
        base_dir: paths in the config are relative to it.
        prompt: for a reranker that is a language model; it gets ``query`` and ``examples``.
        models: the open models of the run, by id.
        model_configs: their entries.

    Raises:
        ConfigError: a model is unknown, its key is not set, or the folder has no sentence encoder.
        ToolMissing: the extra ``retrieval`` is not installed.
    """
    async with AsyncExitStack() as stack:

        def paid(key: str, model_id: str, kind: EndpointKind | None) -> _PaidModel:
            if model_id not in models:
                raise ConfigError(f"{key}: there is no model {model_id!r} in [[models]]")
            model, entry = models[model_id], model_configs[model_id]
            identity = model_identity(entry)
            if kind is not None and entry.protocol is not None:
                # Scripted and replayed models give the replies themselves.
                endpoint = EndpointModel(entry.protocol, entry, kind)
                stack.push_async_callback(endpoint.aclose)
                model = model.with_backend(endpoint, PromptBound(entry.prompt_overhead_tokens))
                return _PaidModel(model, identity)
            return _PaidModel(model, identity, _SCRIPTED_REPLY_TOKENS)

        encoder = embeddings = rerank = None
        if config.embeddings is not None and config.embeddings.folder is not None:
            folder = base_dir / config.embeddings.folder.expanduser()
            encoder = await to_thread.run_sync(OnnxEncoder.load, folder)
        elif config.embeddings is not None and config.embeddings.model is not None:
            embeddings = paid("embeddings.model", config.embeddings.model, "embeddings")
        if config.rerank is not None and config.rerank.model is not None:
            kind: EndpointKind | None = "rerank" if config.rerank.by == "endpoint" else None
            rerank = paid("rerank.model", config.rerank.model, kind)
        yield RetrievalServices(config, prompt, encoder, embeddings, rerank)

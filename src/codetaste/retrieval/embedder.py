"""Sentence embeddings of texts: by a local ONNX model, or by a provider's endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from anyio import to_thread

from codetaste.errors import MalformedReply
from codetaste.llm.messages import Message, Request, TextBlock
from codetaste.orchestration.retry import mark_given_up
from codetaste.retrieval.endpoint import read_vectors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.orchestration.job import JobContext
    from codetaste.retrieval.onnx_encoder import OnnxEncoder

_MAX_CHARS = 8000
"""Of a text that is sent: 8,191 tokens are the limit of OpenAI's models, and a character is one at most
in code."""
_TEXTS_PER_CALL = 64


class Embeddings(NamedTuple):
    """Vectors of length 1 of some texts.

    ``sentences`` has a row for each text; ``tokens`` has a matrix for each text, None without token vectors.
    """

    sentences: NDArray[np.float32]
    tokens: tuple[NDArray[np.float16], ...] | None = None


class Embedder(Protocol):
    """Makes embeddings."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that decides the vectors, as JSON: part of the key of an index and of records."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the embeddings of ``texts``.

        Raises:
            ConfigError: the local model fails.
            ModelError: the provider has no usable reply.
            BudgetExceeded: the call does not fit into the budget.
        """
        ...


@dataclass(frozen=True, slots=True)
class OnnxEmbedder:
    """Embeddings by a local model, with token vectors if ``tokens`` is set."""

    encoder: OnnxEncoder
    tokens: bool = False

    @property
    def identity(self) -> Mapping[str, Any]:
        """The digests of the model's files."""
        return {"onnx": dict(self.encoder.identity), "tokens": self.tokens}

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the embeddings of ``texts``; see ``Embedder``."""
        return await to_thread.run_sync(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> Embeddings:
        sentences: list[NDArray[np.float32]] = []
        tokens: list[NDArray[np.float16]] = []
        for encoding in self.encoder.encode(texts):
            sentences.append(encoding.sentence)
            if self.tokens:
                tokens.append(encoding.tokens.astype(np.float16))
        return Embeddings(np.stack(sentences), tuple(tokens) if self.tokens else None)


@dataclass(frozen=True, slots=True)
class EndpointEmbedder:
    """Embeddings by a provider, each call paid from the budget of ``job`` and recorded in its journal.

    Attributes:
        model: the metered model whose replies are JSON lists of vectors (``retrieval/endpoint.py``).
        model_identity: what decides its vectors: name, address and options.
        job: of the caller.
        reply_tokens: of a reply at most; an endpoint's have none.
    """

    model: MeteredModel
    model_identity: Mapping[str, Any] = field(repr=False)
    job: JobContext
    reply_tokens: int = 1

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name, address and options of the model."""
        return endpoint_identity(self.model_identity)

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the embeddings of ``texts``; see ``Embedder``."""
        parts = [await self._ask(batch) for batch in _batches([text[:_MAX_CHARS] for text in texts])]
        if len({part.shape[1] for part in parts}) != 1:
            reason = f"{self.model.id}: vectors of different lengths for one list of texts"
            raise mark_given_up(MalformedReply(reason))
        return Embeddings(np.concatenate(parts))

    async def _ask(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        request = Request(
            "", (Message("user", tuple(map(TextBlock, texts))),), max_output_tokens=self.reply_tokens
        )
        digest = sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
        reply = await self.model.complete(request, ctx=self.job, name=f"embed/{digest[:32]}")
        try:
            return read_vectors(reply.message.text, len(texts))
        except MalformedReply as error:
            # It is recorded: asking again gives the same reply.
            raise mark_given_up(MalformedReply(f"{self.model.id}: {error}")) from None


def endpoint_identity(model_identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that decides the vectors of an ``EndpointEmbedder``."""
    return {"endpoint": dict(model_identity), "max_chars": _MAX_CHARS}


def _batches(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(texts), _TEXTS_PER_CALL):
        yield tuple(texts[start : start + _TEXTS_PER_CALL])

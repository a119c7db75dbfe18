"""Config of retrieval, such as ``[swe_refactor.retrieval]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from codetaste.core.section import FilePath, Section

if TYPE_CHECKING:
    from typing import Self


DEFAULT_MAX_OUTPUT_TOKENS = 8192


class EmbeddingsConfig(Section):
    """Sentence embeddings: of a local model or of a provider, exactly one of both."""

    folder: FilePath | None = None
    """Folder with `model.onnx` and `tokenizer.json` of a sentence encoder such as all-MiniLM-L6-v2."""
    model: str | None = None
    """Id of a `[[models]]` entry whose provider has an OpenAI-compatible `/embeddings`."""

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.folder is None) == (self.model is None):
            raise ValueError("write either folder (a local model) or model (the id of a [[models]] entry)")
        return self


class RerankConfig(Section):
    """How the candidates of the fusion are ranked again."""

    by: Literal["late-interaction", "endpoint", "model"]
    """"late-interaction" compares token vectors of the local embedding model; "endpoint" asks a provider's
    `/rerank` (Cohere, Jina); "model" asks a language model for an order."""
    model: str | None = None
    """For "endpoint" and "model": the id of a `[[models]]` entry."""
    max_output_tokens: int = Field(default=DEFAULT_MAX_OUTPUT_TOKENS, ge=256)
    """For "model": the cap of its reply, thinking included."""

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if (self.by == "late-interaction") != (self.model is None):
            needed = "no model: it uses that of embeddings.folder" if self.model else "model"
            raise ValueError(f'rerank by "{self.by}" needs {needed}')
        return self


class RetrievalConfig(Section):
    """Examples for prompts: where they come from, and how they are found."""

    examples: FilePath
    """The corpus: a JSON-lines file with a refactoring on each line."""
    describe: str | None = None
    """Id of the `[[models]]` entry that describes each example and each instance once; without it, code alone
    is compared."""
    describe_max_output_tokens: int = Field(default=DEFAULT_MAX_OUTPUT_TOKENS, ge=256)
    """The cap of a reply of that model, thinking included."""
    embeddings: EmbeddingsConfig | None = None
    """Without it, BM25 alone finds examples."""
    rerank: RerankConfig | None = None
    """Without it, the order of the fusion stays."""
    same_type: bool = True
    """Whether an instance gets only examples of its own type of refactoring, as the published code does."""
    rrf_k: int = Field(default=60, ge=1, le=10_000)
    """The constant of reciprocal rank fusion."""
    candidates: int = Field(default=10, ge=1, le=1000)
    """How many examples of the fusion are ranked again."""
    top: int = Field(default=3, ge=1, le=1000)
    """How many examples a prompt gets."""

    def models(self) -> list[tuple[str, str]]:
        """Return the ids of the ``[[models]]`` that it uses, each with its key."""
        named = {
            "describe": self.describe,
            "embeddings.model": None if self.embeddings is None else self.embeddings.model,
            "rerank.model": None if self.rerank is None else self.rerank.model,
        }
        return [(key, name) for key, name in named.items() if name is not None]

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.top > self.candidates:
            raise ValueError(f"top ({self.top}) must not exceed candidates ({self.candidates})")
        late = self.rerank is not None and self.rerank.by == "late-interaction"
        if late and (self.embeddings is None or self.embeddings.folder is None):
            raise ValueError('rerank by "late-interaction" needs embeddings.folder')
        return self

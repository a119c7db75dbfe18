"""The index of documents: BM25, and vectors if there is an embedder; built once and stored in the cache.

Its key is a digest of the documents, of the way they are made into tokens and of the embedder, so that an
index of other documents or of another model is another one. A folder of the cache holds each index, with the
digests of its files: one that is damaged is built again. It is written beside its place and renamed, under a
lock, so that several processes build it once and read none that is not complete.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from anyio import to_thread

from codetaste.core.files import locked, read_regular_file, remove_tree, storage_error, write_atomically
from codetaste.core.hashing import canonical_json, file_sha256, json_digest
from codetaste.core.text import one_line, replace_surrogates
from codetaste.errors import ConfigError, SourceError
from codetaste.retrieval.code_tokens import TOKENISER, code_tokens
from codetaste.retrieval.embedder import Embeddings
from codetaste.retrieval.lexical import K1, METHOD, B, LexicalIndex, package_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from codetaste.retrieval.embedder import Embedder

FOLDER = "retrieval"
"""The folder of the cache with the indexes."""
MAX_CHARS = 1_000_000
"""Of a document or a query: a method has fewer."""
_FORMAT = 1
"""Increment it when an index is stored in another way."""
_LEXICAL, _SENTENCES, _TOKENS, _LENGTHS, _CONTENT = (
    "bm25",
    "sentences.npy",
    "tokens.npy",
    "lengths.npy",
    "content.json",
)


@dataclass(frozen=True, slots=True)
class Document:
    """What can be found: ``text`` decides when, ``id`` is unique."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class RetrievalIndex:
    """Documents with their BM25 index, and their embeddings if there are any; ``key`` names it in records."""

    key: str
    documents: tuple[Document, ...]
    lexical: LexicalIndex
    embeddings: Embeddings | None


async def open_index(
    documents: Sequence[Document], cache: Path, embedder: Embedder | None = None
) -> RetrievalIndex:
    """Return the index of ``documents`` from the cache folder ``cache``; build it if it is not there.

    Raises:
        ConfigError: there are no documents, or some have no text, too much text, or the same id.
        ToolMissing: the extra ``retrieval`` is not installed.
        SourceError: the cache cannot be written.
        ModelError: the embedder's provider gave no usable reply.
        BudgetExceeded: the embeddings do not fit into the budget.
    """
    checked = await to_thread.run_sync(check_documents, documents)
    key = await to_thread.run_sync(_key, checked, embedder)
    place = cache / FOLDER / key[:2] / key
    if found := await to_thread.run_sync(_load, place, key, checked):
        return found
    async with locked(place.with_name(f"{key}.lock")):
        if found := await to_thread.run_sync(_load, place, key, checked):
            return found  # another process has built it meanwhile
        embeddings = None if embedder is None else await embedder.embed([each.text for each in checked])
        await to_thread.run_sync(_build, place, key, checked, embeddings)
        if found := await to_thread.run_sync(_load, place, key, checked):
            return found
    raise SourceError(f"{place}: the index cannot be read again after it was written; check that disk")


def check_documents(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents with text that has a UTF-8 form.

    Raises:
        ConfigError: there are none, or some have no text, too much text, or the same id.
    """
    if not documents:
        raise ConfigError("the corpus has no examples")
    problems, seen = [], set[str]()
    for each in documents:
        name = one_line(each.id)
        if each.id in seen:
            problems.append(f"example {name}: its id occurs twice in the corpus")
        if len(each.text) > MAX_CHARS:
            problems.append(f"example {name}: {len(each.text):,} characters, at most {MAX_CHARS:,}")
        elif not code_tokens(each.text):
            problems.append(f"example {name}: it has no word")
        seen.add(each.id)
    if problems:
        raise ConfigError(*problems)
    return tuple(Document(each.id, replace_surrogates(each.text)) for each in documents)


def index_settings(embedder_identity: Mapping[str, Any] | None) -> list[Any]:
    """Return all that decides an index beside its documents, as JSON.

    Raises:
        ToolMissing: the extra ``retrieval`` is not installed.
    """
    identity = None if embedder_identity is None else dict(embedder_identity)
    return [_FORMAT, TOKENISER, METHOD, K1, B, package_version(), identity]


def _key(documents: tuple[Document, ...], embedder: Embedder | None) -> str:
    corpus = json_digest([[each.id, each.text] for each in documents])
    return json_digest([corpus, *index_settings(None if embedder is None else embedder.identity)])


def _build(place: Path, key: str, documents: tuple[Document, ...], embeddings: Embeddings | None) -> None:
    """Write the index; the caller has the lock.

    Raises:
        SourceError: it cannot be written.
    """
    building = place.with_name(f".{key}.building")
    try:
        remove_tree(building)  # of a process that was killed
        building.mkdir(parents=True)
        LexicalIndex.build([each.text for each in documents]).save(building / _LEXICAL)
        if embeddings is not None:
            np.save(building / _SENTENCES, embeddings.sentences, allow_pickle=False)
        if embeddings is not None and embeddings.tokens is not None:
            np.save(building / _TOKENS, np.concatenate(embeddings.tokens), allow_pickle=False)
            np.save(building / _LENGTHS, [len(each) for each in embeddings.tokens], allow_pickle=False)
        files = {name: file_sha256(building / name) for name in _files(building)}
        write_atomically(building / _CONTENT, canonical_json({"key": key, "files": files}))
        remove_tree(place)
        building.rename(place)
    except OSError as error:
        raise storage_error(error, f"{place}: the index cannot be written", SourceError) from error
    finally:
        remove_tree(building)


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _load(place: Path, key: str, documents: tuple[Document, ...]) -> RetrievalIndex | None:
    """Return the stored index; None if there is none, or it is damaged."""
    try:
        content: Any = json.loads(read_regular_file(place / _CONTENT))
        files = content["files"]
        if content["key"] != key or any(file_sha256(place / name) != files[name] for name in files):
            return None
        embeddings = None
        if _SENTENCES in files:
            tokens = _load_tokens(place) if _TOKENS in files else None
            embeddings = Embeddings(np.load(place / _SENTENCES, allow_pickle=False), tokens)
        return RetrievalIndex(key, documents, LexicalIndex.load(place / _LEXICAL), embeddings)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _load_tokens(place: Path) -> tuple[NDArray[np.float16], ...]:
    """Return the token vectors of each document; they stay on disk until they are used."""
    flat = np.load(place / _TOKENS, mmap_mode="r", allow_pickle=False)
    ends = np.cumsum(np.load(place / _LENGTHS, allow_pickle=False))
    return tuple(np.split(flat, ends[:-1]))

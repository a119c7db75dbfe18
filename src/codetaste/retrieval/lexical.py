"""BM25 over the tokens of code, by the library ``bm25s``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from codetaste.retrieval.code_tokens import code_tokens
from codetaste.retrieval.extra import import_extra

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

METHOD, K1, B = "lucene", 1.5, 0.75
"""The variant of BM25, whose inverse document frequency is never negative, and its usual constants."""


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """The BM25 index of documents."""

    _bm25: Any

    @classmethod
    def build(cls, texts: Sequence[str]) -> LexicalIndex:
        """Return the index of ``texts``, each of which has a token. Blocking.

        Raises:
            ToolMissing: ``bm25s`` is not installed.
        """
        bm25 = import_extra("bm25s").BM25(method=METHOD, k1=K1, b=B)
        bm25.index([code_tokens(text) for text in texts], show_progress=False)
        return cls(bm25)

    @classmethod
    def load(cls, folder: Path) -> LexicalIndex:
        """Return the index that ``save`` has written. Blocking."""
        return cls(import_extra("bm25s").BM25.load(str(folder)))

    def save(self, folder: Path) -> None:
        """Write the index into a folder. Blocking."""
        self._bm25.save(str(folder), show_progress=False)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of each document; 0 for one without a token of the query.

        A token that the query has twice counts twice.
        """
        vocabulary = self._bm25.vocab_dict
        known = [vocabulary[token] for token in code_tokens(query) if token in vocabulary]
        if not known:
            return np.zeros(self._bm25.scores["num_docs"], np.float32)
        return np.asarray(self._bm25.get_scores_from_ids(known), np.float32)


def package_version() -> str:
    """Return the release of ``bm25s``; part of the key of an index."""
    return str(import_extra("bm25s").__version__)

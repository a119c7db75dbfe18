"""A sentence encoder in ONNX, in a folder that the user names: ``model.onnx`` and ``tokenizer.json``.

As all-MiniLM-L6-v2 is meant to be used: at most 256 tokens of a text, token vectors averaged over the
attention mask, and the average scaled to length 1. Nothing is fetched, and no torch is needed.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codetaste.core.files import read_regular_file
from codetaste.core.text import one_line, replace_surrogates
from codetaste.errors import ConfigError
from codetaste.retrieval.extra import import_extra

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

MODEL_FILE, TOKENIZER_FILE = "model.onnx", "tokenizer.json"
MAX_TOKENS = 256
_MAX_CHARS = 64 * MAX_TOKENS
"""A longer text is cut before it is tokenised: 256 tokens of code are about 1,000 characters."""
_MAX_MODEL_BYTES, _MAX_TOKENIZER_BYTES = 4 * 1024**3, 256 * 1024**2
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_OUTPUTS = ("last_hidden_state", "token_embeddings")
_RANK = 3
_FATAL = 4
"""The library's level of messages: none but fatal ones, for errors are raised, too."""


class Encoding(NamedTuple):
    """A text as vectors of length 1: ``sentence`` (d), and ``tokens`` (t, d) without special tokens."""

    sentence: NDArray[np.float32]
    tokens: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class OnnxEncoder:
    """A loaded model; ``identity`` has the SHA-256 of both files."""

    identity: Mapping[str, Any]
    _session: Any
    _tokenizer: Any
    _output: str
    _folder: Path

    @classmethod
    def load(cls, folder: Path) -> OnnxEncoder:
        """Load the model of ``folder`` and try it once. Blocking.

        Raises:
            ConfigError: there is no such folder or file, or the two files are no sentence encoder.
            ToolMissing: the extra ``retrieval`` is not installed.
        """
        runtime, tokenizers = import_extra("onnxruntime"), import_extra("tokenizers")
        if not folder.is_dir():
            raise ConfigError(
                f"{folder}: no such folder; embeddings.folder must hold {MODEL_FILE} and {TOKENIZER_FILE}"
            )
        model = _read(folder / MODEL_FILE, _MAX_MODEL_BYTES)
        vocabulary = _read(folder / TOKENIZER_FILE, _MAX_TOKENIZER_BYTES)
        tokenizer = _open_tokenizer(tokenizers, vocabulary, folder / TOKENIZER_FILE)
        session = _open_session(runtime, model, folder / MODEL_FILE)
        digests = {
            MODEL_FILE: sha256(model).hexdigest(),
            TOKENIZER_FILE: sha256(vocabulary).hexdigest(),
        }
        names = [each.name for each in session.get_outputs()]
        output = next((name for name in _OUTPUTS if name in names), names[0])
        encoder = cls({**digests, "max_tokens": MAX_TOKENS}, session, tokenizer, output, folder)
        encoder._try()
        return encoder

    def encode(self, texts: Sequence[str]) -> Iterator[Encoding]:
        """Return an iterator over the vectors of each text. Blocking.

        Raises:
            ConfigError: the model fails, or its numbers are not finite.
        """
        # Each text by itself: batches cost more, even of equal lengths, and the vectors of a text do not
        # depend on others. As many at once as there are cores, for the threads that work on one text wait for
        # each other: see docs/performance.md.
        pool = ThreadPoolExecutor(_cores())
        try:
            yield from pool.map(self._encode, texts)
        finally:
            pool.shutdown(cancel_futures=True)

    def _encode(self, text: str) -> Encoding:
        # Not as a batch: that would start threads, of which the library warns whenever a process is started.
        encoded = self._tokenizer.encode(replace_surrogates(text[:_MAX_CHARS]))
        ids = np.asarray([encoded.ids or [0]], np.int64)
        hidden = self._run(ids, np.ones_like(ids))[0]
        if not np.isfinite(hidden).all():
            raise ConfigError(f"{self._folder / MODEL_FILE}: its output has numbers that are not finite")
        plain = [place for place, special in enumerate(encoded.special_tokens_mask) if not special]
        return Encoding(_unit(hidden.mean(axis=0)), _unit(hidden[plain]))

    def _run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        values = dict(zip(_INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))
        wanted = {each.name: values[each.name] for each in self._session.get_inputs()}
        try:
            (hidden,) = self._session.run([self._output], wanted)
        except Exception as error:  # noqa: BLE001 - the library has no common class of errors
            raise ConfigError(f"{self._folder / MODEL_FILE}: cannot be run: {one_line(error)}") from None
        return np.asarray(hidden, np.float32)

    def _try(self) -> None:
        """Run a text of the greatest length that has the highest token of the tokenizer."""
        tokens = self._tokenizer.get_vocab(with_added_tokens=True)
        if not tokens:
            raise ConfigError(f"{self._folder / TOKENIZER_FILE}: it has no tokens")
        ids = np.zeros((1, MAX_TOKENS), np.int64)
        plain = self._run(ids, np.ones_like(ids))
        if plain.ndim != _RANK or plain.shape[:2] != ids.shape:
            raise ConfigError(
                f"{self._folder / MODEL_FILE}: its output {self._output} has the shape {plain.shape}; "
                f"a vector for each token is needed: (1, {MAX_TOKENS}, dimensions)"
            )
        ids[0, 0] = highest = max(tokens.values())
        try:
            self._run(ids, np.ones_like(ids))
        except ConfigError as error:
            raise ConfigError(
                f"{self._folder}: {TOKENIZER_FILE} does not fit to {MODEL_FILE}: it has the token {highest}, "
                f"which the model does not take ({one_line(error)})"
            ) from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(path: Path, limit: int) -> bytes:
    try:
        return read_regular_file(path, limit)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; export the model as ONNX into this folder") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def _open_tokenizer(library: Any, content: bytes, path: Path) -> Any:  # noqa: ANN401 - the library's
    try:
        tokenizer = library.Tokenizer.from_str(content.decode())
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.no_padding()
    except Exception as error:  # noqa: BLE001 - the library raises Exception itself
        raise ConfigError(f"{path}: not a tokenizer: {one_line(error)}") from None
    return tokenizer


def _open_session(library: Any, content: bytes, path: Path) -> Any:  # noqa: ANN401 - the library's
    library.set_default_logger_severity(_FATAL)
    options = library.SessionOptions()
    options.log_severity_level = _FATAL
    # Its threads would use whole cores while they wait for the next text.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = library.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the library has no common class of errors
        raise ConfigError(f"{path}: not an ONNX model that can be run: {one_line(error)}") from None
    names = [each.name for each in session.get_inputs()]
    if not {*_INPUTS[:2]} <= {*names} <= {*_INPUTS}:
        raise ConfigError(
            f"{path}: its inputs are {', '.join(names) or 'none'}; a sentence encoder has "
            f"{_INPUTS[0]}, {_INPUTS[1]} and perhaps {_INPUTS[2]}"
        )
    return session


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)

"""The local sentence encoder, beside its definition in numpy; files that are none."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tokenizers import Tokenizer

from codetaste.errors import ConfigError, ToolMissing
from codetaste.retrieval.onnx_encoder import MAX_TOKENS, OnnxEncoder
from support.retrieval.tiny_encoder import make_encoder

LONG = "get user name " * 400
TEXTS = ["getUserName", "int total = price + count;", LONG, "", "zzz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("encoder"))


def vectors_by_definition(folder: Path, text: str) -> tuple[Any, Any]:
    """Return the mean of the vectors of at most 256 tokens, and those without special tokens; of length 1."""
    model = onnx.load(folder / "model.onnx")
    table = numpy_helper.to_array(model.graph.initializer[0])
    encoding = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text)
    ids = encoding.ids
    if len(ids) > MAX_TOKENS:
        ids = [*ids[: MAX_TOKENS - 1], ids[-1]]
    vectors = table[ids]
    mean = vectors.mean(axis=0)
    tokens = vectors[1:-1]
    return mean / np.linalg.norm(mean), tokens / np.linalg.norm(tokens, axis=1, keepdims=True)


def test_vectors_are_means_over_the_mask_of_at_most_256_tokens(folder: Path) -> None:
    for text, encoding in zip(TEXTS, OnnxEncoder.load(folder).encode(TEXTS), strict=True):
        sentence, tokens = vectors_by_definition(folder, text)
        assert encoding.sentence == pytest.approx(sentence, abs=1e-5)
        assert encoding.tokens == pytest.approx(tokens, abs=1e-5)


def test_a_text_has_the_same_vector_alone_and_among_longer_ones(folder: Path) -> None:
    encoder = OnnxEncoder.load(folder)
    alone = next(encoder.encode(["order total"])).sentence
    among = list(encoder.encode(["order total", LONG] * 20))
    assert among[38].sentence == pytest.approx(alone, abs=1e-6)


def test_the_record_has_the_digests_of_both_files(folder: Path) -> None:
    identity = OnnxEncoder.load(folder).identity
    for name in ("model.onnx", "tokenizer.json"):
        assert identity[name] == sha256((folder / name).read_bytes()).hexdigest()


def test_a_model_without_token_types_is_run(tmp_path: Path) -> None:
    encoder = OnnxEncoder.load(make_encoder(tmp_path, inputs=("input_ids", "attention_mask")))
    assert next(encoder.encode(["name"])).sentence.shape == (16,)


def test_texts_that_are_odd_are_encoded(folder: Path) -> None:
    for encoding in OnnxEncoder.load(folder).encode(["\ud800", "\0", "name " * 1_000_000]):
        assert np.isfinite(encoding.sentence).all()


def test_a_folder_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing: no such folder; embeddings\.folder must hold") as caught:
        OnnxEncoder.load(tmp_path / "nothing")
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    (make_encoder(tmp_path) / name).unlink()
    with pytest.raises(ConfigError, match=f"{name}: no such file"):
        OnnxEncoder.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("model.onnx", b"no model", r"model\.onnx: not an ONNX model that can be run"),
        ("model.onnx", b"", r"model\.onnx: not an ONNX model that can be run"),
        ("tokenizer.json", b"{}", r"tokenizer\.json: not a tokenizer"),
        ("tokenizer.json", b"\xff", r"tokenizer\.json: not a tokenizer"),
    ],
)
def test_a_file_of_something_else_is_one_line(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    (make_encoder(tmp_path) / name).write_bytes(content)
    with pytest.raises(ConfigError, match=problem) as caught:
        OnnxEncoder.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_model_with_other_inputs_is_refused(tmp_path: Path) -> None:
    make_encoder(tmp_path, inputs=("input_ids", "attention_mask", "pixel_values"))
    with pytest.raises(ConfigError, match="its inputs are input_ids, attention_mask, pixel_values"):
        OnnxEncoder.load(tmp_path)


def test_a_model_without_token_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has the shape \(1, 16\); a vector for each token is needed"):
        OnnxEncoder.load(make_encoder(tmp_path, rank=2))


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer\.json does not fit to model\.onnx") as caught:
        OnnxEncoder.load(make_encoder(tmp_path, rows=20))
    assert "\n" not in str(caught.value)


def test_a_model_with_numbers_that_are_not_finite_is_refused(tmp_path: Path) -> None:
    make_encoder(tmp_path)
    model = onnx.load(tmp_path / "model.onnx")
    table = numpy_helper.to_array(model.graph.initializer[0])
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(table * np.float32(np.nan), "table"))
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ConfigError, match="not finite"):
        list(OnnxEncoder.load(tmp_path).encode(["name"]))


def test_without_the_extra_the_package_to_install_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(ToolMissing, match=r"onnxruntime .* install codetaste\[retrieval\]"):
        OnnxEncoder.load(folder)

"""A tiny sentence encoder: random vectors of words as ``model.onnx``, with a ``tokenizer.json`` that fits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

_TEXT = (
    "get set user name order total price list map add remove find file read write open close next "
    "value index count public private void return int string if else for while this new class method "
    "the of ( ) { } ; . , = + order2 customer invoice parse text "
)
WORDS = tuple(_TEXT.split())
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def make_encoder(
    folder: Path,
    *,
    dimensions: int = 16,
    seed: int = 7,
    rows: int | None = None,
    inputs: Sequence[str] = INPUTS,
    rank: int = 3,
) -> Path:
    """Write both files into ``folder``, and return it.

    Args:
        folder: is created.
        dimensions: of the vectors.
        seed: of the random vectors.
        rows: vectors of the model; by default one for each token.
        inputs: of the model; the first one has the tokens.
        rank: of the output; 2 is the mean of all tokens.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: number for number, word in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS))}
    (folder / "tokenizer.json").write_text(_tokenizer(vocabulary).to_str())
    table = np.random.default_rng(seed).normal(size=(rows or len(vocabulary), dimensions))
    nodes = [helper.make_node("Gather", ["table", inputs[0]], ["hidden"])]
    if rank == 3:
        nodes.append(helper.make_node("Identity", ["hidden"], ["last_hidden_state"]))
    else:
        nodes.append(helper.make_node("ReduceMean", ["hidden"], ["last_hidden_state"], axes=[1], keepdims=0))
    shape = ["batch", "length", dimensions] if rank == 3 else ["batch", dimensions]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(table.astype(np.float32), "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    return folder


def _tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=special
    )
    return tokenizer

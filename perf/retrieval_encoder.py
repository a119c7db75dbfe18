"""A sentence encoder with the layers of all-MiniLM-L6-v2 and random weights: a workload of ``retrieval.py``.

6 layers, 384 dimensions, 12 heads and 1,536 inner ones, with the operators of PyTorch's export of BERT, so
that the runtime merges the same ones: it costs what the real one costs, and means nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.retrieval.tiny_encoder import INPUTS, make_encoder

LAYERS, DIMENSIONS, HEADS, INNER = 6, 384, 12, 1536
_VOCABULARY, _POSITIONS = 30_522, 512


class _Graph:
    """Nodes and weights of a graph under construction; each method returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(19)

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [*inputs], [name], **attributes))
        return name

    def constant(self, value: object, dtype: type = np.float32) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(self._random.normal(size=shape) / np.sqrt(shape[0]))

    def linear(self, hidden: str, width: int, to: int) -> str:
        return self.add("Add", self.add("MatMul", hidden, self.weight(width, to)), self.weight(to))

    def heads(self, hidden: str, order: list[int]) -> str:
        shape = self.constant([0, 0, HEADS, DIMENSIONS // HEADS], np.int64)
        plain = self.add("Reshape", self.linear(hidden, DIMENSIONS, DIMENSIONS), shape)
        return self.add("Transpose", plain, perm=order)

    def normalised(self, hidden: str) -> str:
        ones, zeros = self.constant(np.ones(DIMENSIONS)), self.constant(np.zeros(DIMENSIONS))
        return self.add("LayerNormalization", hidden, ones, zeros, axis=-1)

    def embedded(self) -> str:
        words = self.add("Gather", self.weight(_VOCABULARY, DIMENSIONS), INPUTS[0])
        types = self.add("Gather", self.weight(2, DIMENSIONS), INPUTS[2])
        length = self.add("Gather", self.add("Shape", INPUTS[0]), self.constant([1], np.int64))
        every = self.constant(np.arange(_POSITIONS)[None], np.int64)
        zero, one = self.constant([0], np.int64), self.constant([1], np.int64)
        places = self.add("Slice", every, zero, length, one)
        placed = self.add("Gather", self.weight(_POSITIONS, DIMENSIONS), places)
        return self.normalised(self.add("Add", self.add("Add", words, types), placed))

    def bias(self) -> str:
        """What keeps attention from padding."""
        mask = self.add("Unsqueeze", INPUTS[1], self.constant([1, 2], np.int64))
        missing = self.add("Sub", self.constant(1), self.add("Cast", mask, to=TensorProto.FLOAT))
        return self.add("Mul", missing, self.constant(-10_000))

    def layer(self, hidden: str, bias: str) -> str:
        query, key = self.heads(hidden, [0, 2, 1, 3]), self.heads(hidden, [0, 2, 3, 1])
        scale = self.constant(np.sqrt(DIMENSIONS / HEADS))
        scores = self.add("Add", self.add("Div", self.add("MatMul", query, key), scale), bias)
        seen = self.add("MatMul", self.add("Softmax", scores, axis=-1), self.heads(hidden, [0, 2, 1, 3]))
        joined = self.add("Transpose", seen, perm=[0, 2, 1, 3])
        joined = self.add("Reshape", joined, self.constant([0, 0, DIMENSIONS], np.int64))
        hidden = self.normalised(self.add("Add", self.linear(joined, DIMENSIONS, DIMENSIONS), hidden))
        inner = self.linear(hidden, DIMENSIONS, INNER)
        erf = self.add("Erf", self.add("Div", inner, self.constant(np.sqrt(2))))
        gelu = self.add("Mul", inner, self.add("Add", erf, self.constant(1)))
        gelu = self.add("Mul", gelu, self.constant(0.5))
        return self.normalised(self.add("Add", self.linear(gelu, INNER, DIMENSIONS), hidden))


def make_layered_encoder(folder: Path) -> Path:
    """Write the encoder into ``folder``, with the tokenizer of the tests, and return it."""
    make_encoder(folder)
    graph = _Graph()
    hidden, bias = graph.embedded(), graph.bias()
    for _ in range(LAYERS):
        hidden = graph.layer(hidden, bias)
    graph.nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"]))
    shape = ["batch", "length", DIMENSIONS]
    model = helper.make_graph(
        graph.nodes,
        "layers",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape[:2]) for name in INPUTS],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)],
        graph.weights,
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(model, opset_imports=opsets, ir_version=8), folder / "model.onnx")
    return folder

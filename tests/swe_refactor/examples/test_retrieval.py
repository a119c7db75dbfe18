"""From a corpus to the examples of a query."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.retrieval.config import RetrievalConfig
from codetaste.retrieval.embedder import OnnxEmbedder
from codetaste.retrieval.index import open_index
from codetaste.retrieval.onnx_encoder import OnnxEncoder
from codetaste.retrieval.reranker import LateInteraction
from codetaste.retrieval.retriever import Retriever
from codetaste.swe_refactor.examples.corpus import read_corpus
from support.retrieval.tiny_encoder import make_encoder
from support.swe_refactor.example_records import make_record, write_corpus

pytestmark = pytest.mark.anyio
METHODS = {
    "invoices": "int countOpenInvoices() { return invoices.filter(Invoice::isOpen).size(); }",
    "files": "void closeFile(File file) { file.flush(); file.close(); }",
    "users": "String getUserName(User user) { return user.getName().trim(); }",
    "prices": "int orderTotal(List<Order> orders) { return orders.sum(Order::price); }",
}


async def test_a_method_finds_the_examples_that_are_like_it(tmp_path: Path) -> None:
    records = [
        make_record(number, sourceCodeBeforeRefactoring=code) for number, code in enumerate(METHODS.values())
    ]
    corpus = read_corpus(write_corpus(tmp_path, records), ())
    ids = dict(zip((each.id for each in corpus.examples), METHODS, strict=True))
    embedder = OnnxEmbedder(OnnxEncoder.load(make_encoder(tmp_path / "encoder")), tokens=True)
    index = await open_index(corpus.documents({}), tmp_path, embedder)
    retriever = Retriever(index, RetrievalConfig(examples=tmp_path), embedder, LateInteraction())
    for name, code in METHODS.items():
        found = await retriever.search(code)
        assert ids[found[0].id] == name
        assert len(found) == 3


async def test_a_description_makes_an_example_found_by_its_words(tmp_path: Path) -> None:
    corpus = read_corpus(write_corpus(tmp_path, [make_record(number) for number in range(6)]), ())
    wanted = corpus.examples[4].id
    index = await open_index(corpus.documents({wanted: "Adds the prices of a cart."}), tmp_path)
    found = await Retriever(index, RetrievalConfig(examples=tmp_path)).search("the prices in the cart")
    assert [each.id for each in found] == [wanted]

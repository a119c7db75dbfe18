"""The index on disk: built once, built again if it is damaged, safe with several processes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from codetaste.core.concurrency import gather
from codetaste.errors import ConfigError, SourceError
from codetaste.retrieval.embedder import Embeddings, OnnxEmbedder
from codetaste.retrieval.index import FOLDER, Document, RetrievalIndex, open_index
from codetaste.retrieval.onnx_encoder import OnnxEncoder
from support.retrieval.tiny_encoder import make_encoder

pytestmark = pytest.mark.anyio
DOCUMENTS = (
    Document("a", "String getUserName() { return name; }"),
    Document("b", "void closeFile() { file.close(); }"),
    Document("c", "void setOrderTotal(int total) { this.total = total; }"),
)
TESTS = Path(__file__).resolve().parents[1]


@dataclass
class CountedEmbedder:
    """Counts its calls; the vectors are numbers of characters."""

    name: str = "counted"
    calls: list[int] = field(default_factory=list)

    @property
    def identity(self) -> dict[str, Any]:
        return {"name": self.name}

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        self.calls.append(len(texts))
        await anyio.sleep(0.01)
        return Embeddings(np.asarray([[len(text), 1] for text in texts], np.float32))


def stored(cache: Path) -> list[Path]:
    """Return the files of all indexes."""
    return sorted(path for path in (cache / FOLDER).rglob("*") if path.is_file() and path.suffix != ".lock")


async def test_it_is_built_once_and_read_then(tmp_path: Path) -> None:
    embedder = CountedEmbedder()
    first = await open_index(DOCUMENTS, tmp_path, embedder)
    again = await open_index(DOCUMENTS, tmp_path, embedder)
    assert embedder.calls == [3]
    assert again.key == first.key
    assert first.embeddings is not None
    assert again.embeddings is not None
    assert np.array_equal(again.embeddings.sentences, first.embeddings.sentences)
    assert np.array_equal(again.lexical.scores("user name"), first.lexical.scores("user name"))


async def test_tasks_at_once_build_it_once(tmp_path: Path) -> None:
    embedder = CountedEmbedder()
    found = await gather([partial(open_index, DOCUMENTS, tmp_path, embedder)] * 8)
    assert embedder.calls == [3]
    assert {each.key for each in found} == {found[0].key}


async def test_two_processes_at_once_get_the_same_index(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import anyio, importlib.util\n"
        "spec = importlib.util.spec_from_file_location('index_test', sys.argv[2])\n"
        "test = importlib.util.module_from_spec(spec); sys.modules['index_test'] = test\n"
        "spec.loader.exec_module(test)\n"
        "embedder = test.CountedEmbedder()\n"
        "found = anyio.run(test.open_index, test.DOCUMENTS, test.Path(sys.argv[3]), embedder)\n"
        "print(found.key, len(embedder.calls), float(found.lexical.scores('file').sum()))\n"
    )
    command = [sys.executable, "-c", script, str(TESTS), __file__, str(tmp_path)]

    async def one() -> list[str]:
        done = await anyio.run_process(command)
        return done.stdout.decode().split()

    outputs = await gather([one, one])
    assert len({(key, score) for key, _, score in outputs}) == 1
    assert sorted(int(calls) for _, calls, _ in outputs) == [0, 1]


@pytest.mark.parametrize("number", range(6))
async def test_any_damaged_file_makes_it_built_again(tmp_path: Path, number: int) -> None:
    embedder = CountedEmbedder()
    before = await open_index(DOCUMENTS, tmp_path, embedder)
    files = stored(tmp_path)
    files[number % len(files)].write_bytes(b"damaged")
    after = await open_index(DOCUMENTS, tmp_path, embedder)
    assert embedder.calls == [3, 3]
    assert np.array_equal(after.lexical.scores("file"), before.lexical.scores("file"))
    assert len(stored(tmp_path)) == len(files)


async def test_what_a_killed_process_left_does_not_matter(tmp_path: Path) -> None:
    first = await open_index(DOCUMENTS, tmp_path)
    place = tmp_path / FOLDER / first.key[:2]
    (place / f".{first.key}.building").mkdir()
    (place / f".{first.key}.building" / "half").write_text("x")
    (place / first.key / "content.json").unlink()
    assert (await open_index(DOCUMENTS, tmp_path)).key == first.key
    assert not (place / f".{first.key}.building").exists()


async def test_other_documents_or_another_embedder_are_another_index(tmp_path: Path) -> None:
    keys = [
        (await open_index(documents, tmp_path, embedder)).key
        for documents, embedder in (
            (DOCUMENTS, None),
            (DOCUMENTS[:2], None),
            (DOCUMENTS[::-1], None),
            (DOCUMENTS, CountedEmbedder()),
            (DOCUMENTS, CountedEmbedder("other")),
        )
    ]
    assert len(set(keys)) == 5


async def test_token_vectors_are_stored(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(OnnxEncoder.load(make_encoder(tmp_path / "encoder")), tokens=True)
    index = await open_index(DOCUMENTS, tmp_path, embedder)
    wanted = await embedder.embed([each.text for each in DOCUMENTS])
    assert index.embeddings is not None
    assert index.embeddings.tokens is not None
    assert wanted.tokens is not None
    for ours, theirs in zip(index.embeddings.tokens, wanted.tokens, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("documents", "problem"),
    [
        ((), "the corpus has no examples"),
        ((*DOCUMENTS, DOCUMENTS[0]), "example a: its id occurs twice in the corpus"),
        ((Document("a", "{ } ;"),), "example a: it has no word"),
        ((Document("a", "int x; " * 750_000),), "example a: 5,250,000 characters, at most 1,000,000"),
    ],
)
async def test_bad_documents_are_one_line(
    tmp_path: Path, documents: tuple[Document, ...], problem: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{problem}$"):
        await open_index(documents, tmp_path)


async def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file")
    with pytest.raises(SourceError, match="cannot lock"):
        await open_index(DOCUMENTS, tmp_path)


async def test_text_without_a_utf_8_form_can_be_found(tmp_path: Path) -> None:
    index: RetrievalIndex = await open_index([Document("a", "name \ud800 total")], tmp_path)
    assert index.lexical.scores("total")[0] > 0

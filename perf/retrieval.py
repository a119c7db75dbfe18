"""Retrieval over 1,000 examples: building their index, loading it, and one query after the other.

The examples are made Java methods of 20 to 60 lines; BM25, sentence embeddings, fusion and late interaction
are on. The encoder is the tests' tiny one, with vectors of 384 dimensions as all-MiniLM-L6-v2 has, but
without its layers; ``--layers`` takes one with the layers of that model and random weights, ``--folder`` a
real one. Targets are of CPU time. ::

    python perf/retrieval.py [--examples 1000] [--layers] [--folder ENCODER]
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from measure import Report, arguments, machine, versions
from retrieval_encoder import make_layered_encoder

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from codetaste.retrieval.config import RetrievalConfig
from codetaste.retrieval.embedder import OnnxEmbedder
from codetaste.retrieval.index import Document, open_index
from codetaste.retrieval.onnx_encoder import OnnxEncoder
from codetaste.retrieval.reranker import LateInteraction
from codetaste.retrieval.retriever import Retriever
from support.retrieval.tiny_encoder import make_encoder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_QUERY_MS, MOST_BUILD_S = 50.0, 60.0
_QUERIES = 50
_DIMENSIONS = 384
_TEXT = (
    "order price total customer invoice name file list map index value count user item stock cart "
    "parse read write open close find next add remove text entry key result state event node tree "
    "path line token "
)
_WORDS = _TEXT.split()


def make_method(chance: random.Random) -> str:
    """Return a Java method of 20 to 60 lines with the names that people use."""

    def name() -> str:
        return chance.choice(_WORDS) + "".join(chance.choice(_WORDS).capitalize() for _ in range(2))

    lines = [
        f"    {chance.choice(_WORDS)} = {name()}.{name()}({chance.choice(_WORDS)}, {chance.randrange(99)});"
        for _ in range(chance.randint(20, 60))
    ]
    body = "\n".join(lines)
    return f"It works on the {chance.choice(_WORDS)}.\n\nvoid {name()}(Object value) {{\n{body}\n}}"


@contextmanager
def timed(figures: dict[str, list[float]], name: str, factor: float = 1.0) -> Iterator[None]:
    """Add CPU and wall time of the block, in seconds times ``factor``."""
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    yield
    figures[f"{name}, CPU"].append((time.process_time() - cpu_s) * factor)
    figures[f"{name}, wall"].append((time.perf_counter() - wall_s) * factor)


async def measure_round(
    documents: Sequence[Document], folder: Path, work: Path, figures: dict[str, list[float]]
) -> None:
    """Build and load the index, and search it for made methods."""
    chance = random.Random(18)
    embedder = OnnxEmbedder(OnnxEncoder.load(folder), tokens=True)
    with timed(figures, "building the index"):
        await open_index(documents, work, embedder)
    with timed(figures, "loading it"):
        index = await open_index(documents, work, embedder)
    config = RetrievalConfig(examples=Path("examples.jsonl"))
    retriever = Retriever(index, config, embedder, LateInteraction())
    lexical = Retriever(index, config)
    for _ in range(_QUERIES):
        query = make_method(chance)
        with timed(figures, "a query", 1000):
            await retriever.search(query)
        with timed(figures, "a query by BM25 alone", 1000):
            await lexical.search(query)


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--examples", type=int, default=1000, help="how many there are (default 1000)")
    parser.add_argument("--folder", type=Path, help="a sentence encoder; without it, one is made")
    parser.add_argument("--layers", action="store_true", help="make one with the layers of MiniLM")
    chosen = parser.parse_args()
    chance = random.Random(17)
    documents = [Document(f"example{number}", make_method(chance)) for number in range(chosen.examples)]
    figures = defaultdict[str, list[float]](list)
    for _ in range(chosen.rounds):
        with tempfile.TemporaryDirectory() as name:
            made = Path(name, "encoder")
            make = make_layered_encoder if chosen.layers else partial(make_encoder, dimensions=_DIMENSIONS)
            folder = chosen.folder or make(made)
            work = Path(name, "cache")
            anyio.run(measure_round, documents, folder, work, figures)
            size = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
            figures["size of the index"].append(size / 1e6)
    about = machine() | versions(sys.executable, "codetaste", "bm25s", "onnxruntime", "tokenizers")
    encoder = chosen.folder or ("layers of MiniLM" if chosen.layers else "tiny encoder")
    report = Report(f"retrieval over {chosen.examples:,} examples, {encoder}", about)
    targets = {"building the index, CPU": MOST_BUILD_S, "a query, CPU": MOST_QUERY_MS}
    for name, values in figures.items():
        unit = " MB" if name.startswith("size") else " ms" if "query" in name else " s"
        report.add(name, values, unit, most=targets.get(name))
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())

"""The index of a whole tree says of each method what JDT says when it is asked for that method alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import pytest

from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import install_artifacts
from codetaste.java.jdt.model import CodeOrigin, EnrichedTree, MethodTarget, TargetOutcome
from codetaste.java.jdt.service import ARTIFACT_SET, open_jdt
from codetaste.java.jdt.source_index import SourceIndex
from support.java.odd_sources import FILES, MAIN, ODD, write_sources

pytestmark = pytest.mark.heavy
NEAR = f"{MAIN}/p/Square.java"


@pytest.fixture(scope="module")
def indexed(java_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[SourceIndex, EnrichedTree]:
    """The index of the odd sources, and what JDT says of each of its methods alone."""
    root = write_sources(tmp_path_factory.mktemp("odd"))

    async def ask() -> tuple[SourceIndex, EnrichedTree]:
        await install_artifacts(load_artifact_set(ARTIFACT_SET), java_cache)
        async with open_jdt(java_cache) as jdt:
            index = await jdt.index(root, MAIN)
            targets = [
                MethodTarget(each.path, each.start_line, each.end_line, each.name, each.owner)
                for each in index.methods
            ]
            return index, await jdt.enrich(root, targets)

    return anyio.run(ask)


def test_callers_and_callees_are_those_of_the_single_methods(
    indexed: tuple[SourceIndex, EnrichedTree],
) -> None:
    index, tree = indexed
    compared = 0
    for number, context in enumerate(tree.targets):
        near = context.target.path.startswith(f"{MAIN}/")
        if context.outcome is not TargetOutcome.FOUND or not near:
            continue  # of other roots JDT leaves out other files
        if index.methods[number].owner.endswith("<anonymous>"):
            continue  # its calls are those of the method around it
        compared += 1
        method = index.methods[number]
        assert context.method is not None
        assert method.label.startswith(f"{context.method.owner}#{context.method.name}(")
        found = {(call.path, call.line, call.member) for call in index.calls_of(number)}
        assert found == {(each.path, line, each.member) for each in context.callers for line in each.lines}
        called = Counter(
            (call.name, index.methods[call.callee].path)
            for call in {(call.callee, call.name): call for call in index.calls_in(number)}.values()
            if call.callee >= 0
        )
        own = [each for each in context.callees if each.method is not None]
        inner = Counter((each.name, each.method.path) for each in own if each.method)
        assert called == inner
        assert all(each.origin is CodeOrigin.SOURCE for each in own)
    assert compared > 8


def test_types_are_found_by_the_last_parts_of_their_names(
    indexed: tuple[SourceIndex, EnrichedTree],
) -> None:
    index, _ = indexed
    assert [each.name for each in index.find_types("q.Two$Other.Inner")] == ["q.Two.Other.Inner"]
    assert {each.path for each in index.find_types("Square")} >= {f"{MAIN}/p/Square.java"}
    assert index.find_types("quare") == []
    assert len(index.find_methods("Square", "twice")) == 2, "overloads"


def test_the_nearest_of_equal_files_counts(indexed: tuple[SourceIndex, EnrichedTree]) -> None:
    index, _ = indexed
    assert index.left_out_files
    assert not {each.path for each in index.methods} & {*index.left_out_files}
    assert all(path in FILES for path in index.left_out_files)
    assert any(each.path.startswith(ODD) for each in index.types), "half a file has types, too"


def test_an_index_is_written_and_read_again(indexed: tuple[SourceIndex, EnrichedTree]) -> None:
    index, _ = indexed
    assert SourceIndex.from_text(index.to_text()) == index
